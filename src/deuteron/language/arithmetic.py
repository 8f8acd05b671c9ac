"""Elementwise arithmetic beyond the operators, and the operators as functions.

    running_max = tl.maximum(running_max, tl.max(scores, 1))
    y = tl.clamp(x, 0.0, 6.0)

Operands are broadcast and promoted as by an operator.
"""

from __future__ import annotations

from enum import IntEnum

from deuteron.language.builtin import builtin
from deuteron.language.constant import constexpr
from deuteron.language.tensor import tensor

Operand = tensor | float


class PropagateNan(IntEnum):
    """What an operation that chooses between values does with NaN: NONE takes the other value, ALL gives NaN."""

    NONE = 0
    ALL = 0xFFFF


@builtin
def add(x: Operand, y: Operand, sanitize_overflow: constexpr = True) -> tensor:
    """`x + y`. Integers wrap.

    :param sanitize_overflow: whether that is an assertion that fails, with the options `debug` and `sanitize_overflow`.
    """


@builtin
def sub(x: Operand, y: Operand, sanitize_overflow: constexpr = True) -> tensor:
    """`x - y`. Integers wrap.

    :param sanitize_overflow: whether that is an assertion that fails, with the options `debug` and `sanitize_overflow`.
    """


@builtin
def mul(x: Operand, y: Operand, sanitize_overflow: constexpr = True) -> tensor:
    """`x * y`. Integers wrap.

    :param sanitize_overflow: whether that is an assertion that fails, with the options `debug` and `sanitize_overflow`.
    """


@builtin
def minimum(x: Operand, y: Operand, propagate_nan: constexpr = PropagateNan.NONE) -> tensor:
    """The smaller of `x` and `y`, elementwise; Python's `min(x, y)` in a kernel.

    :param propagate_nan: whether a NaN gives NaN (`tl.PropagateNan.ALL`) or the other operand.

    Errors: pointers, shapes that do not broadcast.
    """


@builtin
def maximum(x: Operand, y: Operand, propagate_nan: constexpr = PropagateNan.NONE) -> tensor:
    """The larger of `x` and `y`, elementwise; Python's `max(x, y)` in a kernel.

    :param propagate_nan: whether a NaN gives NaN (`tl.PropagateNan.ALL`) or the other operand.

    Errors: pointers, shapes that do not broadcast.
    """


@builtin
def clamp(x: Operand, min: Operand, max: Operand, propagate_nan: constexpr = PropagateNan.NONE) -> tensor:
    """`x` limited to `[min, max]`, elementwise. Unspecified where `min > max` or a limit is NaN.

    :param propagate_nan: whether a NaN in `x` gives NaN (`tl.PropagateNan.ALL`) or a limit.

    Errors: pointers, shapes that do not broadcast.
    """

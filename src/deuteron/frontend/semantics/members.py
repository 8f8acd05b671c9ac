"""What a Tensor has after a dot: attributes, known at compile time, and methods, which are functions of the language.

    x.dtype  x.shape  x.numel  x.T          ATTRIBUTES[name](ctx, x)
    x.to(tl.float16)                        the rule of FUNCTIONS["to"], tl.cast, with x as its first argument

`tl.tensor` lists and documents them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.shape import trans
from deuteron.frontend.values import Tensor, Value
from deuteron.language.types import dtype


def _dtype(ctx: Context, x: Tensor) -> dtype:
    return x.dtype


def _type(ctx: Context, x: Tensor) -> dtype:
    return x.type


def _shape(ctx: Context, x: Tensor) -> tuple[int, ...]:
    return x.shape


def _numel(ctx: Context, x: Tensor) -> int:
    return math.prod(x.shape)


def _transposed(ctx: Context, x: Tensor) -> Tensor:
    """`x.T` of two dimensions, as in Triton: of more NumPy's turns all of them round, tl.trans the last two."""
    if len(x.shape) > 2:
        raise ctx.error(f"'.T' is of two dimensions, got {x.type}. Use tl.trans(x) for the last two, or tl.permute.")
    return trans(ctx, x)


def reflected(rule: Callable[..., Value]) -> Callable[..., Value]:
    """What `x.__radd__(y)` is, of the rule of `x + y`."""
    return lambda ctx, self, other: rule(ctx, other, self)


ATTRIBUTES = {"dtype": _dtype, "type": _type, "shape": _shape, "numel": _numel, "T": _transposed}

_OWN = {"to": tl.cast, "logical_and": tl.tensor.logical_and, "logical_or": tl.tensor.logical_or}
_METHOD_NAMES = [name for name, member in vars(tl.tensor).items() if callable(member) and not name.startswith("_")]

# A method that is not one of its own is the function of that name.
FUNCTIONS = {name: _OWN[name] if name in _OWN else getattr(tl, name) for name in _METHOD_NAMES}

"""Promises to the compiler about values. A wrong one makes a wrong program.

    row_start = tl.multiple_of(row * stride, 16)
    cols = tl.max_contiguous(tl.multiple_of(cols, BLOCK), BLOCK)

`values` has one entry for each dimension of `input` (one for a scalar), each known at compile time; a lone number is
taken as one entry. Errors of the first three: another number of entries, entries that are no integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def multiple_of(input: tensor, values: int | Sequence[int]) -> tensor:
    """`input`, promising that along dimension d each contiguous group starts at a multiple of `values[d]`.

    Where nothing is known to be contiguous, each element is a group.
    """


@builtin
def max_contiguous(input: tensor, values: int | Sequence[int]) -> tensor:
    """`input`, promising that along dimension d each `values[d]` elements count up by one: 8, 9, 10, 11."""


@builtin
def max_constancy(input: tensor, values: int | Sequence[int]) -> tensor:
    """`input`, promising that along dimension d each `values[d]` elements are equal."""


@builtin
def assume(cond: tensor | bool) -> None:
    """Promise that `cond` holds. It is checked for its type and not used further."""

"""Choosing elementwise: `tl.where`."""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def where(condition: tensor | bool, x: tensor | float, y: tensor | float) -> tensor:
    """`x` where `condition` holds, `y` elsewhere.

    Both are computed always: use the mask of `load` and `store` to avoid an access.

    :param condition: int1; other integers count as true where they are not 0.
    :param x: broadcast with `y` and `condition` to one shape, and promoted with `y` to one type as by an operator.

    Example: `scores = tl.where(rows[:, None] >= cols[None, :], scores, float("-inf"))`

    Errors: shapes that do not broadcast, pointers of different types.
    """

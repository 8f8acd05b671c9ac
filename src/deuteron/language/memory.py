"""Loads and stores through pointers.

    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x, mask=offsets < n)

An access through a pointer is a scalar, through a tile of pointers a tile. Lanes whose mask is false touch no memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def load(
    pointer: tensor,
    mask: tensor | None = None,
    other: tensor | float | None = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """What is in memory at `pointer`, with the shape of `pointer` and the type it points to.

    :param pointer: a pointer, a tile of pointers, or a block pointer (`tl.make_block_ptr`).
    :param mask: int1, broadcast to the shape of `pointer`; where it is false nothing is loaded.
    :param other: what a masked lane gives, converted to the element type; unspecified where it is not given.
    :param boundary_check: of a block pointer, the dimensions in which the block may be out of bounds; others are not
        checked.
    :param padding_option: of a block pointer, what is loaded from out of bounds: "zero", "nan" (floats only), or "",
        which gives zeros as well.
    :param cache_modifier: "", ".ca", ".cg", ".cs" or ".cv" (PTX's cache operators; a hint, without effect on the CPU).
    :param eviction_policy: "", "evict_first", "evict_last" or "evict_normal".
    :param volatile: whether the load must not be merged with others or moved.

    Errors: no pointer, a mask or `other` of another shape, a mask that is not int1, `other` without a mask, another
    modifier or policy; a mask with a block pointer, a boundary_check or padding_option without one. A pointer to int1
    loads bytes: any that is not 0 is true.
    """


@builtin
def store(
    pointer: tensor,
    value: tensor | float,
    mask: tensor | None = None,
    boundary_check: Sequence[int] = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Store `value` in memory at `pointer`.

    :param pointer: a pointer, a tile of pointers, or a block pointer (`tl.make_block_ptr`).
    :param value: broadcast to the shape of `pointer` and converted to the type it points to.
    :param mask: int1, broadcast to the shape of `pointer`; where it is false nothing is stored.
    :param boundary_check: of a block pointer, the dimensions in which the block may be out of bounds, where nothing is
        stored; others are not checked.
    :param cache_modifier: "", ".wb", ".cg", ".cs" or ".wt".
    :param eviction_policy: "", "evict_first", "evict_last" or "evict_normal".

    Errors: no pointer, a pointer to constant data, a value or mask whose shape does not go to that of `pointer`, a mask
    that is not int1, another modifier or policy.
    """

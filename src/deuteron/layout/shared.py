"""The named layouts of tiles in shared memory, as linear layouts with the input offset (counted in elements).

swizzled([8, 8], order=[1, 0], vec=2, per_phase=1, max_phase=4): in row r, groups of 2 columns are XORed with r % 4:

    row 0   0 1 2 3 4 5 6 7        (the column stored at each offset of the row)
    row 1   2 3 0 1 6 7 4 5
    row 2   4 5 6 7 0 1 2 3
    row 3   6 7 4 5 2 3 0 1
    row 4   0 1 2 3 4 5 6 7

mma_shared is what matrix products read: panels of rows of up to 128 bytes, in which 16-byte chunks are XORed with the
row, as TMA and wgmma do it. With the bits of the row reversed, neighbouring rows are far apart: threads may read two or
four chunks of each at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.layout.linear import OFFSET, LinearLayout, dim_names, log2

MAX_SPAN = 128
SWIZZLE_ALIGNMENT = 8 * MAX_SPAN  # the pattern of the longest span is one of address bits
PLAIN_ALIGNMENT = 16


def row_major(shape: Sequence[int], order: Sequence[int] | None = None) -> LinearLayout:
    """Elements in order, the first dimension of `order` (default: the last) the fastest."""
    return swizzled(shape, order or list(reversed(range(len(shape)))), 1, 1, 1)


def swizzled(
    shape: Sequence[int], order: Sequence[int], vec: int, per_phase: int, max_phase: int, reverse: bool = False
) -> LinearLayout:
    """Rows along order[0]; groups of `vec` elements XORed with (row / per_phase) % max_phase, or its bits reversed."""
    names = dim_names(len(shape))
    fast, slow = order[0], order[1] if len(order) > 1 else None
    bases = [_unit(len(shape), fast, 1 << bit) for bit in range(log2(shape[fast]))]
    if slow is not None:
        for bit in range(log2(shape[slow])):
            phase = ((1 << bit) // per_phase) % max_phase
            if reverse and phase:
                phase = max_phase // 2 // phase
            basis = list(_unit(len(shape), slow, 1 << bit))
            basis[fast] = vec * phase % shape[fast]
            bases.append(tuple(basis))
    for axis in order[2:]:
        bases += [_unit(len(shape), axis, 1 << bit) for bit in range(log2(shape[axis]))]
    return LinearLayout.make({OFFSET: bases}, dict(zip(names, shape, strict=True)))


def mma_shared(
    shape: Sequence[int], fast_axis: int, element_bytes: int, span: int | None = None, reverse: bool = False
) -> LinearLayout:
    """Panels of `span` bytes (default: up to 128) along the fast dimension, one of the last two; all rows of a panel,
    then the next panel; other dimensions are the slowest.

    Chunks of 16 bytes of row r are XORed with (r / per_phase) % max_phase, (1, 8) for 128 bytes, (2, 4) for 64, (4, 2)
    for 32: any 8 chunks with equal columns in neighbouring rows are in different banks. Chunks in a panel of 64 bytes:

        row 0   0 1 2 3
        row 1   0 1 2 3
        row 2   1 0 3 2
        row 3   1 0 3 2
        row 4   2 3 0 1
        row 6   3 2 1 0

    With `reverse` the rows 2 and 4 are exchanged in this picture, and those like them in each four.
    """
    row_bytes = shape[fast_axis] * element_bytes
    span = min(span or MAX_SPAN, row_bytes)
    slow_axis = 2 * len(shape) - 3 - fast_axis
    chunk, per_phase, max_phase = max(16 // element_bytes, 1), MAX_SPAN // span, max(span // 16, 1)
    panel = [1 if axis not in (fast_axis, slow_axis) else extent for axis, extent in enumerate(shape)]
    panel[fast_axis] = span // element_bytes
    layout = swizzled(panel, (fast_axis, slow_axis, *range(len(shape) - 2)), chunk, per_phase, max_phase, reverse)
    for axis in (fast_axis, *range(len(shape) - 2)):
        name = dim_names(len(shape))[axis]
        layout = layout * LinearLayout.identity(shape[axis] // panel[axis], OFFSET, name)
    return layout


def _unit(rank: int, axis: int, value: int) -> tuple[int, ...]:
    return tuple(value if index == axis else 0 for index in range(rank))

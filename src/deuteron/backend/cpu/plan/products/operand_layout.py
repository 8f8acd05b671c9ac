"""How operands of products are kept: rows for A, panels for B, and room for those of several steps of a loop.

    row_layout(64, 32, steps=4, element_bytes=2)    A of 64 x 32, four times: row 0 of steps 0 to 3, row 1 of ...
    panel_layout(32, 64, columns=32, steps=4)       B of 32 x 64, four times: columns 0 to 31 of all steps, then others

    step          0           1                     columns     0 .. 31         32 .. 63
    row 0     a a a a ... a a a a ...               step 0      b b b b ...     b b b b ...     row 0
    row 1     a a a a ... a a a a ...                           b b b b ...     b b b b ...     row 1
                                                    step 1      b b b b ...     b b b b ...     row 0

So what one block of C is computed from is in one place: a product of several steps is one with a larger k.
"""

from __future__ import annotations

from dataclasses import dataclass

# Bytes of a row of A of all steps together, about. A block of AMX has 2.2 TFLOP/s with 512 on an Emerald Rapids, 1.8
# with 256, 1.7 with 1,024. Computed on vectors, which read rows of A more often, 64 x 64 x 64 is 2 % (bf16) to 5 %
# (fp32) faster with 256 bytes than with 512 on a Zen 5: A, a panel of B and C fit in the first cache then.
TILE_DEPTH, VECTOR_DEPTH = 512, 256

# Two steps with rows of up to so many bytes are computed together even so, for then B is in panels and can be found
# packed: fp32 64 x 64 x 64 has 221 GFLOP/s instead of 197 where A is read in place, 256 x 256 x 128 225 instead of 214.
MOST_DEPTH = 512

_ROW_GAP = 64  # bytes between rows of A, which else were in the same sets of the cache


@dataclass(frozen=True)
class OperandLayout:
    """Strides of rows and columns, in elements, how many there are room for, and how far the next step's element is: 0
    where there is room for one step, whatever else the loop keeps of several.

    With `columns` the second dimension is in panels of so many, `pitch` elements apart. With a `group` above 1 so many
    neighbours along the first one are neighbours in memory; then comes the next column.
    """

    strides: tuple[int, int]
    count: int
    advance: int
    columns: int = 0
    pitch: int = 0
    group: int = 1


def num_steps(row_bytes: int, depth: int) -> int:
    """Of how many steps of a loop, in each of which a row of A has so many bytes, products are computed together."""
    return max(1, depth // row_bytes)


def row_layout(m: int, k: int, steps: int, element_bytes: int) -> OperandLayout:
    pitch = k * steps + _ROW_GAP // element_bytes
    return OperandLayout((pitch, 1), m * pitch, _advance(steps, k))


def panel_layout(k: int, n: int, columns: int, steps: int) -> OperandLayout:
    """`columns` divides n."""
    return OperandLayout((columns, 1), k * steps * n, _advance(steps, k * columns), columns, k * steps * columns)


def _advance(steps: int, size: int) -> int:
    return size if steps > 1 else 0


def grouped(lanes: OperandLayout, group: int) -> OperandLayout:
    """The layout of elements of which so many, neighbours along k, are a lane of panels."""
    pitch, advance = lanes.pitch * group, lanes.advance * group
    return OperandLayout((lanes.columns, group), lanes.count * group, advance, lanes.columns, pitch, group)

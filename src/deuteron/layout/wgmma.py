"""The layouts of wgmma, the product of a warpgroup (four warps): its accumulator, its operand in registers, and the
matrices that it reads from shared memory through descriptors.

    mma_v3_accumulator([128, 64], [8, 1])     two warpgroups, 64 rows each
    mma_v3_operand([128, 32], [8, 1], 16)     a, in registers
    shared_matrix(layout, 2)                  SharedMatrix(fast_axis=1, span=64, panel_bytes=8192, rows_bytes=512)

In shared memory a matrix is laid out by `shared.mma_shared`, with rows of 32, 64 or 128 bytes. A descriptor gives the
swizzle, the distance of the next 8 rows, and that of the next panel (PTX ISA, "Matrix Descriptor").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from deuteron.layout.distributed import HARDWARE, mma_v2_operand, warps_along
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2, remembered
from deuteron.layout.shared import mma_shared

M = 64
MAX_N = 256
WARPGROUP = 4  # warps that multiply together
SPANS = (128, 64, 32)


@remembered
def mma_v3_accumulator(shape: Sequence[int], warps_per_cta: Sequence[int]) -> LinearLayout:
    """The accumulator of wgmma m64nN, repeated over the tile; N is a warpgroup's part of the columns, at most 256.

    `warps_per_cta`: warps along M, a multiple of four, and N; warps go along M first. 16 rows of one warp, as in
    `mma_v2_accumulator` but with a thread's columns 8, 16, 32 ... apart in registers 4, 8, 16 ...; lane:register

        row 0   0:0 0:1  1:0 1:1  2:0 2:1  3:0 3:1  0:4 0:5  1:4 1:5 ...
        row 1   4:0 4:1  5:0 5:1  6:0 6:1  7:0 7:1  4:4 4:5  5:4 5:5 ...
        ...
        row 8   0:2 0:3  1:2 1:3  2:2 2:3  3:2 3:3  0:6 0:7  1:6 1:7 ...
    """
    n = min(MAX_N, shape[1] // warps_per_cta[1])
    registers = [(0, 1), (8, 0), *((0, 8 << bit) for bit in range(log2(n // 8)))]
    lanes = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
    tile = LinearLayout.make({REGISTER: registers, LANE: lanes}, {"dim0": 16, "dim1": n})
    return (tile * warps_along(warps_per_cta, (0, 1))).with_ins(HARDWARE).fit(shape, (1, 0))


@remembered
def mma_v3_operand(shape: Sequence[int], warps_per_cta: Sequence[int], bit_width: int) -> LinearLayout:
    """Operand a, [M, K], in registers, as `mma_v2_operand`; warps along N, the slowest, hold replicas.

    For 16 bits it is the layout of the accumulator, so that a product becomes an operand where it is.
    """
    rows, columns = warps_per_cta
    return mma_v2_operand(shape, [rows, 1], 0, bit_width) * LinearLayout.zeros(columns, WARP, "dim1")


def instruction_n(accumulator: LinearLayout) -> int:
    """N of the instructions that make an accumulator: the neighbouring columns that one warpgroup holds."""
    n = 8
    while n < MAX_N and (0, n) in accumulator.of(REGISTER):
        n *= 2
    return n


def is_mma_v3_accumulator(layout: LinearLayout) -> bool:
    """Whether warpgroups hold a tile as wgmma gives it."""
    warps = layout.of(WARP)
    if len(layout.shape) != 2 or layout.shape[0] < M or warps[:2] != ((16, 0), (32, 0)):
        return False
    rows = WARPGROUP << sum(basis[0] > 0 for basis in warps[2:])
    columns = (1 << len(warps)) // rows
    return layout.shape[1] >= 8 * columns and layout == mma_v3_accumulator(layout.shape, [rows, columns])


@dataclass(frozen=True)
class SharedMatrix:
    """What a descriptor says of a matrix: the axis along which elements are neighbours, how many bytes a row of a
    panel has (the span of the swizzle), and how far the next panel and the next 8 rows are.
    """

    fast_axis: int
    span: int
    panel_bytes: int
    rows_bytes: int


@lru_cache(maxsize=1024)
def shared_matrix(layout: LinearLayout, element_bytes: int) -> SharedMatrix | None:
    """The descriptor's view of a layout of shared memory (offset -> row, column), or None if it has none."""
    for axis in range(2) if len(layout.shape) == 2 else ():
        for span in SPANS:
            is_wide = layout.shape[axis] * element_bytes >= span and layout.shape[1 - axis] >= 8
            if is_wide and layout == mma_shared(layout.shape, axis, element_bytes, span):
                return SharedMatrix(axis, span, layout.shape[1 - axis] * span, 8 * span)
    return None

"""Whether threads hold, of the operands of a dot, what the layout of its sums makes them multiply.

    c   [M, N]   mma.sync     lanes 0, 1 hold parts of a and b along K, lanes 2, 3, 4 rows of a and columns of b
                 wgmma        likewise for a, in the order that the instruction has; b is in shared memory
                 else         no lane holds a part along K: each has what its sums need
    a   [M, K]                each warp and CTA has the rows of its sums, and all of K
    b   [K, N]                the columns likewise

It is read off the bases: by how much a bit of the lane, warp or CTA moves in each tile, and what the registers of a
thread span. Which places along K are multiplied by one another is said by a and b alone, so that any order of them is
right that both have.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.tt.dot import DotOp
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import bit_width_of, byte_width_of
from deuteron.layout import f2
from deuteron.layout.distributed import is_mma_v2_accumulator
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, Basis, LinearLayout, log2
from deuteron.layout.wgmma import is_mma_v3_accumulator, shared_matrix

LANES_ALONG_K = 2  # of the bits of a lane, where instructions multiply the parts of several
ACROSS = (1, 2, 4)  # rows of a, or columns of b, by the other bits
NEXT_ROW, NEXT_COLUMN = 8, 1  # an instruction gives a thread sums that are so far apart


def check_dot(op: DotOp) -> None:
    """Raise VerifyException where a thread lacks what it multiplies."""
    c = layout_of(op.c.type)
    a, b = _Operand(op.a, 0), _Operand(op.b, 1)
    if not is_mma_v2_accumulator(c):
        for one in (a, b):
            _require(one.has_whole(c), op, one, "each thread needs the whole rows of a, and columns of b, of its sums")
        return
    for one in (a, b):
        _require(one.has_tiles(c), op, one, "mma.sync needs the rows of a, and columns of b, in the warp of their sums")
    _require(a.order_along_k == b.order_along_k, op, b, "a and b need one order along K")


def check_warp_group_dot(op: WarpGroupDotOp) -> None:
    """The same, and where shared memory is not laid out as wgmma reads it."""
    c = layout_of(op.c.type)
    if not is_mma_v3_accumulator(c):
        raise VerifyException(f"the accumulator of ttng.warp_group_dot is {op.c.type}, not as wgmma has it")
    for k, value in ((1, op.a), (0, op.b)):
        if isinstance(value.type, MemDescType):
            _check_matrix(value, k)
    if not isinstance(op.a.type, MemDescType):
        a = _Operand(op.a, 0)
        _require(
            a.has_words(c, bit_width_of(op.a.type)), op, a, "wgmma needs rows in the warp of their sums, and words"
        )


def _check_matrix(value: SSAValue, k: int) -> None:
    """Only of 16 bits a matrix may have neighbours along the other axis than K."""
    size = byte_width_of(value.type.tile)
    matrix = shared_matrix(layout_of(value.type), size)
    if matrix is None or (size != 2 and matrix.fast_axis != k):
        raise VerifyException(f"no descriptor of wgmma describes {value.type}")


def _require(is_right: bool, op: DotOp | WarpGroupDotOp, operand: _Operand, needed: str) -> None:
    if not is_right:
        raise VerifyException(
            f"{op.name}: of {operand.value.type} threads lack what they multiply for {op.c.type}: {needed}"
        )


class _Operand:
    """Operand a (0) or b (1) of a dot in registers: `k` is the axis that sums do not have."""

    def __init__(self, value: SSAValue, index: int):
        self.value, self._layout = value, layout_of(value.type)
        rank = len(self._layout.shape)
        self._k, self._kept = rank - 1 - index, rank - 2 + index
        self._registers = f2.Span(self._layout.columns(REGISTER))

    def has_whole(self, c: LinearLayout) -> bool:
        """Each thread all of K for its sums."""
        needed = [*map(self._without_k, c.of(REGISTER)), *self._units_of_k()]
        return self._moves_as(c, LANE, WARP, BLOCK) and self._holds(needed)

    def has_tiles(self, c: LinearLayout) -> bool:
        """As mma.sync multiplies them. Of the four sums that it gives a thread two are in the next column, for which
        another lane has b, and two are eight rows below.
        """
        corners = ((*batch, row & ~NEXT_ROW, column & ~NEXT_COLUMN) for *batch, row, column in c.of(REGISTER))
        needed = [*map(self._without_k, corners), *map(self._only_k, self._layout.of(REGISTER)), *self._rows_below()]
        return self._moves_as(c, WARP, BLOCK) and self._lanes_are_across() and self._holds(needed) and self._is_shared()

    def has_words(self, c: LinearLayout, bit_width: int) -> bool:
        """As wgmma takes them: words of 32 bits, those of four lanes one after the other along K."""
        of_lanes = [self._unit(self._k, (32 // bit_width) << bit) for bit in range(LANES_ALONG_K)]
        own = [unit for unit in self._units_of_k() if unit not in of_lanes]
        needed = [*map(self._without_k, c.of(REGISTER)), *self._rows_below(), *own]
        is_in_order = list(self._layout.of(LANE)[:LANES_ALONG_K]) == of_lanes
        return self._moves_as(c, WARP, BLOCK) and self._lanes_are_across() and is_in_order and self._holds(needed)

    @property
    def order_along_k(self) -> tuple[frozenset[int], tuple[int, ...]]:
        """What a thread holds of K, and how far the other lanes' parts are: the instruction takes the first of each,
        then the second.
        """
        held = {0}
        for basis in self._layout.of(REGISTER):
            held |= {place ^ basis[self._k] for place in held}
        return frozenset(held), self._lanes_along_k()

    def _moves_as(self, c: LinearLayout, *inputs: str) -> bool:
        """Whether each warp, say, is as far along the axes that it shares with the sums as these are."""
        return all(self._layout.of(name) == tuple(map(self._without_k, c.of(name))) for name in inputs)

    def _lanes_are_across(self) -> bool:
        extent = self._layout.shape[self._kept]  # of fewer than the lanes are for, several hold the same
        across = [self._unit(self._kept, size if size < extent else 0) for size in ACROSS]
        return list(self._layout.of(LANE)[LANES_ALONG_K:]) == across

    def _is_shared(self) -> bool:
        """Whether four lanes have a part of K each, and together all."""
        held, lanes = self.order_along_k
        is_along_k = all(self._only_k(basis) == basis for basis in self._layout.of(LANE)[:LANES_ALONG_K])
        return is_along_k and f2.rank([*held, *lanes]) == log2(len(held)) + len(lanes) == log2(self._depth)

    def _holds(self, needed: Sequence[Basis]) -> bool:
        return not any(self._registers.reduce(self._layout.flatten_basis(basis))[0] for basis in needed)

    @property
    def _depth(self) -> int:
        return self._layout.shape[self._k]

    def _lanes_along_k(self) -> tuple[int, ...]:
        return tuple(basis[self._k] for basis in self._layout.of(LANE)[:LANES_ALONG_K])

    def _units_of_k(self) -> list[Basis]:
        return [self._unit(self._k, 1 << bit) for bit in range(log2(self._depth))]

    def _rows_below(self) -> list[Basis]:
        return [self._unit(self._kept, NEXT_ROW)] if self._kept < self._k else []

    def _unit(self, axis: int, size: int) -> Basis:
        return tuple(size if place == axis else 0 for place in range(len(self._layout.shape)))

    def _without_k(self, basis: Basis) -> Basis:
        return tuple(0 if axis == self._k else entry for axis, entry in enumerate(basis))

    def _only_k(self, basis: Basis) -> Basis:
        return self._unit(self._k, basis[self._k])

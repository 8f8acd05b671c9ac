"""Makes tiles that are known by their place, each once in a block.

made = Made(); made.op = op                          what is made comes before this op
IndexTiles(made).bit((4, 16), 5)                     where bit 5 of the row-major position is set: (row & 2) != 0
IndexTiles(made).place((4, 16), 1, 8)                column ^ 8
IndexTiles(made).tile(index_bits, type)              any function over F2 of the position, of a few shifted coordinates
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.analysis.addresses.index_bits import IndexBits
from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtUIOp, SIToFPOp, TruncIOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp
from deuteron.ir.types import bit_width_of, element_type_of, i1, i32, is_float, shape_of, with_element_type


class Made:
    """What is inserted before the current op, and found again in the blocks around it."""

    def __init__(self) -> None:
        self.op: Operation | None = None
        self._known: ChainMap[Hashable, SSAValue] = ChainMap()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """In a block within that of the current op: what is made there is known neither after it nor beside it."""
        self._known = self._known.new_child()
        yield
        self._known = self._known.parents

    def insert(self, op: Operation) -> SSAValue:
        return Builder.before(self.op).value(op)

    def constant(self, value: int, type: Attribute) -> SSAValue:
        return Builder.before(self.op).constant(value, type)

    def once(self, key: Hashable, make: Callable[[], SSAValue]) -> SSAValue:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


class IndexTiles:
    """Makes tiles that are known by their place."""

    def __init__(self, made: Made):
        self._made = made

    def bit(self, shape: tuple[int, ...], bit: int) -> SSAValue:
        """Where a bit of the position is set."""
        return self._made.once((shape, bit), lambda: self._make_bit(shape, bit))

    def _make_bit(self, shape: tuple[int, ...], bit: int) -> SSAValue:
        axis, along = axis_of_bit(shape, bit)
        masked = self._masked(shape[axis], 1 << along)
        is_set = self._made.insert(CmpIOp(masked, self._made.constant(0, masked.type), "ne"))
        return self._along(is_set, axis, shape)

    def place(self, shape: tuple[int, ...], axis: int, difference: int) -> SSAValue:
        """The coordinate along an axis, XOR a number."""
        return self._made.once((shape, axis, difference), lambda: self._make_place(shape, axis, difference))

    def _make_place(self, shape: tuple[int, ...], axis: int, difference: int) -> SSAValue:
        row = self._made.insert(MakeRangeOp(0, shape[axis]))
        row = self._made.insert(arith.XOrIOp(row, self._made.constant(difference, row.type)))
        return self._along(row, axis, shape)

    def tile(self, bits: IndexBits, type: Attribute) -> SSAValue | None:
        """A tile of integers, or of floats made of them; None where it is more than a few shifted coordinates."""
        return self._made.once((bits, type), lambda: self._make_tile(bits, type))

    def _make_tile(self, bits: IndexBits, type: Attribute) -> SSAValue | None:
        if element_type_of(type) == i1:
            return self._make_condition(bits, shape_of(type)) if len(bits.moving) == 1 else None
        if is_float(type):
            whole = self.tile(bits, with_element_type(type, IntegerType(bits.width)))
            return None if whole is None else self._made.insert(SIToFPOp(whole, type))
        if bits.possible >> bit_width_of(i32) - 1 or any(column.bit_count() > 1 for column in bits.columns):
            return None
        wide = self._made.constant(bits.constant, with_element_type(type, i32))
        for (axis, shift), mask in self._moves(bits, shape_of(type)).items():
            part = self._shifted(self._masked(shape_of(type)[axis], mask), shift)
            wide = self._made.insert(arith.XOrIOp(wide, self._along(part, axis, shape_of(type))))
        if bits.width == bit_width_of(i32):
            return wide
        return self._made.insert((TruncIOp if bits.width < bit_width_of(i32) else ExtUIOp)(wide, type))

    def _make_condition(self, bits: IndexBits, shape: tuple[int, ...]) -> SSAValue:
        is_set = self.bit(shape, bits.moving[0])
        if not bits.constant:
            return is_set
        return self._made.insert(arith.XOrIOp(is_set, self._made.constant(True, is_set.type)))

    def _moves(self, bits: IndexBits, shape: tuple[int, ...]) -> dict[tuple[int, int], int]:
        """The bits of coordinates that are shifted alike, by axis and distance."""
        moves: dict[tuple[int, int], int] = {}
        for bit in bits.moving:
            axis, along = axis_of_bit(shape, bit)
            key = axis, bits.columns[bit].bit_length() - 1 - along
            moves[key] = moves.get(key, 0) | 1 << along
        return moves

    def _masked(self, extent: int, mask: int) -> SSAValue:
        """Some bits of the numbers from 0 on."""
        row = self._made.insert(MakeRangeOp(0, extent))
        if mask == extent - 1:
            return row
        return self._made.insert(arith.AndIOp(row, self._made.constant(mask, row.type)))

    def _shifted(self, row: SSAValue, distance: int) -> SSAValue:
        if not distance:
            return row
        amount = self._made.constant(abs(distance), row.type)
        return self._made.insert((arith.ShLIOp if distance > 0 else arith.ShRUIOp)(row, amount))

    def _along(self, row: SSAValue, axis: int, shape: tuple[int, ...]) -> SSAValue:
        """A tile of that shape that changes along one axis only."""
        for other in range(len(shape)):
            if other != axis:
                row = self._made.insert(ExpandDimsOp(row, other))
        return row if shape_of(row.type) == shape else self._made.insert(BroadcastOp(row, shape))


def axis_of_bit(shape: tuple[int, ...], bit: int) -> tuple[int, int]:
    """The axis along which a bit of the position moves, and which bit of the coordinate it is."""
    for axis in reversed(range(len(shape))):
        along = shape[axis].bit_length() - 1
        if bit < along:
            return axis, bit
        bit -= along
    raise AssertionError("a position has no such bit")

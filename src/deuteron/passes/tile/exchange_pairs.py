"""Takes pairs of elements apart: what is reduced over a dimension of extent 2 and repeated along it again is computed
from each element and its partner, which `tt.gather` fetches, whatever the reduction was spelled like.

    %s = tt.reduce(%y, axis = 1, xori)                    of tensor<32x2x2xi32>, which is %x reshaped
    %b = tt.broadcast(tt.expand_dims(%s))         ->      %p = tt.gather %x[%place ^ 2]
    %q = arith.xori(%y, %b)                               %q = %p reshaped

    tt.reduce(%y * %is_left, addi), repeated      ->      arith.select(%bit, %p, %x)         the left one of each pair
    %x ^ select(%c, %left ^ %right, 0)            ->      arith.select(%c, %p, %x)

Such are the steps of sorting networks: of a pair in a thread, a warp or a vector a gather from a partner is a few
instructions. Reshapes and bitcasts are looked through: `root` is the tile of which a value has the bits, in order.
A reshaped tile that is known by its place alone (`analysis/addresses/index_bits.py`) is computed in its shape instead.
Sums of floats with what was multiplied by 0 stay sums, for 0 times infinity is no number; the factors are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from deuteron.analysis.addresses.index_bits import IndexBitsAnalysis
from deuteron.ir.arith import SelectOp, constant_value
from deuteron.ir.casts import ExtSIOp, ExtUIOp, FPToSIOp, SIToFPOp, TruncIOp
from deuteron.ir.effects import is_removable
from deuteron.ir.tt.convert import BitcastOp, FpToFpOp
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp
from deuteron.ir.types import element_type_of, is_tile, shape_of, tile, with_element_type
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.index_tiles import IndexTiles, Made, axis_of_bit

_INTEGER_CASTS = (ExtSIOp, ExtUIOp, TruncIOp)
_CASTS = (*_INTEGER_CASTS, BitcastOp, FpToFpOp, SIToFPOp, FPToSIOp, arith.ExtFOp, arith.TruncFOp)
_SUMS = (arith.AddiOp, arith.OrIOp, arith.XOrIOp)  # x + 0 = x
_EXTREMA = (arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)
_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_COMMUTATIVE = (*_SUMS, *_EXTREMA, arith.AndIOp, arith.MuliOp, arith.AddfOp, arith.MulfOp)


class _Pairs:
    """One function while it is rewritten."""

    def __init__(self) -> None:
        self._bits = IndexBitsAnalysis()
        self._made = Made()
        self._tiles = IndexTiles(self._made)
        self._roots: dict[SSAValue, SSAValue] = {}
        self.has_changed = False

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            rule = _RULES.get(type(op))
            self._made.op = op
            value = rule(self, op) if rule is not None and is_tile(op.results[0].type) else None
            if value is not None:
                self.has_changed = True
                replace(op, [value])
            elif op.regions and not isinstance(op, ReduceOp | ScanOp):
                for inner in (block for region in op.regions for block in region.blocks):
                    with self._made.inside():
                        self.block(inner)

    # -- reshapes and bitcasts ---

    def root(self, value: SSAValue) -> SSAValue:
        return self._roots.get(value, value)

    def as_type(self, value: SSAValue, type: Attribute) -> SSAValue:
        """The bits of a value as another type, of elements as wide and as many."""
        root = self.root(value)
        return root if root.type == type else self._made.once((root, type), lambda: self._cast(root, type))

    def _cast(self, root: SSAValue, type: Attribute) -> SSAValue:
        selected = self._selected_as(root.owner, type) if isinstance(root.owner, SelectOp) else None
        if selected is not None:
            return selected
        result, element = root, element_type_of(type)
        if element != element_type_of(root.type):
            result = self._made.insert(BitcastOp(result, element))
        if shape_of(type) != shape_of(root.type):
            result = self._made.insert(ReshapeOp(result, shape_of(type)))
        self._roots[result] = root
        return result

    def _selected_as(self, op: SelectOp, type: Attribute) -> SSAValue | None:
        """A choice between two values that were of that type before they were cast."""
        branches = [self.root(branch) for branch in (op.true_value, op.false_value)]
        if any(branch.type != type for branch in branches) or shape_of(op.result.type) != shape_of(type):
            return None
        return self._made.insert(SelectOp(op.condition, *branches))

    def cast(self, op: ReshapeOp | BitcastOp) -> SSAValue | None:
        """Enter what a reshape or bitcast is of; gives another value for it where one is simpler."""
        if isinstance(op, ReshapeOp) and op.allow_reorder is not None:
            return None
        bits = self._bits.of(op.result) if isinstance(op, ReshapeOp) else None
        if bits is not None and bits.moving:
            return self._tiles.tile(bits, op.result.type)
        root = self.root(op.src)
        if root is op.src and not isinstance(root.owner, SelectOp):
            self._roots[op.result] = root
            return None
        return self.as_type(root, op.result.type)

    # -- pairs ---

    def broadcast(self, op: BroadcastOp) -> SSAValue | None:
        """What is reduced over pairs, maybe cast, and repeated along them."""
        before, after = shape_of(op.src.type), shape_of(op.result.type)
        axes = [axis for axis, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        if len(axes) != 1 or after[axes[0]] != 2:
            return None
        value, casts, expands = op.src, [], 0
        while isinstance(value.owner, (ExpandDimsOp, *_CASTS)):
            casts += [value.owner] if isinstance(value.owner, _CASTS) else []
            expands += isinstance(value.owner, ExpandDimsOp) and value.owner.axis.value.data == axes[0]
            value = value.owner.operands[0]
        if not isinstance(value.owner, ReduceOp) or expands != 1 or shape_of(value.owner.srcs[0].type) != after:
            return None
        reduced = self._reduced(value.owner, axes[0])
        return None if reduced is None else self.as_type(_recast(self._made, reduced, casts), op.result.type)

    def _reduced(self, op: ReduceOp, axis: int) -> SSAValue | None:
        """What a reduction over pairs gives, at both places of each pair, in the shape of the tile's root."""
        body = list(op.combine.block.ops)
        if op.axis.value.data != axis or len(op.srcs) != 1 or len(body) != 2 or not isinstance(body[0], _COMMUTATIVE):
            return None
        if set(body[0].operands) != set(op.combine.block.args) or body[1].operands[0] is not body[0].result:
            return None
        src = op.srcs[0]
        bit = prod(shape_of(src.type)[axis + 1 :]).bit_length() - 1
        picked = self._picked(src, bit) if isinstance(body[0], _SUMS) else None
        if picked is not None:
            return picked
        shape = shape_of(self._base(src).type)
        pair = [self._moved(src, bit, shape, is_partner) for is_partner in (False, True)]
        return None if None in pair else self._made.insert(_like(body[0], pair, pair[0].type))

    def _base(self, value: SSAValue) -> SSAValue:
        """The root of a tile, of a product with what is known by its place the root of the other factor."""
        if isinstance(value.owner, _PRODUCTS):
            factors = [factor for factor in value.owner.operands if self._bits.of(factor) is None]
            return self._base(factors[0]) if len(factors) == 1 else value
        return self.root(value)

    def _moved(self, value: SSAValue, bit: int, shape: tuple[int, ...], is_partner: bool) -> SSAValue | None:
        """A tile, or the partners of its elements, in the shape of its base. Only the base itself is gathered from."""
        type, op = tile(element_type_of(value.type), shape), value.owner
        bits = self._bits.of(value)
        if bits is not None:
            return self._tiles.tile(bits.exchanged(bit) if is_partner else bits, type)
        if isinstance(op, _PRODUCTS) and self._base(value) is not value:
            operands = [self._moved(operand, bit, shape, is_partner) for operand in op.operands]
            return None if None in operands else self._made.insert(_like(op, operands, type))
        root = self.root(value)
        return self.as_type(self._partners(root, bit) if is_partner else root, type)

    def _partners(self, root: SSAValue, bit: int) -> SSAValue:
        """Of each element the one whose position differs in a bit."""
        return self._made.once((root, bit), lambda: self._make_partners(root, bit))

    def _make_partners(self, root: SSAValue, bit: int) -> SSAValue:
        shape = shape_of(root.type)
        axis, along = axis_of_bit(shape, bit)
        return self._made.insert(GatherOp(root, self._tiles.place(shape, axis, 1 << along), axis))

    def _picked(self, value: SSAValue, bit: int) -> SSAValue | None:
        """Of each pair the element that a sum leaves over, where the other one is 0."""
        casts = []
        while isinstance(value.owner, _INTEGER_CASTS):
            casts.append(value.owner)
            value = value.owner.input
        taken, side = self._taken(value.owner, bit)
        if taken is None:
            return None
        bits = self._bits.of(taken)
        known = None if bits is None else self._tiles.tile(bits.with_bit(bit, side), taken.type)
        if known is not None:
            return _recast(self._made, known, casts)
        root = self.root(taken)
        pair = [self._partners(root, bit), root]
        picked = self._made.once(
            (root, bit, side),
            lambda: self._made.insert(SelectOp(self._tiles.bit(shape_of(root.type), bit), pair[side], pair[1 - side])),
        )
        typed = self.as_type(picked, with_element_type(root.type, element_type_of(taken.type)))
        return _recast(self._made, typed, casts)

    def _taken(self, op: Operation, bit: int) -> tuple[SSAValue | None, int]:
        """What is 0 but on one side of each pair: the value, and the side on which it is itself."""
        if isinstance(op, arith.MuliOp):
            candidates = [(op.lhs, op.rhs, 1), (op.rhs, op.lhs, 1)]
        elif isinstance(op, SelectOp) and constant_value(op.false_value) == 0:
            candidates = [(op.true_value, op.condition, 1)]
        elif isinstance(op, SelectOp) and constant_value(op.true_value) == 0:
            candidates = [(op.false_value, op.condition, 0)]
        else:
            return None, 0
        for value, mask, taken in candidates:
            found = self._bits.of(mask)
            if found is not None and found.moving == (bit,):
                sides = found.constant, found.at(1 << bit)
                if sorted(sides) == [0, 1]:
                    return value, sides.index(taken)
        return None, 0

    # -- conditional exchanges ---

    def xor(self, op: arith.XOrIOp) -> SSAValue | None:
        """x ^ (x ^ y), x ^ (c ? x ^ y : 0), (c ? x : y) ^ (c ? y : x)."""
        return (
            self._xor_of_choices(op)
            or self._other_of(op.lhs, op.rhs, op.result.type)
            or self._other_of(op.rhs, op.lhs, op.result.type)
            or self._exchanged(op.lhs, op.rhs)
            or self._exchanged(op.rhs, op.lhs)
        )

    def _xor_of_choices(self, op: arith.XOrIOp) -> SSAValue | None:
        choices = [self.root(value).owner for value in op.operands]
        if (
            not all(isinstance(choice, SelectOp) for choice in choices)
            or choices[0].condition is not choices[1].condition
        ):
            return None
        (x, y), (other_y, other_x) = ([self.root(v) for v in (c.true_value, c.false_value)] for c in choices)
        if x is not other_x or y is not other_y or x is y:
            return None
        pair = [self.as_type(value, op.result.type) for value in (x, y)]
        return self._made.insert(arith.XOrIOp(*pair))

    def _other_of(self, x: SSAValue, difference: SSAValue, type: Attribute) -> SSAValue | None:
        """y, where the difference is x ^ y."""
        op = self.root(difference).owner
        if not isinstance(op, arith.XOrIOp):
            return None
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if self.root(one) is self.root(x):
                return self.as_type(other, type)
        return None

    def _exchanged(self, x: SSAValue, difference: SSAValue) -> SSAValue | None:
        """c ? y : x, where the difference is c ? x ^ y : 0."""
        op = difference.owner
        if not isinstance(op, SelectOp):
            return None
        for is_true, (some, none) in enumerate(((op.false_value, op.true_value), (op.true_value, op.false_value))):
            other = self._other_of(x, some, x.type) if constant_value(none) == 0 else None
            if other is not None:
                return self._made.insert(SelectOp(op.condition, *((other, x) if is_true else (x, other))))
        return None


def _like(op: Operation, operands: Sequence[SSAValue], result_type: Attribute) -> Operation:
    """The same on other operands."""
    return type(op).create(
        operands=operands, result_types=[result_type], properties=dict(op.properties), attributes=dict(op.attributes)
    )


def _recast(made: Made, value: SSAValue, casts: Sequence[Operation]) -> SSAValue:
    """The casts of a value, the last one first, done again on another one."""
    for cast in reversed(casts):
        element = element_type_of(cast.results[0].type)
        value = made.insert(_like(cast, [value], with_element_type(value.type, element)))
    return value


def _erase_unused(block: Block) -> None:
    """What was taken apart is not looked at by the passes that follow."""
    for op in reversed(list(block.ops)):
        for region in op.regions if not isinstance(op, ReduceOp | ScanOp) else ():
            for inner in region.blocks:
                _erase_unused(inner)
        if op.results and all(result.first_use is None for result in op.results) and is_removable(op):
            erase(op)


_RULES: dict[type[Operation], Callable[[_Pairs, Operation], SSAValue | None]] = {
    BroadcastOp: _Pairs.broadcast,
    ReshapeOp: _Pairs.cast,
    BitcastOp: _Pairs.cast,
    arith.XOrIOp: _Pairs.xor,
}


class ExchangePairs(Optimisation):
    """Computes reductions of pairs by exchanging their elements."""

    name = "exchange-pairs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_in(op):
            pairs, block = _Pairs(), function.regions[0].block
            pairs.block(block)
            if pairs.has_changed:
                _erase_unused(block)

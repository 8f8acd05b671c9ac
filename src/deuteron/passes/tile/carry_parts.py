"""Makes loops and branches carry what descriptors and block pointers are made of: each is made where it is used.

    %p = "tt.make_tensor_ptr"(%a, %m, %s, %i)                 scf.for iter_args(%j = %i) {
    scf.for iter_args(%q = %p) {                         ->     %q = "tt.make_tensor_ptr"(%a, %m, %s, %j)
      %x = "tt.load"(%q)                                        %x = "tt.load"(%q)
      %r = "tt.advance"(%q, %n)                                 %k = "arith.addi"(%j, %n)
      "scf.yield"(%r)                                           "scf.yield"(%k)
    }                                                         }

A part that a loop does not change, or that both sides of a branch agree on, is not carried: base, shape and strides
mostly stay those of before the loop. Runs after calls are inlined. What a descriptor loads from out of bounds has to be
the same whichever way control goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import copysign

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from deuteron.analysis.aliasing.points_to import address_sources
from deuteron.errors import CompilationError
from deuteron.ir.arith import SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.block_pointer import AdvanceOp, MakeTensorPtrOp, is_wide
from deuteron.ir.tt.descriptor import MakeTensorDescriptorOp, TensorDescType
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import Padding
from deuteron.ir.types import i64, is_block_pointer
from deuteron.passes.rewrite import replace
from deuteron.passes.tile.block_addresses import widened

Made = MakeTensorPtrOp | MakeTensorDescriptorOp
PointerOp = MakeTensorPtrOp | AdvanceOp
Values = list[SSAValue]


def is_described(type: Attribute) -> bool:
    """Whether values of a type are made of parts."""
    return is_block_pointer(type) or isinstance(type, TensorDescType)


class CarryParts(ModulePass):
    """Replaces descriptors and block pointers that are carried by their parts."""

    name = "carry-parts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            ops = nested_ops(func)
            if any(is_described(value.type) for inner in ops for value in inner.results):
                paddings = _paddings(ops)
                offsets = [offset for inner in ops if isinstance(inner, PointerOp) for offset in inner.offsets]
                _Rewrite(any(map(is_wide, offsets)), paddings).block(func.regions[0].block)


def _paddings(ops: Sequence[Operation]) -> dict[SSAValue, set[bool]]:
    """Of what pads with NaN, and what pads with 0, the descriptors that come from a loop or a branch may be."""
    found = {}
    for op in ops:
        carried = [
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ]
        for value in carried:
            if isinstance(value.type, TensorDescType) and not isinstance(op, MakeTensorDescriptorOp):
                found[value] = {made.pads_with_nan for made in _makers(value)}
    return found


def _makers(value: SSAValue) -> Iterator[MakeTensorDescriptorOp]:
    """Where a descriptor may have been made."""

    def sources(one: SSAValue) -> Sequence[SSAValue]:
        return () if isinstance(one.owner, MakeTensorDescriptorOp) else address_sources(one)

    return (one.owner for one in reached([value], sources) if isinstance(one.owner, MakeTensorDescriptorOp))


class _Rewrite:
    """One function. Ops are rewritten in order, so that whatever an op takes is made by an op already.

    Offsets of block pointers have 64 bits where any has (`is_wide`), so that all that may meet are alike.
    """

    def __init__(self, is_wide: bool, paddings: dict[SSAValue, set[bool]]):
        self._is_wide, self._paddings = is_wide, paddings
        self._rules = {
            MakeTensorPtrOp: self._widen,
            AdvanceOp: self._advance,
            SelectOp: self._select,
            scf.ForOp: self._for,
            scf.WhileOp: self._while,
            scf.IfOp: self._if,
        }

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            if type(op) in self._rules and _touches_described(op):
                self._rules[type(op)](op)
            else:
                self._regions(op)

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def _widen(self, op: MakeTensorPtrOp) -> None:
        if self._is_wide:
            b = Builder.before(op)
            op.operands = [op.base, *op.shape, *op.strides, *(widened(b, offset) for offset in op.offsets)]

    def _advance(self, op: AdvanceOp) -> None:
        b, parts, rank = Builder.before(op), _parts(op.ptr), len(op.offsets)
        moved = [self._moved(b, offset, step) for offset, step in zip(parts[-rank:], op.offsets, strict=True)]
        replace(op, [self._make(b, op.result, [*parts[:-rank], *moved], op.ptr.owner)])

    def _moved(self, b: Builder, offset: SSAValue, step: SSAValue) -> SSAValue:
        if constant_value(step) == 0:
            return offset
        return b.value(arith.AddiOp(offset, widened(b, step) if self._is_wide else step))

    def _select(self, op: SelectOp) -> None:
        b = Builder.before(op)
        pairs = zip(_parts(op.true_value), _parts(op.false_value), strict=True)
        chosen = [one if _is_same(one, two) else b.value(SelectOp(op.condition, one, two)) for one, two in pairs]
        replace(op, [self._make(b, op.result, chosen, op.true_value.owner)])

    def _if(self, op: scf.IfOp) -> None:
        self._regions(op)
        ends = [region.block.last_op for region in op.regions]
        makers = _makers_of(ends[0].operands)
        sides = [_flat(end.operands) for end in ends]
        agreed = [_is_same(*pair) for pair in zip(*sides, strict=True)]
        for end, side in zip(ends, sides, strict=True):
            end.operands = _without(side, agreed)
        new = scf.IfOp(op.cond, [value.type for value in ends[0].operands], *_detached(op))
        self._replace(
            op,
            new,
            [_outside(op, value) if same else None for value, same in zip(sides[0], agreed, strict=True)],
            makers,
        )

    def _for(self, op: scf.ForOp) -> None:
        initial, makers, block = _flat(op.iter_args), _makers_of(op.iter_args), op.body.block
        args = self._expand(block, block.args[1:], initial, makers)
        self.block(block)
        final = _flat(block.last_op.operands)
        fixed = [one is arg or _is_same(one, first) for one, arg, first in zip(final, args, initial, strict=True)]
        block.last_op.operands = _without(final, fixed)
        _drop(block, args, initial, fixed)
        new = scf.ForOp(op.lb, op.ub, op.step, _without(initial, fixed), *_detached(op))
        self._replace(
            op, new, [value if is_fixed else None for value, is_fixed in zip(initial, fixed, strict=True)], makers
        )

    def _while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        initial = _flat(op.arguments)
        entered = self._expand(before, before.args, initial, _makers_of(op.arguments))
        self.block(before)
        decision, *passed = before.last_op.operands
        makers, passed = _makers_of(passed), _flat(passed)
        args = self._expand(after, after.args, passed, makers)
        self.block(after)
        final = _flat(after.last_op.operands)
        fixed = [False] * max(len(initial), len(passed))
        for index in range(min(len(initial), len(passed))):
            stays = final[index] is args[index] or _is_same(final[index], initial[index])
            fixed[index] = passed[index] is entered[index] and stays
        before.last_op.operands = [decision, *_without(passed, fixed)]
        after.last_op.operands = _without(final, fixed)
        _drop(before, entered, initial, fixed)
        _drop(after, args, initial, fixed)
        new = scf.WhileOp(_without(initial, fixed), [value.type for value in _without(passed, fixed)], *_detached(op))
        self._replace(op, new, [initial[index] if fixed[index] else None for index in range(len(passed))], makers)

    def _expand(self, block: Block, carried: Sequence[SSAValue], initial: Values, makers: list[Made | None]) -> Values:
        """Give a block an argument for each part; what was carried is made of them where it begins."""
        b = Builder(InsertPoint.at_start(block), block.parent_op().location)
        types, args = iter(initial), []
        for old, maker in zip(list(carried), makers, strict=True):
            count = _count(maker)
            parts = [block.insert_arg(next(types).type, old.index) for _ in range(count)] if maker else [old]
            if maker:
                for part in parts:
                    part.location, part.name_hint = old.location, old.name_hint
                old.replace_all_uses_with(self._make(b, old, parts, maker))
                block.erase_arg(old)
            else:
                next(types)
            args += parts
        return args

    def _replace(
        self, op: Operation, new: Operation, settled: list[SSAValue | None], makers: list[Made | None]
    ) -> None:
        """Put the new op in the place of the old one; what is not settled are its results, in order."""
        new.attributes |= op.attributes
        Builder.before(op).insert(new)
        results, values = iter(new.results), []
        source = iter([next(results) if value is None else value for value in settled])
        b = Builder(InsertPoint.before(op), op.location)
        for old, maker in zip(op.results, makers, strict=True):
            parts = [next(source) for _ in range(_count(maker))]
            values.append(self._make(b, old, parts, maker) if maker else parts[0])
        replace(op, values)

    def _make(self, b: Builder, old: SSAValue, parts: Values, like: Made) -> SSAValue:
        """What `old` was, made of parts; `like` is one of those that it may be."""
        rank, (base, *rest) = len(like.shape), parts
        if isinstance(like, MakeTensorPtrOp):
            strides, offsets = rest[rank : 2 * rank], rest[2 * rank :]
            new = MakeTensorPtrOp(base, rest[:rank], strides, offsets, old.type, like.order.get_values())
        else:
            strides = [*rest[rank:], b.constant(1, i64)]
            new = MakeTensorDescriptorOp(base, rest[:rank], strides, old.type, self._padding(old, like))
        made = b.value(new)
        made.name_hint = old.name_hint
        return made

    def _padding(self, value: SSAValue, like: MakeTensorDescriptorOp) -> Padding:
        if len(self._paddings.get(value, ())) > 1:
            raise CompilationError(
                "This tensor descriptor may be one that pads with zero, or one that pads with nan. Give both the same "
                "padding_option.",
                *from_attribute(like.location),
            )
        return Padding.NAN if like.pads_with_nan else Padding.ZERO


def _touches_described(op: Operation) -> bool:
    arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
    return any(is_described(value.type) for value in (*op.operands, *op.results, *arguments))


def _parts(value: SSAValue) -> Values:
    """What a value is made of: of a descriptor all but the last stride, which is 1."""
    made = value.owner
    if isinstance(made, MakeTensorPtrOp):
        return list(made.operands)
    if isinstance(made, MakeTensorDescriptorOp):
        return list(made.operands)[:-1]
    where = made.location if isinstance(made, Operation) else made.parent_op().location
    raise CompilationError(
        f"What {value.type} is made of is not known here. Make it in this function.", *from_attribute(where)
    )


def _flat(values: Sequence[SSAValue]) -> Values:
    """The values, with parts in the places of descriptors and block pointers."""
    return [part for value in values for part in (_parts(value) if is_described(value.type) else [value])]


def _makers_of(values: Sequence[SSAValue]) -> list[Made | None]:
    """What makes each value that has parts."""
    return [value.owner if is_described(value.type) and _parts(value) else None for value in values]


def _count(maker: Made | None) -> int:
    """How many values stand for one that is made so."""
    return len(_parts(maker.result)) if maker else 1


def _is_same(left: SSAValue, right: SSAValue) -> bool:
    """Whether both are one value, or constants that are alike: 0.0 is not -0.0."""
    numbers = [constant_value(value) for value in (left, right)]
    if left is right or None in numbers:
        return left is right
    return left.type == right.type and numbers[0] == numbers[1] and copysign(1, numbers[0]) == copysign(1, numbers[1])


def _outside(op: scf.IfOp, value: SSAValue) -> SSAValue:
    """What both sides agree on, where it may be used after them: a constant of theirs is made again."""
    number = constant_value(value)
    return value if number is None else Builder.before(op).constant(number, value.type)


def _without(values: Values, dropped: Sequence[bool]) -> Values:
    return [value for value, is_dropped in zip(values, dropped, strict=False) if not is_dropped]


def _drop(block: Block, args: Values, initial: Values, fixed: Sequence[bool]) -> None:
    """Take what a loop does not change from before it."""
    for arg, first, is_fixed in zip(args, initial, fixed, strict=False):
        if is_fixed:
            arg.replace_all_uses_with(first)
            block.erase_arg(arg)


def _detached(op: Operation) -> list[Region]:
    return [op.detach_region(region) for region in list(op.regions)]

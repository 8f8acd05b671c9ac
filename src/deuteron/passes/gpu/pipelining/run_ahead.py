"""What a loop computes of values that are needed before their iteration: addresses and masks of loads.

    ^bb0(%k: i32, %p: tile of pointers):      Ahead(loop, [%p, %mask]): addptr, cmpi, the splats; carried %p
      %mask = arith.cmpi %k, ...
      %x = tt.load %p, %mask
      %q = tt.addptr %p, %step                iteration k + 2:  clone with %k -> %k + 2 * step, %p -> what it is then

Nothing in it may have an effect: it runs for iterations that never come, whose loads are masked off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import i1, with_element_type
from deuteron.passes.carried_values import new_argument
from deuteron.passes.effects import is_pure


class Ahead:
    """The ops of a loop's body that some values need, and the values among those it carries that these need."""

    def __init__(self, loop: scf.ForOp, values: Iterable[SSAValue]):
        self._block = loop.body.block
        self._needed: set[Operation] = set()
        self._arguments: set[int] = set()
        self._pending = list(values)
        while self._pending:
            self._visit(self._pending.pop())
        self.ops = [op for op in self._block.ops if op in self._needed]
        self.carried = sorted(self._arguments)

    @property
    def is_pure(self) -> bool:
        """Whether it may run before its iteration."""
        return all(is_pure(op) for op in self.ops)

    def _visit(self, value: SSAValue) -> None:
        owner = value.owner
        if owner is self._block:
            if value.index and value.index - 1 not in self._arguments:
                self._arguments.add(value.index - 1)
                self._pending.append(self._block.last_op.operands[value.index - 1])
            return
        op = self._ancestor(owner)
        if op is not None and op not in self._needed:
            self._needed.add(op)
            self._pending += [operand for inner in op.walk() for operand in inner.operands]

    def _ancestor(self, owner: Operation | Block) -> Operation | None:
        """The op of the loop's body that an op or a block is in; None outside of it."""
        op = owner.parent_op() if isinstance(owner, Block) else owner
        while op is not None and op.parent_block() is not self._block:
            op = op.parent_op()
        return op

    def clone(self, b: Builder, iteration: SSAValue, carried: Sequence[SSAValue]) -> Values:
        """Compute it all for an iteration; `carried` are the values, of those in `self.carried`, that enter it."""
        values = Values({self._block.args[0]: iteration})
        values.update({self._block.args[index + 1]: value for index, value in zip(self.carried, carried, strict=True)})
        for op in self.ops:
            b.location = op.location
            b.insert(op.clone(values))
        return values

    def entering(self, loop: scf.ForOp) -> list[SSAValue]:
        """The carried values that enter the first iteration."""
        return [loop.iter_args[index] for index in self.carried]

    def new_arguments(self, loop: scf.ForOp) -> list[SSAValue]:
        """Arguments of the loop's body for what it carries ahead."""
        likes = [self._block.args[index + 1] for index in self.carried]
        return [new_argument(loop, like.type, like.name_hint) for like in likes]

    def following(self, values: Values) -> list[SSAValue]:
        """The carried values that enter the iteration after one that was cloned."""
        return [values.of(self._block.last_op.operands[index]) for index in self.carried]


class Values(dict[SSAValue, SSAValue]):
    """What values of a loop's body are in an iteration; those from outside are themselves."""

    def of(self, value: SSAValue) -> SSAValue:
        return self.get(value, value)


def addresses_of(load: LoadOp | DescriptorLoadOp) -> list[SSAValue]:
    """What a load needs to know."""
    return list(load.operands)


def masked(b: Builder, load: LoadOp, values: Values, runs: SSAValue | None) -> tuple[SSAValue, SSAValue | None]:
    """Pointers and mask of a load in an iteration; where it does not run, nothing is loaded."""
    pointer, mask = values.of(load.ptr), values.of(load.mask) if load.mask is not None else None
    if runs is None:
        return pointer, mask
    everywhere = b.value(SplatOp.create(operands=[runs], result_types=[with_element_type(pointer.type, i1)]))
    return pointer, everywhere if mask is None else b.value(arith.AndIOp(mask, everywhere))


def comes(b: Builder, iteration: SSAValue, end: SSAValue) -> SSAValue | None:
    """Whether there is such an iteration; None where that is certain."""
    number, bound = _number(iteration), constant_value(end)
    if number is not None and bound is not None and number < bound:
        return None
    return b.value(CmpIOp(iteration, end, "slt"))


def _number(value: SSAValue) -> int | None:
    """The constant that a sum of constants is."""
    if isinstance(value.owner, arith.AddiOp):
        terms = [_number(operand) for operand in value.owner.operands]
        return None if None in terms else sum(terms)
    return constant_value(value)


def lead_of(loop: scf.ForOp, b: Builder, inside: Builder, distance: int) -> tuple[SSAValue, SSAValue]:
    """The iteration that many later, and whether it comes; what does not change is computed in front of the loop."""
    iteration = loop.body.block.args[0]
    lead = b.value(arith.MuliOp(loop.step, b.constant(distance, loop.step.type)))
    runs = inside.value(CmpIOp(iteration, b.value(arith.SubiOp(loop.ub, lead)), "slt"))
    return inside.value(arith.AddiOp(iteration, lead)), runs

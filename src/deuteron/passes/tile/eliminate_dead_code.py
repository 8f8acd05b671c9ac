"""Removes what nobody uses: ops, loads, and values that a loop or an `if` carries in vain.

    %r:2 = "scf.for"(%lb, %ub, %step, %a, %b) ({            %r = "scf.for"(%lb, %ub, %step, %a) ({
    ^bb0(%i: i32, %x: f32, %y: f32):                        ^bb0(%i: i32, %x: f32):
      %x2 = "arith.addf"(%x, %x)                              %x2 = "arith.addf"(%x, %x)
      %y2 = "arith.addf"(%y, %y)                   ->         "scf.yield"(%x2)
      "scf.yield"(%x2, %y2)                                 })
    })                                                      "tt.store"(%p, %r)
    "tt.store"(%p, %r#0)

Ops without a use go first, the last one first. Where a loop or an `if` then gives what is not used, values are live if
an op with an effect needs them, so loop-carried values that feed only each other go too. A `while` keeps all its
values, volatile loads stay.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from deuteron.ir.effects import READ, own_effects
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase, erase_unused

_CARRY = (scf.ForOp, scf.IfOp)


class Liveness:
    """Which values and ops of a module matter: what ops with effects need, directly or not."""

    def __init__(self, module: ModuleOp):
        self.values: set[SSAValue] = set()
        self.ops: set[Operation] = set()
        self._pending: list[SSAValue] = []
        for op in nested_ops(module):
            if any(effect.kind is not READ for effect in own_effects(op)):
                self._mark_op(op)
        while self._pending:
            self._spread(self._pending.pop())

    def _mark_op(self, op: Operation) -> None:
        """An op stays, and so do the ops around it; of what it carries only what is used."""
        if op in self.ops:
            return
        self.ops.add(op)
        self._mark_values(_needed_operands(op))
        for region in op.regions:
            if region.blocks and region.block.last_op is not None and _keeps_all(op):
                self._mark_op(region.block.last_op)
        parent = op.parent_op()
        if parent is not None:
            self._mark_op(parent)

    def _mark_values(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._pending.append(value)

    def _spread(self, value: SSAValue) -> None:
        """Mark what a live value comes from."""
        if isinstance(value, OpResult):
            self._mark_op(value.op)
            self._mark_values(forwarded_from(value))
        elif isinstance(value, BlockArgument):
            owner = value.owner.parent_op()
            if isinstance(owner, scf.ForOp) and value.index:
                self._mark_values([owner.results[value.index - 1]])


def _keeps_all(op: Operation) -> bool:
    return not isinstance(op, _CARRY)


def _needed_operands(op: Operation) -> Iterable[SSAValue]:
    """The operands that an op needs whichever of its results are used."""
    if type(op) is scf.ForOp:
        return op.operands[:3]
    if op.next_op is None and op.has_trait(IsTerminator) and not _keeps_all(op.parent_op()):
        return ()
    return op._operands  # `operands` would make a view


def _remove_dead_ops(block: Block, live: Liveness) -> None:
    for op in reversed(list(block.ops)):
        if op not in live.ops:
            if not op.has_trait(IsTerminator):
                erase(op)
        elif op.regions:
            op = _drop_dead_results(op, live) if isinstance(op, _CARRY) else op
            for region in op.regions:
                for inner in region.blocks:
                    _remove_dead_ops(inner, live)


def _drop_dead_results(op: scf.ForOp | scf.IfOp, live: Liveness) -> Operation:
    """Rebuild a loop or an `if` with only the results that are live."""
    kept = [result.index for result in op.results if result in live.values]
    if len(kept) == len(op.results):
        return op
    for region in op.regions:
        if region.blocks:
            _keep_operands(region.block.last_op, kept)
    if isinstance(op, scf.ForOp):
        block = op.body.block
        for index in reversed(range(len(op.results))):
            if index not in kept:
                block.erase_arg(block.args[index + 1], safe_erase=False)
    return _rebuild(op, kept)


def _keep_operands(op: Operation, kept: list[int]) -> None:
    op.operands = [op.operands[index] for index in kept]


def _rebuild(op: scf.ForOp | scf.IfOp, kept: list[int]) -> Operation:
    regions = [op.detach_region(region) for region in list(op.regions)]
    operands = op.operands
    if isinstance(op, scf.ForOp):
        operands = [*op.operands[:3], *[op.iter_args[index] for index in kept]]
    new = type(op).create(
        operands=list(operands),
        result_types=[op.results[index].type for index in kept],
        properties=op.properties,
        attributes=op.attributes,
        regions=regions,
        location=op.location,
    )
    op.parent.insert_op_before(new, op)
    for result, index in zip(new.results, kept, strict=True):
        op.results[index].replace_all_uses_with(result)
    op.detach()
    op.erase(safe_erase=False)
    return new


class EliminateDeadCode(Optimisation):
    """Removes ops and carried values without a use."""

    name = "eliminate-dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = functions_in(op)
        for function in functions:
            erase_unused(nested_ops(function)[1:])
        if any(map(_gives_in_vain, nested_ops(op, _CARRY))):
            live = Liveness(op)
            for function in functions:
                _remove_dead_ops(function.regions[0].block, live)


def _gives_in_vain(op: scf.ForOp | scf.IfOp) -> bool:
    """Whether a result is not used. Values that only feed each other go on from one to a result that comes later, so
    that there is such a one wherever any are left.
    """
    return any(result.first_use is None for result in op.results)

"""Loops and branches: items with regions. The tiles that they carry have homes, to which each region copies its own.

for ...: x, p = f(x), p + 64        For(..., homes={0: the place of x}); p is an induction, and nowhere in memory
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from deuteron.backend.cpu.plan import items
from deuteron.backend.cpu.plan.inductions import find_inductions
from deuteron.backend.cpu.plan.items import If, While, tile_numbers
from deuteron.backend.cpu.plan.ops.declaration import Declaration, Uncompiled
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor
from deuteron.ir.tt import dot, function, inline_asm, map_elementwise, reduce


class _ControlFlow(Declaration):
    def regions(self, op: Operation) -> Sequence[Region]:
        return op.regions


class _For(_ControlFlow):
    def read(self, op: Operation, storage: ReadVisitor) -> None:
        inductions = find_inductions(op)
        for number, initial in enumerate(op.iter_args):
            argument, result = op.body.block.args[number + 1], op.results[number]
            if number not in inductions:
                storage.read(initial, Use((op, number), op))
                continue
            storage.inductions[argument] = storage.inductions[result] = inductions[number]
            for value in (argument, result):
                storage.read(initial, storage.uses.get(value))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        homes = {}
        for number in tile_numbers(op.results.types):
            argument, result = op.body.block.args[number + 1], op.results[number]
            if argument not in scheduler.storage.inductions:
                homes[number] = _home(scheduler, op, op.iter_args[number], argument, result)
        body = scheduler.region(op.body.block)
        _copy_out(scheduler, body, op.body.block.last_op, op.body.block.last_op.operands, homes, is_loop=True)
        scheduler.add(items.For(op, body, homes))


class _If(_ControlFlow):
    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        homes = {number: scheduler.new_place(op.results[number]) for number in tile_numbers(op.results.types)}
        branches = []
        for region in op.regions:
            branches.append(scheduler.region(region.block) if region.blocks else items.Region())
            if homes:
                terminator = region.block.last_op
                _copy_out(scheduler, branches[-1], terminator, terminator.operands, homes, is_loop=False)
        scheduler.add(If(op, branches, homes))


class _While(_ControlFlow):
    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for number, initial in enumerate(op.arguments):
            storage.read(initial, Use((op, number), op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        before, after = op.before_region.block, op.after_region.block
        homes = {
            number: _home(scheduler, op, op.arguments[number], before.args[number])
            for number in tile_numbers(op.arguments.types)
        }
        result_homes = {number: scheduler.new_place(op.results[number]) for number in tile_numbers(op.results.types)}
        for number, place in result_homes.items():
            scheduler.places[after.args[number]] = place
        regions = scheduler.region(before), scheduler.region(after)
        passed, following = before.last_op.operands[1:], after.last_op.operands
        _copy_out(scheduler, regions[0], before.last_op, passed, result_homes, is_loop=True)
        _copy_out(scheduler, regions[1], after.last_op, following, homes, is_loop=True)
        scheduler.add(While(op, *regions, homes, result_homes))


class _Terminator(Declaration):
    """Part of the item of its parent. What a loop carries on is in memory before it is copied to where it goes."""

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        parent = op.parent_op()
        inductions = find_inductions(parent) if isinstance(parent, scf.ForOp) else {}
        for number, value in enumerate(op.operands):
            if number in inductions:
                for step in inductions[number].steps:
                    storage.read(step, Use((op, number), op))
            elif isinstance(parent, scf.ForOp | scf.WhileOp) and _is_defined_in(value, op.parent_block()):
                storage.require(value, op)
            else:
                storage.read(value, Use((op, number), op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        pass


def _home(scheduler: ScheduleVisitor, op: Operation, initial: SSAValue, *values: SSAValue) -> Place:
    """The place of a loop-carried tile, with its initial contents."""
    home = scheduler.new_place(values[0])
    for value in values:
        scheduler.places[value] = home
    scheduler.root(Keep(op, (initial,), home))
    return home


def _copy_out(
    scheduler: ScheduleVisitor,
    region: items.Region,
    op: Operation,
    values: Sequence[SSAValue],
    homes: dict[int, Place],
    is_loop: bool,
) -> None:
    """Copy what a region ends with to where it is expected; in a loop that may be read until then."""
    with scheduler.inside(region):
        for number, home in homes.items():
            scheduler.root(Keep(op, (values[number],), home, is_pinned=is_loop))


def _is_defined_in(value: SSAValue, block: Block) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent_block() is block


_TERMINATORS = (
    scf.YieldOp,
    scf.ConditionOp,
    function.ReturnOp,
    reduce.ReduceReturnOp,
    reduce.ScanReturnOp,
    map_elementwise.MapElementwiseReturnOp,
)
_UNCOMPILED = (
    scf.ExecuteRegionOp,
    scf.ParallelOp,
    scf.ReduceOp,
    scf.ReduceReturnOp,
    scf.IndexSwitchOp,
    function.FuncOp,
    function.CallOp,
    dot.DotScaledOp,
    inline_asm.ElementwiseInlineAsmOp,
)

DECLARATIONS: dict[type[Operation], Declaration] = {
    scf.ForOp: _For(),
    scf.IfOp: _If(),
    scf.WhileOp: _While(),
    **dict.fromkeys(_TERMINATORS, _Terminator()),
    **dict.fromkeys(_UNCOMPILED, Uncompiled()),
}

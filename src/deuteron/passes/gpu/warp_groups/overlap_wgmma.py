"""Lets dots by wgmma run while others are issued: makes them asynchronous, and waits where it has to be.

    scf.for ... iter_args(%c) {                        scf.for ... iter_args(%c) {
      %d = "ttng.warp_group_dot"(%m, %n, %c)     ->      %d = "ttng.warp_group_dot"(%m, %n, %c) <{isAsync = true}>
      scf.yield %d                                       %e = "ttng.warp_group_dot_wait"(%d) <{pendings = 1}>
    }                                                    scf.yield %e
                                                       }
                                                       %r = "ttng.warp_group_dot_wait"(%loop) <{pendings = 0}>

A dot stays in flight into the next iteration where it only adds up what the loop carries, and reads buffers that
live longer than the iteration: the wait is for the dot of the iteration before, whose buffers may be filled again
after it. One that another dot only adds to has no wait of its own. Any other dot is waited for before the first op
that uses it, or that computes the operand which the next iteration has in the same registers. A wait is also given
the operands in registers that are read until then. Dots that are rounded to 16 bits, or summed in parts, stay as they
are. One is waited for at once where, while it would be in flight, tiles fill many more registers than a thread has:
ptxas finds no room for its operands and its sum, waits for each dot all the same, and takes long to see that. Dots that
follow one another are waited for before threads store what the next one reads, where the buffers of all of them leave
room for few CTAs: an unrolled loop over taps then has the buffers of one, and other CTAs multiply meanwhile.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import BoolAttr, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.analysis.shared_memory.scratch import scratch_bytes
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import viewed
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp
from deuteron.ir.types import bit_width_of, is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.slices.live_tiles import live_registers_at
from deuteron.passes.gpu.warp_groups.spanning_dots import spans_iterations
from deuteron.passes.optimisation import Optimisation

# Times the registers of a thread that tiles fill: with 1.2 times as many a dot of flash-linear-attention spilled 952
# bytes in flight and 656 where it was waited for, with 1.02 a product in scaled blocks 360 either way.
CROWDED = 9 / 8
# Warps on a multiprocessor that hide what each other wait for: a transposed convolution of four taps, 64x64x128 in 4
# warps, with the buffers of all taps 4 resident ones, had 0.4 of Triton's speed, which waits for each dot.
ENOUGH_WARPS = 16


@dataclass(frozen=True)
class OverlapWGMMA(Optimisation):
    """Makes dots by wgmma asynchronous."""

    name = "overlap-wgmma"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            blocks: dict[Block, list[WarpGroupDotOp]] = {}
            for dot in nested_ops(func, WarpGroupDotOp):
                if _may_be_in_flight(dot):
                    blocks.setdefault(dot.parent, []).append(dot)
            self._overlap(func, blocks)

    def _overlap(self, func: FuncOp, blocks: Mapping[Block, list[WarpGroupDotOp]]) -> None:
        spanning = [block for block, dots in blocks.items() if all(map(spans_iterations, dots))]
        crowded = self._crowded(func) if len(spanning) < len(blocks) else set()
        for block, dots in blocks.items():
            if block in spanning:
                _wait_in_next_iteration(block.parent_op(), dots)
            else:
                _wait_before_use(dots, crowded, self._stores_that_wait(dots))

    def _stores_that_wait(self, dots: Sequence[WarpGroupDotOp]) -> set[LocalAllocOp]:
        """What threads store for dots of a block, if buffers of all of them leave room for few CTAs."""
        stored = {dot: _stored_for(dot) for dot in dots}
        every = set().union(*stored.values())
        together, alone = _num_bytes(every), max(map(_num_bytes, stored.values()))
        num_resident = self.config.resident_ctas(together)
        is_enough = num_resident * self.config.num_warps >= ENOUGH_WARPS
        return set() if is_enough or num_resident == self.config.resident_ctas(alone) else every

    def _crowded(self, func: FuncOp) -> set[Operation]:
        """The ops after which tiles fill many more registers than a thread has."""
        most = CROWDED * self.config.registers_per_thread
        return {op for op, registers in live_registers_at(func).items() if registers > most}


def _may_be_in_flight(dot: WarpGroupDotOp) -> bool:
    return not dot.is_async.value.data and bit_width_of(dot.result.type) == 32 and not dot.part_depth


def _wait_in_next_iteration(loop: scf.ForOp, dots: list[WarpGroupDotOp]) -> None:
    _wait(dots, InsertPoint.after(dots[-1]), len(dots))
    results = [loop.res[loop.body.block.args.index(dot.c) - 1] for dot in dots]
    _wait_for(results, InsertPoint.after(loop), 0, loop)


def _stored_for(dot: WarpGroupDotOp) -> set[LocalAllocOp]:
    """The buffers that a dot reads and threads fill in its block."""
    owners = [viewed(descriptor).owner for descriptor in dot.descriptors]
    return {op for op in owners if isinstance(op, LocalAllocOp) and op.operands and op.parent is dot.parent}


def _num_bytes(allocs: Iterable[LocalAllocOp]) -> int:
    return sum(scratch_bytes(alloc) for alloc in allocs)


def _wait_before_use(dots: list[WarpGroupDotOp], crowded: Container[Operation], stores: Container[Operation]) -> None:
    """Each dot before its first use, or at once; those issued later may go on, except over control flow. One that is
    only added to is waited for before the next of `stores`, if any.
    """
    for dot in dots:
        stop, issued = _first_use(dot)
        if any(op in crowded for op in _ops_between(dot, stop)):
            stop, issued = dot.next_op, 0
        elif _is_added_to(dot, dots):
            dot.properties["isAsync"] = BoolAttr.from_bool(True)
            stop, issued = _next_of(stores, dot)
            if stop is not None:
                _wait([dot], InsertPoint.before(stop), issued)
            continue
        if stop is not dot.next_op or _register_operands(dot.c):
            _wait([dot], InsertPoint.before(stop), issued)


def _next_of(stores: Container[Operation], dot: WarpGroupDotOp) -> tuple[Operation | None, int]:
    """The first of `stores` between a dot and the one that adds to it, and how many dots are issued before."""
    op, issued = dot.next_op, 0
    while op is not None and all(use.operation is not op for use in dot.result.uses):
        if op in stores:
            return op, issued
        issued += isinstance(op, WarpGroupDotOp)
        op = op.next_op
    return None, 0


def _ops_between(dot: WarpGroupDotOp, stop: Operation) -> Iterable[Operation]:
    op = dot.next_op
    while op is not stop:
        yield op
        op = op.next_op


def _register_operands(total: SSAValue) -> list[SSAValue]:
    """The operands in registers of a dot in flight, and of those that it adds to: they stay there until the wait. What
    a loop carries on has the same registers, and may be computed anywhere.
    """
    dot = total.owner
    if not isinstance(dot, WarpGroupDotOp) or not dot.is_async.value.data:
        return []
    is_read = is_tile(dot.a.type) and bit_width_of(dot.a.type) < 32  # of those of 32 bits it reads rounded copies
    return [*_register_operands(dot.c), *([dot.a] if is_read else [])]


def _is_added_to(dot: WarpGroupDotOp, dots: Sequence[WarpGroupDotOp]) -> bool:
    """Whether what a dot gives is only added to, by another one: the instructions do that in order by themselves."""
    uses = list(dot.result.uses)
    return len(uses) == 1 and uses[0].operation in dots and uses[0].operation.c is dot.result


def _first_use(dot: WarpGroupDotOp) -> tuple[Operation, int]:
    """The first op after a dot that may not meet it in flight, and how many dots are issued before."""
    stops, issued = {dot.parent.find_ancestor_op_in_block(use.operation) for use in dot.result.uses}, 0
    stops |= _ops_after_reading(dot)
    op = dot.next_op
    while op.next_op is not None and op not in stops and not op.name.startswith("scf."):
        issued += isinstance(op, WarpGroupDotOp)
        op = op.next_op
    return op, issued


def _ops_after_reading(dot: WarpGroupDotOp) -> set[Operation]:
    """What gives the operand of the next iteration, whose registers are those that a dot in flight reads."""
    loop = dot.parent_op()
    if not isinstance(loop, scf.ForOp) or dot.a.owner is not dot.parent:
        return set()
    following = dot.parent.last_op.operands[dot.a.index - 1]
    return {following.owner} if isinstance(following, OpResult) else set()


def _wait(dots: list[WarpGroupDotOp], place: InsertPoint, pendings: int) -> None:
    for dot in dots:
        dot.properties["isAsync"] = BoolAttr.from_bool(True)
    results = [dot.result for dot in dots]
    operands = [operand for result in results for operand in _register_operands(result)]
    _wait_for(results, place, pendings, dots[-1], operands)


def _wait_for(
    sums: list[SSAValue], place: InsertPoint, pendings: int, like: Operation, operands: Sequence[SSAValue] = ()
) -> None:
    """Everything that uses the sums uses what the wait gives instead; the operands are there until then."""
    wait = Builder(place, like.location).insert(WarpGroupDotWaitOp([*sums, *operands], pendings))
    for value, output in zip(sums, wait.outputs, strict=False):
        value.replace_uses_with_if(output, lambda use: use.operation is not wait)
        output.name_hint = value.name_hint

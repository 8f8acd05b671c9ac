"""Delays dots whose operand is computed from another dot of the same iteration, so that both overlap with it.

    "scf.for"(%lo, %hi, %step, %c) ({            "scf.if"(%lo < %hi) ({
    ^bb0(%i, %acc):                                first dot and softmax of iteration %lo -> %p0
      %s = warp_group_dot(%q, %k)                  %r, %q = "scf.for"(%lo + %step, %hi, %step, %c, %p0) ({
      %p = softmax of %s                           ^bb0(%i, %acc, %p):
      %d = warp_group_dot(%p, %v, %acc)    ->        %s = warp_group_dot(%q, %k)
      "scf.yield"(%d)                                %d = warp_group_dot(%p, %v of the iteration before, %acc)
    })                                               %next = softmax of %s
                                                     "scf.yield"(%d, %next)
                                                   })
                                                   warp_group_dot(%q, %v of the last iteration, %r)
                                                 }) else the values that enter the loop

While the tensor cores do the delayed dot, threads compute the operand of the next one; `overlap-wgmma` places
the waits. Delayed are a dot, what depends on it (%acc * alpha), and what is free and needed by nothing else. Where
the first dot depends on the delayed one, or something that has an effect does, or where the registers would not
suffice for the sums of both and the operand between them, the loop stays.

What a delayed dot reads in shared memory is still there in the next iteration: it is made before the loop, or is in
a slot of a ring that is not filled again until then; waits for that slot alone are delayed with their dot. With
`loads` it may also be a load that nothing else reads, which is delayed as well: where warps of their own will copy,
they do so in the order in which dots read. Otherwise no loop is left of one that has one iteration at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.rewriter import InsertPoint

from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.written_arguments import could_be_apart, is_apart, written_arguments
from deuteron.ir.builder import Builder
from deuteron.ir.effects import GLOBAL, ORDER, ORDER_OWN, first_in_order, is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.ttg.async_copy import AsyncWaitOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttg.warp_specialize import SPECIALIZED
from deuteron.ir.ttng.mbarrier import WaitBarrierOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import i1, is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import carry, has_iteration, is_innermost, new_argument
from deuteron.passes.gpu.pipelining.chained_dots import (
    allocs_of,
    dependent_ops,
    dots_to_delay,
    first_dot,
    is_read_by,
    known_later,
    operands_inside,
    ops_giving,
)
from deuteron.passes.gpu.pipelining.run_ahead import without_first
from deuteron.passes.gpu.rings.buffered_loads import Load
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import Values, erase, replace

_FREE = ("tt.expand_dims", "tt.broadcast", "tt.splat")


class _Stages:
    """The ops of a loop's body in two: those that are delayed, and the others.

    `outcomes`: which of the carried values the delayed ones give. `handed_over`: what these need of the others, or of
    the iteration, and `kept`: what of it the loop carries anyway, with its number.
    """

    def __init__(self, block: Block, dots: Sequence[WarpGroupDotOp], before: Sequence[Operation]):
        later, given = known_later(block, dots), block.last_op.operands
        delayed = dependent_ops(block, later) | {*before, *(alloc for op in before for alloc in allocs_of(op))}
        movable = {*ops_giving((value for op in before for value in op.operands), block)}
        operands = {dot.a for dot in dots}
        for op in reversed(list(block.ops)):
            is_movable = is_pure(op) and (_is_free(op) or op in movable) and not operands & {*op.results}
            if is_movable and _is_only_used_by(op, delayed):
                delayed.add(op)
        self.delayed = [op for op in block.ops if op in delayed]
        self.others = [op for op in block.ops if op not in delayed and op is not block.last_op]
        self.outcomes = [index for index, value in enumerate(given) if value in later or value.owner in delayed]
        here = {*block.args, *(result for op in self.others for result in op.results)} - later
        here -= {block.args[1 + index] for index in self.outcomes}
        needed = dict.fromkeys(value for op in self.delayed for value in operands_inside(op) if value in here)
        self.kept = {value: list(given).index(value) for value in needed if value in given}
        self.handed_over = [value for value in needed if value not in self.kept]


def _is_free(op: Operation) -> bool:
    """Whether it costs nothing to do an op an iteration later, and not a tile more to carry."""
    return op.name in _FREE or not any(is_tile(result.type) for result in op.results)


def _is_only_used_by(op: Operation, ops: set[Operation]) -> bool:
    """Whether only these ops use what an op gives, in this iteration or, if it is carried, in the next."""
    uses = [use for result in op.results for use in result.uses]
    return bool(uses) and all(use.operation in ops or _is_carried_to(use, {op, *ops}) for use in uses)


def _is_carried_to(use: Use, ops: set[Operation]) -> bool:
    block = use.operation.parent
    if use.operation is not block.last_op or not isinstance(block.parent_op(), scf.ForOp):
        return False
    argument, result = block.args[1 + use.index], block.parent_op().results[use.index]
    return not list(result.uses) and all(other.operation in ops for other in argument.uses)


@dataclass(frozen=True)
class DelayDots(Optimisation):
    """Delays chained dots by an iteration; with `loads` in functions whose warps are to be specialised, and with
    the loads that they read.
    """

    name = "delay-dots"

    config: GPUConfig
    loads: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if not self.loads or SPECIALIZED in func.attributes:
                for loop in [inner for inner in nested_ops(func, scf.ForOp) if is_innermost(inner)]:
                    self._delay(loop)

    def _delay(self, loop: scf.ForOp) -> None:
        loads = _movable_loads(loop) if self.loads else []
        dots = dots_to_delay(loop, loads, self.config)
        if dots:
            written = written_arguments(loop)
            read = [load for load in loads if is_read_by(load, dots) and is_apart(load, written)]
            has_one = not self.loads and TilePolynomials().most_iterations(loop) == 1
            others = _delay_dots(loop, dots, [*read, *_waits_for(dots)])
            if has_one:
                replace(others, others.iter_args)


def _movable_loads(loop: scf.ForOp) -> list[Load]:
    """The loads of a loop's body that come to the same an iteration later."""
    if first_in_order(loop, GLOBAL, (ORDER, ORDER_OWN)) is not None:
        return []
    written = written_arguments(loop)
    return [op for op in loop.body.block.ops if isinstance(op, Load) and could_be_apart(op, written)]


def _waits_for(dots: Sequence[WarpGroupDotOp]) -> list[WaitBarrierOp]:
    """The waits for slots that only these dots read."""
    waits = [op for op in dots[0].parent.ops if isinstance(op, WaitBarrierOp)]
    return [wait for wait in waits if wait.deps and all(_is_only_read_by(slot, dots) for slot in wait.deps)]


def _is_only_read_by(buffer: SSAValue, dots: Sequence[WarpGroupDotOp]) -> bool:
    users = [use.operation for use in buffer.uses if not isinstance(use.operation, WaitBarrierOp)]
    views = [user.results[0] for user in users if is_view(user)]
    is_read = all(is_view(user) or user in dots for user in users)
    return is_read and all(_is_only_read_by(view, dots) for view in views)


def _delay_dots(loop: scf.ForOp, dots: Sequence[WarpGroupDotOp], before: Sequence[Operation]) -> scf.ForOp:
    """Build a loop anew that issues these dots of an iteration in the next, and before them does the ops
    `before`: loads, and waits for what was copied for them alone. It has an iteration less.
    """
    first, given = first_dot(dots), [dot.a.owner for dot in dots]
    stages = _Stages(loop.body.block, dots, before)
    _guard(loop)
    entering = _do_first_iteration(loop, stages)
    delayed = _delay(loop, stages, first)
    for op in given:
        _put_last(op)
    others = carry(loop, entering, stages.handed_over)
    _do_last_iteration(others, stages.outcomes, delayed)
    return others


def _guard(loop: scf.ForOp) -> None:
    """Move a loop into an `scf.if`, which gives what enters the loop where that has no iteration."""
    b = Builder.before(loop)
    runs = has_iteration(b, loop) or b.constant(True, i1)
    inside, otherwise = Block(), Block([scf.YieldOp(*loop.iter_args)])
    types = [result.type for result in loop.results]
    branch = b.insert(scf.IfOp(runs, types, Region(inside), Region(otherwise)))
    for result, outcome in zip(loop.results, branch.results, strict=True):
        outcome.name_hint = result.name_hint
        result.replace_all_uses_with(outcome)
    loop.detach()
    inside.add_op(loop)


def _do_first_iteration(loop: scf.ForOp, stages: _Stages) -> list[SSAValue]:
    """Before the loop, which then begins with the second; gives what it hands over."""
    block, b = loop.body.block, Builder.before(loop)
    values = Values(zip(block.args, (loop.lb, *loop.iter_args), strict=True))
    _clone(b, stages.others, values)
    b.location = loop.location
    entering = list(loop.iter_args)
    for index, value in enumerate(block.last_op.operands):
        if index not in stages.outcomes:
            entering[index] = values.of(value)
    loop.operands = [*without_first(b, loop), loop.step, *entering]
    return [values.of(value) for value in stages.handed_over]


def _delay(loop: scf.ForOp, stages: _Stages, first: Operation) -> list[Operation]:
    """Do the delayed ops after the dot that begins the iteration, with the values of the iteration before."""
    block = loop.body.block
    values = Values({value: block.args[1 + index] for value, index in stages.kept.items()})
    for value in stages.handed_over:
        values[value] = new_argument(loop, value.type, value.name_hint)
    clones = _clone(Builder(InsertPoint.after(first)), stages.delayed, values)
    given = enumerate(block.last_op.operands)
    block.last_op.operands = [values.of(value) if index in stages.outcomes else value for index, value in given]
    for op in reversed(stages.delayed):
        erase(op)
    return clones


def _put_last(op: Operation) -> None:
    """What gives an operand that is in registers runs after the wait for the dot that reads them until then, unless
    something else in the iteration needs it.
    """
    block = op.parent
    if all(use.operation is block.last_op for result in op.results for use in result.uses):
        op.detach()
        block.insert_op_before(op, block.last_op)


def _do_last_iteration(loop: scf.ForOp, outcomes: Sequence[int], delayed: Sequence[Operation]) -> None:
    """The delayed ops of the last iteration, after the copies that the one after it would have waited for."""
    block = loop.body.block
    values = Values(zip(block.args[1:], loop.results, strict=True))
    b = Builder.after(loop)
    _clone(b, [op for op in block.ops if isinstance(op, AsyncWaitOp) or op in delayed], values)
    results = list(loop.parent_op().results)
    given = [values.of(block.last_op.operands[i]) if i in outcomes else loop.results[i] for i in range(len(results))]
    b.location = loop.location
    b.insert(scf.YieldOp(*given))


def _clone(b: Builder, ops: Iterable[Operation], values: Values) -> list[Operation]:
    clones = []
    for op in ops:
        b.location = op.location
        clones.append(b.insert(op.clone(values)))
    return clones

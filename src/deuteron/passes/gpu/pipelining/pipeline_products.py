"""Delays products whose operand is computed from another product of the same iteration, so that both overlap with it.

    "scf.for"(%lo, %hi, %step, %c) ({            "scf.if"(%lo < %hi) ({
    ^bb0(%i, %acc):                                first product and softmax of iteration %lo -> %p0
      %s = warp_group_dot(%q, %k)                  %r, %q = "scf.for"(%lo + %step, %hi, %step, %c, %p0) ({
      %p = softmax of %s                           ^bb0(%i, %acc, %p):
      %d = warp_group_dot(%p, %v, %acc)    ->        %s = warp_group_dot(%q, %k)
      "scf.yield"(%d)                                %d = warp_group_dot(%p, %v of the iteration before, %acc)
    })                                               %next = softmax of %s
                                                     "scf.yield"(%d, %next)
                                                   })
                                                   warp_group_dot(%q, %v of the last iteration, %r)
                                                 }) else the values that enter the loop

While the tensor cores do the delayed product, threads compute the operand of the next one; `overlap-products` places
the waits. Delayed are a product, what depends on it (%acc * alpha), and what is free and needed by nothing else. Where
the first product depends on the delayed one, or something that has an effect does, or where the registers would not
suffice for the sums of both and the operand between them, the loop stays.

It is part of `pipeline-loads`, which copies what delayed products read an iteration later. Loads that stay loads, and
waits for what TMA copies, are delayed as well, to be in front of their product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.rewriter import InsertPoint

from deuteron.analysis.tile_polynomials import TilePolynomials
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.async_copy import AsyncWaitOp
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view, viewed
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import bit_width_of, byte_width_of, is_tile
from deuteron.layout.linear import REGISTER
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.pipelining.run_ahead import next_iteration
from deuteron.passes.rewrite import Values, erase, is_defined_in

# Of the registers of a thread, for sums and operands at the same time: what addresses and the rest leave.
TILES_SHARE = 3 / 4
MIN_ITERATIONS = 4
_FREE = ("tt.expand_dims", "tt.broadcast", "tt.splat")


def products_to_delay(
    loop: scf.ForOp, loads: Sequence[LoadOp | DescriptorLoadOp], config: GPUConfig
) -> list[WarpGroupDotOp]:
    """The products of a loop that may be delayed by an iteration: all that have an operand of other products, or none.

    What they read of shared memory has to be there in the next iteration: it is made in front of the loop, or comes by
    one of these loads, which nothing else reads. Loops of few iterations stay: most of them would be the first and the
    last one, which overlap with nothing.
    """
    products = _chained_products(loop, config) if not _is_short(loop) else []
    allocs = {alloc.result for load in loads if is_read_by(load, products) for alloc in _allocs_of(load)}
    outside = all(viewed(dot.b) in allocs or not is_defined_in(viewed(dot.b), loop) for dot in products)
    return products if outside else []


def _is_short(loop: scf.ForOp) -> bool:
    known = TilePolynomials()
    extent, step = (known.of(loop.ub) - known.of(loop.lb)).number, constant_value(loop.step)
    return extent is not None and step is not None and extent < MIN_ITERATIONS * step


def is_read_by(load: LoadOp | DescriptorLoadOp, products: Sequence[WarpGroupDotOp]) -> bool:
    """Whether these products read a load, in shared memory, and nothing else does."""
    pending, is_read = [load.result], False
    while pending:
        for use in pending.pop().uses:
            if use.operation in products and use.index == 1:
                is_read = True
            elif isinstance(use.operation, LocalAllocOp) or is_view(use.operation):
                pending += use.operation.results
            else:
                return False
    return is_read


def _allocs_of(op: Operation) -> list[LocalAllocOp]:
    return [use.operation for value in op.results for use in value.uses if isinstance(use.operation, LocalAllocOp)]


def _chained_products(loop: scf.ForOp, config: GPUConfig) -> list[WarpGroupDotOp]:
    """The products that have an operand of others, if delaying them is right as far as values in registers go."""
    block = loop.body.block
    dots = [op for op in block.ops if isinstance(op, WarpGroupDotOp)]
    if any(bit_width_of(dot.result.type) != 32 or dot.part_depth for dot in dots):
        return []
    chained = [dot for dot in dots if not isinstance(dot.a.type, MemDescType) and _products_behind(dot)]
    if chained and not _fit_registers([dot.result for dot in dots] + [dot.a for dot in chained], config):
        return []
    dependent = _dependent_ops(block, _known_later(block, chained))
    needed = {op for dot in chained for op in _ops_behind([dot.a], block)}
    if needed & dependent or any(op not in chained and not is_pure(op) for op in dependent):
        return []
    return chained


def _fit_registers(tiles: Sequence[SSAValue], config: GPUConfig) -> bool:
    """Whether a thread has the registers for tiles at the same time."""
    return sum(map(_registers, tiles)) <= ceil(TILES_SHARE * config.registers_per_thread)


def _registers(tile: SSAValue) -> int:
    """How many of a thread's registers a tile takes."""
    return layout_of(tile.type).in_size(REGISTER) * byte_width_of(tile.type) // 4


def first_product(products: Sequence[WarpGroupDotOp]) -> Operation:
    """The product of the same iteration behind which delayed ones are issued."""
    behind = {op for product in products for op in _products_behind(product)}
    return [op for op in products[0].parent.ops if op in behind][-1]


def _products_behind(dot: WarpGroupDotOp) -> list[Operation]:
    """The products of the same iteration that operand a is computed from."""
    return [op for op in _ops_behind([dot.a], dot.parent) if isinstance(op, WarpGroupDotOp)]


def _ops_behind(values: Iterable[SSAValue], block: Block) -> list[Operation]:
    """The ops of a block that values are computed by."""
    found: set[Operation] = set()
    pending = [*values]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent is block and owner not in found:
            found.add(owner)
            pending += _operands(owner)
    return [op for op in block.ops if op in found]


def _operands(op: Operation) -> list[SSAValue]:
    return [operand for inner in op.walk() for operand in inner.operands]


def _known_later(block: Block, products: Iterable[WarpGroupDotOp]) -> set[SSAValue]:
    """What is known an iteration later where these products are: their results, and what is computed from them."""
    later, count = {product.result for product in products}, -1
    while count != len(later):
        count = len(later)
        later |= {result for op in _dependent_ops(block, later) for result in op.results}
        yielded = zip(block.args[1:], block.last_op.operands, strict=True)
        later |= {argument for argument, value in yielded if value in later}
    return later


def _dependent_ops(block: Block, values: set[SSAValue]) -> set[Operation]:
    """The ops that give these values, or use them."""
    ops = (op for op in block.ops if op is not block.last_op)
    return {op for op in ops if values & {*op.results, *_operands(op)}}


class _Stages:
    """The ops of a loop's body in two: those that are delayed, and the others.

    `outcomes`: which of the carried values the delayed ones give. `handed_over`: what these need of the others, or of
    the iteration, and `kept`: what of it the loop carries anyway, with its number.
    """

    def __init__(self, block: Block, products: Sequence[WarpGroupDotOp], before: Sequence[Operation]):
        later, given = _known_later(block, products), block.last_op.operands
        delayed = _dependent_ops(block, later) | {*before, *(alloc for op in before for alloc in _allocs_of(op))}
        movable = {*_ops_behind((value for op in before for value in op.operands), block)}
        operands = {product.a for product in products}
        for op in reversed(list(block.ops)):
            is_movable = is_pure(op) and (_is_free(op) or op in movable) and not operands & {*op.results}
            if is_movable and _is_only_used_by(op, delayed):
                delayed.add(op)
        self.delayed = [op for op in block.ops if op in delayed]
        self.others = [op for op in block.ops if op not in delayed and op is not block.last_op]
        self.outcomes = [index for index, value in enumerate(given) if value in later or value.owner in delayed]
        here = {*block.args, *(result for op in self.others for result in op.results)} - later
        here -= {block.args[1 + index] for index in self.outcomes}
        needed = dict.fromkeys(value for op in self.delayed for value in _operands(op) if value in here)
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


def delay_products(loop: scf.ForOp, products: Sequence[WarpGroupDotOp], before: Sequence[Operation] = ()) -> None:
    """Build a loop anew that issues these products of an iteration in the next, and in front of them does the ops
    `before`: loads, and waits for what was copied for them alone.
    """
    first, operands = first_product(products), [product.a.owner for product in products]
    stages = _Stages(loop.body.block, products, before)
    _guard(loop)
    entering = _do_first_iteration(loop, stages)
    delayed = _delay(loop, stages, first)
    for op in operands:
        _put_last(op)
    _do_last_iteration(carry(loop, entering, stages.handed_over), stages.outcomes, delayed)


def _guard(loop: scf.ForOp) -> None:
    """Move a loop into an `scf.if`, which gives what enters the loop where that has no iteration."""
    b = Builder.before(loop)
    runs = b.value(CmpIOp(loop.lb, loop.ub, "slt"))
    inside, otherwise = Block(), Block([scf.YieldOp(*loop.iter_args)])
    types = [result.type for result in loop.results]
    branch = b.insert(scf.IfOp(runs, types, Region(inside), Region(otherwise)))
    for result, outcome in zip(loop.results, branch.results, strict=True):
        outcome.name_hint = result.name_hint
        result.replace_all_uses_with(outcome)
    loop.detach()
    inside.add_op(loop)


def _do_first_iteration(loop: scf.ForOp, stages: _Stages) -> list[SSAValue]:
    """In front of the loop, which then begins with the second; gives what it hands over."""
    block, b = loop.body.block, Builder.before(loop)
    values = Values(zip(block.args, (loop.lb, *loop.iter_args), strict=True))
    _clone(b, stages.others, values)
    b.location = loop.location
    entering = list(loop.iter_args)
    for index, value in enumerate(block.last_op.operands):
        if index not in stages.outcomes:
            entering[index] = values.of(value)
    loop.operands = [next_iteration(b, loop, loop.lb), loop.ub, loop.step, *entering]
    return [values.of(value) for value in stages.handed_over]


def _delay(loop: scf.ForOp, stages: _Stages, first: Operation) -> list[Operation]:
    """Do the delayed ops behind the product that begins the iteration, with the values of the iteration before."""
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
    """What gives an operand that is in registers runs behind the wait for the product that reads them until then."""
    block = op.parent
    op.detach()
    block.insert_op_before(op, block.last_op)


def _do_last_iteration(loop: scf.ForOp, outcomes: Sequence[int], delayed: Sequence[Operation]) -> None:
    """The delayed ops of the last iteration, behind the copies that the one after it would have waited for."""
    block = loop.body.block
    values = Values(zip(block.args[1:], loop.results, strict=True))
    b = Builder(InsertPoint.after(loop), loop.location)
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

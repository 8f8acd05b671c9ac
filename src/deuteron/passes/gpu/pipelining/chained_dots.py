"""Which dots of a loop have an operand that is computed from other dots of the same iteration.

    %s = warp_group_dot(%q, %k)
    %p = softmax of %s
    %d = warp_group_dot(%p, %v, %acc)          chained: given, if it may be issued an iteration later

Asked by `delay-dots`, which does that, and before it by `pipeline-loads`: what such a dot reads has to stay in
its slot for an iteration longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, SSAValue

from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.shared_memory.buffer_index import BufferIndex, in_next_iteration, index_of
from deuteron.ir.arith import constant_value
from deuteron.ir.around import is_defined_in
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.layout import MemDescType, words_in_thread
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, num_buffers
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp, LocalStoreOp
from deuteron.ir.ttg.views import is_view, viewed
from deuteron.ir.ttg.warp_specialize import specialized_in
from deuteron.ir.ttng.mbarrier import WaitBarrierOp
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import bit_width_of
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.rings.buffered_loads import Load

# Of the registers of a thread, for sums and operands at the same time: what addresses and the rest leave. Attention of
# 128x128 at D=128 with 8 warps, which takes 160 of 256, gains (benchmarks/results/2026-11-20-delayed-products.md);
# where delaying begins to lose is not measured.
TILES_SHARE = 3 / 4
# Of fewer most would be the first and the last, which overlap with nothing. Not measured.
MIN_ITERATIONS = 4
_READERS = (WarpGroupDotOp, LocalLoadOp, WaitBarrierOp)


def dots_to_delay(loop: scf.ForOp, loads: Sequence[Load], config: GPUConfig) -> list[WarpGroupDotOp]:
    """The dots of a loop that may be delayed by an iteration: all that have an operand of other dots, or none.

    What they read of shared memory has to be there in the next iteration: it is made before the loop, or comes by
    one of these loads, which nothing else reads. Loops of few iterations stay: most of them would be the first and the
    last one, which overlap with nothing.
    """
    dots = _chained_dots(loop, config) if not _is_short(loop) else []
    allocs = {alloc.result for load in loads if is_read_by(load, dots) for alloc in allocs_of(load)}
    stays = all(viewed(dot.b) in allocs or _is_there_later(dot.b, loop) for dot in dots)
    return dots if stays else []


def _is_there_later(buffer: SSAValue, loop: scf.ForOp) -> bool:
    """Whether what is in a buffer is there in the next iteration as well: it is none of the iteration's own, nobody
    else is told that it may be filled again, and if the loop fills it, then certainly another slot.
    """
    source, slot = viewed(buffer), _slot_of(buffer)
    if is_defined_in(source, loop):
        return False
    later = in_next_iteration(slot, loop) if slot is not None else None
    return all(_keeps(op, loop, later) for op in _users(source) if not isinstance(op, _READERS))


def _keeps(op: Operation, loop: scf.ForOp, slot: BufferIndex | None) -> bool:
    """Whether an op that does something to several buffers certainly leaves one of them, in an iteration, as it is."""
    if specialized_in(op) is not specialized_in(loop):
        return False
    if not loop.is_ancestor(op):
        return True
    filled = _filled_by(op)
    other = _slot_of(filled) if filled is not None else None
    return slot is not None and other is not None and slot.differs(other)


def _users(buffer: SSAValue) -> Iterator[Operation]:
    for use in buffer.uses:
        if is_view(use.operation):
            yield from _users(use.operation.results[0])
        else:
            yield use.operation


def _filled_by(op: Operation) -> SSAValue | None:
    """The buffer that an op writes."""
    if isinstance(op, AsyncCopyGlobalToLocalOp | LocalStoreOp):
        return op.dst
    return op.result if isinstance(op, AsyncTMACopyGlobalToLocalOp) else None


def _slot_of(buffer: SSAValue) -> BufferIndex | None:
    """Which of several buffers one is."""
    while isinstance(buffer, OpResult) and is_view(buffer.op):
        if isinstance(buffer.op, MemDescIndexOp):
            return index_of(buffer.op.index, num_buffers(buffer.op.src.type))
        buffer = buffer.op.operands[0]
    return None


def _is_short(loop: scf.ForOp) -> bool:
    distance, step = TilePolynomials().range_of(loop), constant_value(loop.step)
    extent = distance.number if distance is not None else None
    return extent is not None and step is not None and extent < MIN_ITERATIONS * step


def is_read_by(load: Load, dots: Sequence[WarpGroupDotOp]) -> bool:
    """Whether these dots read a load, in shared memory, and nothing else does."""
    pending, is_read = [load.result], False
    while pending:
        for use in pending.pop().uses:
            if use.operation in dots and use.index == 1:
                is_read = True
            elif isinstance(use.operation, LocalAllocOp) or is_view(use.operation):
                pending += use.operation.results
            else:
                return False
    return is_read


def allocs_of(op: Operation) -> list[LocalAllocOp]:
    return [use.operation for value in op.results for use in value.uses if isinstance(use.operation, LocalAllocOp)]


def _chained_dots(loop: scf.ForOp, config: GPUConfig) -> list[WarpGroupDotOp]:
    """The dots that have an operand of others, if delaying them is right as far as values in registers go."""
    block = loop.body.block
    dots = [op for op in block.ops if isinstance(op, WarpGroupDotOp)]
    if any(bit_width_of(dot.result.type) != 32 or dot.part_depth for dot in dots):
        return []
    chained = [dot for dot in dots if not isinstance(dot.a.type, MemDescType) and _dots_giving(dot)]
    if chained and not _fit_registers([dot.result for dot in dots] + [dot.a for dot in chained], config):
        return []
    dependent = dependent_ops(block, known_later(block, chained))
    needed = {op for dot in chained for op in ops_giving([dot.a], block)}
    if needed & dependent or any(op not in chained and not is_pure(op) for op in dependent):
        return []
    return chained


def _fit_registers(tiles: Sequence[SSAValue], config: GPUConfig) -> bool:
    """Whether a thread has the registers for tiles at the same time."""
    return sum(words_in_thread(tile.type) for tile in tiles) <= ceil(TILES_SHARE * config.registers_per_thread)


def first_dot(dots: Sequence[WarpGroupDotOp]) -> Operation:
    """The dot of the same iteration after which delayed ones are issued."""
    giving = {op for dot in dots for op in _dots_giving(dot)}
    return [op for op in dots[0].parent.ops if op in giving][-1]


def _dots_giving(dot: WarpGroupDotOp) -> list[Operation]:
    """The dots of the same iteration that operand a is computed from."""
    return [op for op in ops_giving([dot.a], dot.parent) if isinstance(op, WarpGroupDotOp)]


def ops_giving(values: Iterable[SSAValue], block: Block) -> list[Operation]:
    """The ops of a block that values are computed by."""
    found: set[Operation] = set()
    pending = [*values]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent is block and owner not in found:
            found.add(owner)
            pending += operands_inside(owner)
    return [op for op in block.ops if op in found]


def operands_inside(op: Operation) -> list[SSAValue]:
    """Of itself and of what is in it."""
    return [operand for inner in nested_ops(op) for operand in inner._operands] if op.regions else [*op._operands]


def known_later(block: Block, dots: Iterable[WarpGroupDotOp]) -> set[SSAValue]:
    """What is known an iteration later where these dots are: their results, and what is computed from them."""

    def used_for(value: SSAValue) -> Iterator[SSAValue]:
        for use in value.uses:
            user = block.find_ancestor_op_in_block(use.operation)
            yield from user.results if user is not block.last_op else [block.args[1 + use.index]]

    return set(reached((dot.result for dot in dots), used_for))


def dependent_ops(block: Block, values: set[SSAValue]) -> set[Operation]:
    """The ops that give these values, or use them."""
    last = block.last_op
    return {op for op in block.ops if op is not last and _has_any(op, values)}


def _has_any(op: Operation, values: set[SSAValue]) -> bool:
    return not (values.isdisjoint(op.results) and values.isdisjoint(operands_inside(op)))

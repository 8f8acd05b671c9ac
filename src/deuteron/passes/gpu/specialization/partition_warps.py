"""The rewrite of a function whose loads other warps do: what becomes of it in the default region and in the partition.

default region     wait for a bundle before its first reader, release its slot after the last
partition          the slice that the loads need; wait until buffers are empty, copy into them
registers          where accumulators need more than a launch gives, the partition keeps what addresses take
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import words_in_thread
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttg.warp_specialize import WarpReturnOp, WarpSpecializeOp, WarpYieldOp
from deuteron.ir.ttng.cluster import ClusterBarrierOp
from deuteron.ir.ttng.mbarrier import FenceMBarrierInitOp, WaitBarrierOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import is_tile
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.rings.buffered_loads import Load
from deuteron.passes.gpu.rings.ring import Position, Ring, read_from
from deuteron.passes.gpu.specialization.bundle_loads import Bundle, RingPlan
from deuteron.passes.gpu.specialization.carry_positions import Positions
from deuteron.passes.gpu.specialization.slice_loads import LoadSlice
from deuteron.passes.rewrite import erase

# A warpgroup, as `setmaxnreg` is of one; one of its warps copies where TMA does all. Eight brought matmul nn 4096 from
# 624 to 642 TFLOP/s by cp.async; without such warps it is 644 (benchmarks/results/2026-11-20-specialised-warps.md).
COPYING_WARPS = 4
# Of a thread, besides what dots add up, where nothing else is kept; of a thread that copies. Not measured.
SPARE_REGISTERS, FEWEST_REGISTERS = 24, 40
# Besides, where some tiles are copied by threads and others by TMA: with 40, weights of 8 bits spill 12 bytes.
BOTH_KINDS = 8


class Specialization:
    """The rewrite of one function."""

    def __init__(self, func: FuncOp, slots: dict[RingPlan, int], part: LoadSlice, config: GPUConfig):
        self._block, self._config, self._part = func.body.block, config, part
        self._front = Builder.before(self._block.last_op)
        self._slots = slots

    def rewrite(self) -> None:
        b, end = self._front, self._block.last_op
        bundles = _by_first_reader(self._slots)
        partition, default, body = Block(), Block(), [op for op in self._block.ops if op is not end]
        places = {reader: [one.load for bundle in read for one in bundle.loads] for reader, read in bundles.items()}
        warps = 1 if all(plan.is_filled_by_tma for plan in self._slots) else COPYING_WARPS
        clones = self._part.clone(self._block, partition, warps, places)
        for op in body:
            op.detach()
            default.add_op(op)
        rings = {plan: self._allocate(plan, num_slots) for plan, num_slots in self._slots.items()}
        b.insert(FenceMBarrierInitOp())
        is_shared = any(ring.num_ctas > 1 for ring in rings.values())
        if is_shared:
            b.insert(ClusterBarrierOp())
        ring_of = {bundle: ring for plan, ring in rings.items() for bundle in plan.bundles}
        Builder.at_end(default, b.location).insert(WarpYieldOp())
        Builder.at_end(partition, b.location).insert(WarpReturnOp())
        self._consume(default, bundles, ring_of)
        self._produce(partition, ring_of, clones)
        registers = _requested_registers(default, self._slots, self._config)
        b.insert(WarpSpecializeOp(default, [(partition, warps)], registers))
        if is_shared:
            b.insert(ClusterBarrierOp())

    def _allocate(self, plan: RingPlan, num_slots: int) -> Ring:
        """Filled by copies of every thread, or of one by TMA, and released by every warp that computes."""
        config, loads = self._config, plan.bundles[0].loads
        producers, filling = COPYING_WARPS * config.machine.warp_size, plan.filling_ctas(config.num_ctas)
        return Ring(self._front, loads, num_slots, producers, config.num_warps, filling)

    def _consume(self, block: Block, bundles: dict[Operation, Sequence[Bundle]], ring_of: dict[Bundle, Ring]) -> None:
        read = {(reader, ring_of[bundle]): bundle for reader, found in bundles.items() for bundle in found}

        def visit(reader: Operation, ring: Ring, position: Position) -> None:
            _consume(read[reader, ring], ring, position, reader)

        rings = {reader: [ring_of[bundle] for bundle in found] for reader, found in bundles.items()}
        Positions(rings, visit).begin(block, Ring.first_read)

    def _produce(self, block: Block, ring_of: dict[Bundle, Ring], clones: dict[Load, Load]) -> None:
        loads = {bundle: [clones[one.load] for one in bundle.loads] for bundle in ring_of}
        first = {of_bundle[0]: bundle for bundle, of_bundle in loads.items()}

        def visit(load: Operation, ring: Ring, position: Position) -> None:
            _produce(loads[first[load]], ring, position)

        Positions({load: [ring_of[bundle]] for load, bundle in first.items()}, visit).begin(block, Ring.first_filled)


def _by_first_reader(plans: Iterable[RingPlan]) -> dict[Operation, list[Bundle]]:
    """One of loads by TMA and one of others may have the same."""
    found: dict[Operation, list[Bundle]] = {}
    for bundle in (bundle for plan in plans for bundle in plan.bundles):
        found.setdefault(bundle.first_reader, []).append(bundle)
    return found


def _consume(bundle: Bundle, ring: Ring, position: Position, reader: Operation) -> None:
    """Before the first reader wait for the bundle, after the last release its slot."""
    b = Builder.before(reader)
    slot = ring.slot(b, position)
    ring.wait(b, position, slot)
    kept = _first_kept(reader, bundle)
    for one, buffer in zip(bundle.loads, slot, strict=True):
        read_from(buffer, one.load, Builder.before(kept))
        _move_views(buffer, kept)
    last = _last_access(slot, b.insertion_point.block)
    ring.release(Builder.before(last.next_op), position, slot)


def _first_kept(reader: Operation, bundle: Bundle) -> Operation:
    """The first reader that stays, or what follows it: a conversion of what is loaded becomes a load of its own."""
    loads = {one.load for one in bundle.loads}
    while isinstance(reader, ConvertLayoutOp) and reader.src.owner in loads:
        reader = reader.next_op
    return reader


def _produce(loads: Sequence[Load], ring: Ring, position: Position) -> None:
    """Wait until the slot is empty, and fill it."""
    b = Builder.before(loads[0])
    ring.wait_until_empty(b, position)
    ring.fill(b, loads, position)
    for load in loads:
        erase(load)


def _move_views(buffer: SSAValue, reader: Operation) -> None:
    """Views of a buffer, which came from an allocation before the reader, follow the buffer."""
    for use in list(buffer.uses):
        view = use.operation
        if is_view(view):
            view.detach()
            reader.parent.insert_op_before(view, reader)
            _move_views(view.results[0], reader)


def _last_access(views: Sequence[SSAValue], block: Block) -> Operation:
    accesses, pending = set(), list(views)
    while pending:
        for use in pending.pop().uses:
            if is_view(use.operation):
                pending += use.operation.results
            elif not isinstance(use.operation, WaitBarrierOp):
                accesses.add(use.operation)
    return [op for op in block.ops if op in accesses][-1]


def _requested_registers(default: Block, plans: Collection[RingPlan], config: GPUConfig) -> list[int]:
    """What the copying warps are left with, where the others need more registers than a launch gives each thread: two
    for the pointer of each copy, and some; more where there are copies of both kinds.
    """
    machine, copying_threads = config.machine, COPYING_WARPS * config.machine.warp_size
    at_launch = machine.registers.count // (config.num_threads + copying_threads)
    if dot_registers(default) + computing_registers(default) + SPARE_REGISTERS <= at_launch:
        return []
    filled_by_threads = [plan for plan in plans if not plan.is_filled_by_tma]
    copies = sum(plan.slot_bytes for plan in filled_by_threads) // (max(machine.async_copy_bytes) * copying_threads)
    of_both = BOTH_KINDS if 0 < len(filled_by_threads) < len(plans) else 0
    unit = machine.register_move_unit
    return [max(-(-(2 * copies + SPARE_REGISTERS) // unit) * unit, FEWEST_REGISTERS) + of_both]


def dot_registers(block: Block) -> int:
    """The registers of a thread for what dots add up, and take from registers, at most in one loop. What a dot gives to
    be added to is in the same registers.
    """
    loops: dict[Operation, int] = {}
    for dot in (op for outer in block.ops for op in nested_ops(outer, WarpGroupDotOp)):
        is_step = isinstance(dot.c.owner, WarpGroupDotOp)
        tiles = [value.type for value in ([dot.a] if is_step else [dot.a, dot.result]) if is_tile(value.type)]
        words = sum(map(words_in_thread, tiles))
        loops[dot.parent_op()] = loops.get(dot.parent_op(), 0) + words
    return max(loops.values(), default=0)


def computing_registers(block: Block) -> int:
    """The registers of a thread for what operands of dots are computed of: as many as they take themselves."""
    dots = (op for outer in block.ops for op in nested_ops(outer, WarpGroupDotOp))
    steps = [dot.a.type for dot in dots if is_tile(dot.a.type) and isinstance(dot.c.owner, WarpGroupDotOp)]
    return sum(map(words_in_thread, steps))

"""Gives what products read to warps of their own: these copy it into ring buffers, as far ahead as there is room.

                                     %ring, %full, %empty = "ttg.local_alloc"()
                                     "ttg.warp_specialize"() ({
    "scf.for" ... ({                   "scf.for" ... iter_args(%index = 0, %phase = 0) ({
      %a = "tt.load"(%p)                 "ttng.wait_barrier"(%full[%index], %phase)
      %m = "ttg.local_alloc"(%a)         %m = "ttg.memdesc_index"(%ring, %index)
      ... a product reads %m      ->     ... a product reads %m
      ... %p advances                    "ttng.arrive_barrier"(%empty[%index])
    })                                   "scf.yield"(next %index, next %phase)
                                       })
                                     }, {
                                       "scf.for" ... iter_args(%p, %index = 0, %phase = 0) ({
                                         "ttng.wait_barrier"(%empty[%index], 1 - %phase)
                                         "ttg.async_copy_global_to_local"(%p, %ring[%index])
                                         "ttng.async_copy_mbarrier_arrive"(%full[%index])
                                         "scf.yield"(%p advanced, next %index, next %phase)
                                       })
                                     })

The partition is the slice of the function that its loads need (slice_loads.py); which loads, and the rings, says
ring_buffers.py. Place and phase of a ring go on from loop to loop, so that the first tiles of the next loop, or of the
next round of an outer one, are copied while this one ends. Buffers are given back behind what reads them;
`release-buffers` then moves that behind the wait for a product in flight.

Done on sm_90 where `tl.range(warp_specialize=True)` asks for it, and where products of two warpgroups overlap with what
threads compute; not in functions with atomics, or with other memory accesses whose order may matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.buffer_index import next_index
from deuteron.analysis.descriptor_buffers import block_bytes
from deuteron.analysis.scratch import buffer_bytes
from deuteron.analysis.shared_liveness import shared_buffers
from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp, DescriptorStoreOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp, StoreOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttg.warp_specialize import WARPGROUP, WarpReturnOp, WarpSpecializeOp, WarpYieldOp
from deuteron.ir.ttng.mbarrier import (
    ArriveBarrierOp,
    AsyncCopyMBarrierArriveOp,
    BarrierExpectOp,
    FenceMBarrierInitOp,
    InitBarrierOp,
    WaitBarrierOp,
    barrier_type,
)
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import byte_width_of, i1, i32, is_tile
from deuteron.layout.linear import REGISTER
from deuteron.passes.gpu.allocate_shared import place
from deuteron.passes.gpu.copy_ring import read_from
from deuteron.passes.gpu.pipeline_products import delay_products, is_read_by, products_to_delay
from deuteron.passes.gpu.products import HOPPER
from deuteron.passes.gpu.ring_buffers import Bundle, Load, Ring, find_rings, loads_besides
from deuteron.passes.gpu.run_ahead import carry, new_argument
from deuteron.passes.gpu.slice_loads import LoadSlice
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode

COPYING_WARPS = 4  # one where TMA does all copies
WARP_SIZE = 32
MAX_WARPS = 32
MAX_SHARED_BYTES = 227 * 1024
BARRIER_ROOM = 1024
REGISTERS = 1 << 16
SPARE_REGISTERS = 24  # of a thread, besides what products add up, where nothing else is kept
FEWEST_REGISTERS = 40
OTHER_REGISTERS = 48  # where the same threads copy

Delayed = tuple[list[WarpGroupDotOp], list[Load]]
Place = tuple[SSAValue, SSAValue]  # in a ring: the index of a buffer, and the parity of the round that uses it


@dataclass(eq=False)
class Channel:
    """A ring in memory: its buffers, and for each of them the barriers that say that it is full, and empty."""

    ring: Ring
    capacity: int
    buffers: list[SSAValue]
    full: SSAValue
    empty: SSAValue

    @staticmethod
    def allocate(b: Builder, ring: Ring, capacity: int, num_warps: int) -> Channel:
        """A buffer is filled by copies of every thread, or of one by TMA, and emptied by every warp that computes."""
        arrivals = 1 if ring.is_of_blocks else COPYING_WARPS * WARP_SIZE
        buffers = [b.value(LocalAllocOp(buffers_type(type, capacity))) for type in ring.types]
        for buffer, load in zip(buffers, ring.bundles[0].loads, strict=True):
            buffer.name_hint = load.result.name_hint
        full, empty = (b.value(LocalAllocOp(buffers_type(barrier_type(), capacity))) for _ in range(2))
        full.name_hint, empty.name_hint = "full", "empty"
        for number in range(capacity):
            index = b.constant(number, i32)
            b.insert(InitBarrierOp(b.value(MemDescIndexOp(full, index)), arrivals))
            b.insert(InitBarrierOp(b.value(MemDescIndexOp(empty, index)), num_warps))
        return Channel(ring, capacity, buffers, full, empty)

    def views(self, b: Builder, index: SSAValue) -> list[SSAValue]:
        return [b.value(MemDescIndexOp(buffer, index)) for buffer in self.buffers]

    def following(self, b: Builder, place: Place) -> Place:
        """The place of the next bundle: the parity changes where the ring begins again."""
        index = next_index(b, place[0], self.capacity)
        begins = b.value(CmpIOp(index, b.constant(0, i32), "eq"))
        return index, b.value(arith.XOrIOp(place[1], b.value(arith.ExtUIOp(begins, i32))))


class _Places:
    """Carries the place in each ring through control flow; calls `visit(op, place)` at the ops of `channels`."""

    def __init__(self, channels: dict[Operation, Channel], visit: Callable[[Operation, Place], None]):
        self._channels, self._visit = channels, visit
        self._inside: dict[Operation, list[Channel]] = {}
        for op, channel in channels.items():
            self._note(op.parent_op(), channel)

    def begin(self, block: Block) -> None:
        b = Builder.before(block.first_op)
        zero = b.constant(0, i32)
        self._block(block, {channel: (zero, zero) for channel in self._channels.values()})

    def _note(self, op: Operation | None, channel: Channel) -> None:
        while isinstance(op, scf.ForOp | scf.IfOp):
            inside = self._inside.setdefault(op, [])
            if channel not in inside:
                inside.append(channel)
            op = op.parent_op()

    def _block(self, block: Block, places: dict[Channel, Place]) -> None:
        for op in list(block.ops):
            if (channel := self._channels.get(op)) is not None:
                place = places[channel]
                places[channel] = channel.following(Builder.before(op), place)
                self._visit(op, place)
            elif op in self._inside:
                follow = self._loop if isinstance(op, scf.ForOp) else self._branches
                values = follow(op, self._inside[op], places)
                places.update(zip(self._inside[op], zip(values[::2], values[1::2], strict=True), strict=True))

    def _loop(self, loop: scf.ForOp, inside: list[Channel], places: dict[Channel, Place]) -> Sequence[SSAValue]:
        inner = {channel: (new_argument(loop, i32, "index"), new_argument(loop, i32, "phase")) for channel in inside}
        self._block(loop.body.block, inner)
        new = carry(loop, _flat(inside, places), _flat(inside, inner))
        return new.results[-2 * len(inside) :]

    def _branches(self, branch: scf.IfOp, inside: list[Channel], places: dict[Channel, Place]) -> Sequence[SSAValue]:
        for region in branch.regions:
            if not region.blocks:
                region.add_block(Block())
                Builder.at_end(region.block, branch.location).insert(scf.YieldOp())
            inner = dict(places)
            self._block(region.block, inner)
            region.block.last_op.operands = [*region.block.last_op.operands, *_flat(inside, inner)]
        regions = [branch.detach_region(region) for region in list(branch.regions)]
        types = [*branch.result_types, *[i32] * (2 * len(inside))]
        new = Builder.before(branch).insert(scf.IfOp(branch.cond, types, *regions, dict(branch.attributes)))
        replace(branch, new.results[: len(branch.results)])
        return new.results[-2 * len(inside) :]


def _flat(channels: Sequence[Channel], places: dict[Channel, Place]) -> list[SSAValue]:
    return [value for channel in channels for value in places[channel]]


class _Specialization:
    """The rewrite of one function."""

    def __init__(self, func: FuncOp, capacities: dict[Ring, int], part: LoadSlice, num_warps: int):
        self._block, self._num_warps, self._part = func.body.block, num_warps, part
        self._front = Builder.before(self._block.last_op)
        self._capacities = capacities

    def rewrite(self) -> None:
        b, end = self._front, self._block.last_op
        bundles = {bundle.first_reader: bundle for ring in self._capacities for bundle in ring.bundles}
        partition, default, body = Block(), Block(), [op for op in self._block.ops if op is not end]
        places = {reader: bundle.loads for reader, bundle in bundles.items()}
        warps = 1 if all(ring.is_of_blocks for ring in self._capacities) else COPYING_WARPS
        clones = self._part.clone(self._block, partition, warps, places)
        for op in body:
            op.detach()
            default.add_op(op)
        channels = [Channel.allocate(b, ring, capacity, self._num_warps) for ring, capacity in self._capacities.items()]
        b.insert(FenceMBarrierInitOp())
        of_bundle = {bundle: channel for channel in channels for bundle in channel.ring.bundles}
        Builder.at_end(default, b.location).insert(WarpYieldOp())
        Builder.at_end(partition, b.location).insert(WarpReturnOp())
        self._consume(default, bundles, of_bundle)
        self._produce(partition, {clones[bundle.loads[0]]: bundle for bundle in bundles.values()}, of_bundle, clones)
        registers = _requested_registers(default, channels, self._num_warps)
        b.insert(WarpSpecializeOp(default, [(partition, warps)], registers))

    def _consume(self, block: Block, bundles: dict[Operation, Bundle], channels: dict[Bundle, Channel]) -> None:
        def visit(reader: Operation, place: Place) -> None:
            _consume(bundles[reader], channels[bundles[reader]], place, reader, self._num_warps)

        _Places({op: channels[bundle] for op, bundle in bundles.items()}, visit).begin(block)

    def _produce(
        self,
        block: Block,
        bundles: dict[Operation, Bundle],
        channels: dict[Bundle, Channel],
        clones: dict[Load, Load],
    ) -> None:
        def visit(first: Operation, place: Place) -> None:
            bundle = bundles[first]
            _produce([clones[load] for load in bundle.loads], channels[bundle], place)

        _Places({op: channels[bundle] for op, bundle in bundles.items()}, visit).begin(block)


def _consume(bundle: Bundle, channel: Channel, place: Place, reader: Operation, num_warps: int) -> None:
    """In front of the first reader wait for the bundle, behind the last give the buffers back."""
    b, (index, phase) = Builder.before(reader), place
    views = channel.views(b, index)
    b.insert(WaitBarrierOp(b.value(MemDescIndexOp(channel.full, index)), phase, views))
    for load, view in zip(bundle.loads, views, strict=True):
        read_from(view, load, b)
        _move_views(view, reader)
    last = _last_access(views, b.insertion_point.block)
    b = Builder.before(last.next_op)
    b.insert(ArriveBarrierOp(b.value(MemDescIndexOp(channel.empty, index)), num_warps, None, views))


def _move_views(buffer: SSAValue, reader: Operation) -> None:
    """Views of a buffer, which came from an allocation in front of the reader, follow the buffer."""
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


def _produce(loads: Sequence[Load], channel: Channel, place: Place) -> None:
    """Wait until the buffers are empty, and copy into them."""
    b, (index, phase) = Builder.before(loads[0]), place
    other = b.value(arith.XOrIOp(phase, b.constant(1, i32)))
    b.insert(WaitBarrierOp(b.value(MemDescIndexOp(channel.empty, index)), other))
    full, buffers = b.value(MemDescIndexOp(channel.full, index)), channel.views(b, index)
    if channel.ring.is_of_blocks:
        _copy_blocks(b, loads, buffers, full)
    else:
        _copy(b, loads, buffers, full)
    for load in loads:
        erase(load)


def _copy(b: Builder, loads: Sequence[LoadOp], buffers: Sequence[SSAValue], full: SSAValue) -> None:
    for load, buffer in zip(loads, buffers, strict=True):
        b.location = load.location
        cache, evict = CacheModifier(load.cache.value.data), EvictionPolicy(load.evict.value.data)
        b.insert(AsyncCopyGlobalToLocalOp(load.ptr, buffer, load.mask, cache, evict))
    b.insert(AsyncCopyMBarrierArriveOp(full))


def _copy_blocks(b: Builder, loads: Sequence[DescriptorLoadOp], buffers: Sequence[SSAValue], full: SSAValue) -> None:
    always = b.constant(True, i1)
    b.insert(BarrierExpectOp(full, always, sum(block_bytes(buffer.type) for buffer in buffers)))
    for load, buffer in zip(loads, buffers, strict=True):
        b.location = load.location
        b.insert(AsyncTMACopyGlobalToLocalOp(load.desc, load.indices, full, buffer, always))


def _requested_registers(default: Block, channels: Sequence[Channel], num_warps: int) -> list[int]:
    """What the copying warps are left with, where accumulators need more registers than a launch gives each thread: two
    for the pointer of each copy of 16 bytes, and some.
    """
    at_launch = REGISTERS // (WARP_SIZE * (num_warps + COPYING_WARPS))
    if _product_registers(default) + SPARE_REGISTERS <= at_launch:
        return []
    rings = [channel.ring for channel in channels if not channel.ring.is_of_blocks]
    copies = sum(map(_bytes_of, rings)) // (16 * WARP_SIZE * COPYING_WARPS)
    return [max(-(-(2 * copies + SPARE_REGISTERS) // 8) * 8, FEWEST_REGISTERS)]


def _product_registers(block: Block) -> int:
    """The registers of a thread for what products add up, and take from registers, at most in one loop."""
    loops: dict[Operation, int] = {}
    for dot in (op for outer in block.ops for op in outer.walk() if isinstance(op, WarpGroupDotOp)):
        tiles = [value.type for value in (dot.a, dot.result) if is_tile(value.type)]
        words = sum(layout_of(tile).in_size(REGISTER) * byte_width_of(tile) // 4 for tile in tiles)
        loops[dot.parent_op()] = loops.get(dot.parent_op(), 0) + words
    return max(loops.values(), default=0)


@dataclass(frozen=True)
class SpecializeWarps(ModulePass):
    """Gives the loads of products to four more warps."""

    name = "specialize-warps"

    num_warps: int = 4
    target: str = HOPPER
    num_stages: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target == HOPPER and self.num_warps % WARPGROUP == 0 and self.num_warps + COPYING_WARPS <= MAX_WARPS:
            changed = [self._specialize(func) for func in op.ops if isinstance(func, FuncOp)]
            if any(changed):
                # The addresses, which the default region does not need any more.
                EliminateDeadCode().apply(ctx, op)

    def _specialize(self, func: FuncOp) -> bool:
        is_asked_for = any("tt.warp_specialize" in op.attributes for op in func.walk())
        if not (is_asked_for or self.num_warps == 2 * WARPGROUP) or not _is_in_order(func):
            return False
        rings = find_rings(func, AxisInfoAnalysis(func))
        delayed = _products_to_delay(rings)
        if not self._plan(func, rings) or not (is_asked_for or self._pays(func, rings, delayed)):
            return False
        for loop, (products, loads) in delayed.items():
            delay_products(loop, products, loads)
        if delayed:
            rings = find_rings(func, AxisInfoAnalysis(func))
        plan = self._plan(func, rings)
        if plan:
            _Specialization(func, *plan, self.num_warps).rewrite()
        return True

    def _pays(self, func: FuncOp, rings: Sequence[Ring], delayed: dict[scf.ForOp, Delayed]) -> bool:
        """Where products of two warpgroups overlap with what threads compute, and a multiprocessor has the registers
        for one such program only: two programs overlap by themselves. Where loops are in loops and TMA copies, too: the
        blocks of the next round come while this one is stored. Other products alone do not become faster
        (benchmarks/results/2026-11-20-specialised-warps.md).
        """
        for_two = REGISTERS // (2 * WARP_SIZE * self.num_warps)
        is_alone = _product_registers(func.body.block) + OTHER_REGISTERS > for_two
        return (bool(delayed) or all(map(_goes_on, rings))) and is_alone and not loads_besides(rings)

    def _plan(self, func: FuncOp, rings: Sequence[Ring]) -> tuple[dict[Ring, int], LoadSlice] | None:
        """How many buffers each ring gets, and what computes the addresses; None where it cannot be done."""
        capacities = self._capacities(func, rings)
        part = LoadSlice(func, [load for ring in rings for bundle in ring.bundles for load in bundle.loads])
        return (capacities, part) if capacities and part.is_possible else None

    def _capacities(self, func: FuncOp, rings: Sequence[Ring]) -> dict[Ring, int]:
        """How many buffers each ring has: as many stages as asked for, or as fit; none where not even two do."""
        wanted = {ring: self._stages(ring) for ring in rings}
        room = MAX_SHARED_BYTES - BARRIER_ROOM - _bytes_beside(func, rings)
        for most in range(max(wanted.values(), default=0), 1, -1):
            capacities = {ring: min(stages, most) * ring.bundles_at_once for ring, stages in wanted.items()}
            if sum(count * _bytes_of(ring) for ring, count in capacities.items()) <= room:
                return capacities if min(wanted.values()) > 1 else {}
        return {}

    def _stages(self, ring: Ring) -> int:
        hints = [bundle.loop.attributes.get("tt.num_stages") for bundle in ring.bundles if bundle.loop is not None]
        return max(self.num_stages if hint is None else hint.value.data for hint in hints)


def _products_to_delay(rings: Sequence[Ring]) -> dict[scf.ForOp, Delayed]:
    """In each loop, the products to delay by an iteration, with the loads that they read."""
    loops: dict[scf.ForOp, list[Load]] = {}
    for bundle in (bundle for ring in rings for bundle in ring.bundles):
        if isinstance(bundle.block.parent_op(), scf.ForOp):
            loops.setdefault(bundle.block.parent_op(), []).extend(bundle.loads)
    found = {loop: (products_to_delay(loop, loads), loads) for loop, loads in loops.items()}
    return {
        loop: (products, [load for load in loads if is_read_by(load, products)])
        for loop, (products, loads) in found.items()
        if products
    }


def _goes_on(ring: Ring) -> bool:
    """Whether TMA fills a ring, and again after each of its loops."""
    loops = [bundle.loop for bundle in ring.bundles]
    return ring.is_of_blocks and all(loop is not None and _has_loop_around(loop) for loop in loops)


def _has_loop_around(loop: scf.ForOp) -> bool:
    op = loop.parent_op()
    while op is not None and not isinstance(op, scf.ForOp):
        op = op.parent_op()
    return op is not None


def _is_in_order(func: FuncOp) -> bool:
    """Whether no op orders accesses of global memory: copies come before what comes before them."""
    local = (LoadOp, StoreOp, DescriptorLoadOp, DescriptorStoreOp, LocalAllocOp, LocalLoadOp)
    return not any(
        (op.has_trait(MemoryWriteEffect) or op.has_trait(MemoryReadEffect)) and not isinstance(op, local)
        for op in func.walk()
        if not op.name.startswith("ttng.")
    )


def _bytes_of(ring: Ring) -> int:
    return sum(buffer_bytes(buffers_type(type, 2)) for type in ring.types)


def _bytes_beside(func: FuncOp, rings: Sequence[Ring]) -> int:
    """The shared memory that is in use while the rings are: what is needed behind them may take their place."""
    replaced = {use.operation for ring in rings for b in ring.bundles for load in b.loads for use in load.result.uses}
    outer = {_outermost(bundle.first_reader) for ring in rings for bundle in ring.bundles}
    positions = {inner: number for number, op in enumerate(func.body.block.ops) for inner in op.walk()}
    last = max((positions[op] for op in outer), default=-1)
    buffers = [buffer for buffer in shared_buffers(func) if positions[buffer.op] <= last and buffer.op not in replaced]
    return max((offset + buffer.size for offset, buffer in zip(place(buffers), buffers, strict=True)), default=0)


def _outermost(op: Operation) -> Operation:
    """The op of the function's own block that an op is in."""
    while not isinstance(op.parent_op(), FuncOp):
        op = op.parent_op()
    return op

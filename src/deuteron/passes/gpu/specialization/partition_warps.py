"""The rewrite of a function whose loads other warps do: what becomes of it in the default region and in the partition.

default region     wait for a bundle in front of its first reader, give its buffers back behind the last
partition          the slice that the loads need; wait until buffers are empty, copy into them
registers          where accumulators need more than a launch gives, the partition keeps what addresses take
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.descriptor_buffers import block_bytes
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttg.warp_specialize import WarpReturnOp, WarpSpecializeOp, WarpYieldOp
from deuteron.ir.ttng.cluster import ClusterBarrierOp
from deuteron.ir.ttng.mbarrier import (
    ArriveBarrierOp,
    AsyncCopyMBarrierArriveOp,
    BarrierExpectOp,
    FenceMBarrierInitOp,
    WaitBarrierOp,
)
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import byte_width_of, i1, i32, is_tile
from deuteron.layout.linear import REGISTER
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.clusters.multicast import sharing_ctas
from deuteron.passes.gpu.pipelining.copy_ring import read_from
from deuteron.passes.gpu.specialization.channels import COPYING_WARPS, Channel, Place, Places
from deuteron.passes.gpu.specialization.ring_buffers import Bundle, Load, Ring
from deuteron.passes.gpu.specialization.slice_loads import LoadSlice
from deuteron.passes.rewrite import erase

SPARE_REGISTERS = 24  # of a thread, besides what products add up, where nothing else is kept
FEWEST_REGISTERS = 40


class Specialization:
    """The rewrite of one function."""

    def __init__(self, func: FuncOp, capacities: dict[Ring, int], part: LoadSlice, config: GPUConfig):
        self._block, self._config, self._part = func.body.block, config, part
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
        channels = [Channel.allocate(b, ring, capacity, self._config) for ring, capacity in self._capacities.items()]
        b.insert(FenceMBarrierInitOp())
        is_shared = any(channel.num_ctas > 1 for channel in channels)
        if is_shared:
            b.insert(ClusterBarrierOp())
        of_bundle = {bundle: channel for channel in channels for bundle in channel.ring.bundles}
        Builder.at_end(default, b.location).insert(WarpYieldOp())
        Builder.at_end(partition, b.location).insert(WarpReturnOp())
        self._consume(default, bundles, of_bundle)
        self._produce(partition, {clones[bundle.loads[0]]: bundle for bundle in bundles.values()}, of_bundle, clones)
        registers = _requested_registers(default, channels, self._config)
        b.insert(WarpSpecializeOp(default, [(partition, warps)], registers))
        if is_shared:
            b.insert(ClusterBarrierOp())

    def _consume(self, block: Block, bundles: dict[Operation, Bundle], channels: dict[Bundle, Channel]) -> None:
        def visit(reader: Operation, place: Place) -> None:
            _consume(bundles[reader], channels[bundles[reader]], place, reader, self._config.num_warps)

        Places({op: channels[bundle] for op, bundle in bundles.items()}, visit).begin(block)

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

        Places({op: channels[bundle] for op, bundle in bundles.items()}, visit).begin(block)


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
    empty = b.value(MemDescIndexOp(channel.empty, index))
    b.insert(ArriveBarrierOp(empty, num_warps, None, views, channel.num_ctas))


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
        _copy_blocks(b, loads, buffers, full, channel.num_ctas)
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


def _copy_blocks(
    b: Builder, loads: Sequence[DescriptorLoadOp], buffers: Sequence[SSAValue], full: SSAValue, num_ctas: int
) -> None:
    always = b.constant(True, i1)
    b.insert(BarrierExpectOp(full, always, sum(block_bytes(buffer.type) for buffer in buffers)))
    for load, buffer in zip(loads, buffers, strict=True):
        b.location = load.location
        sharing = sharing_ctas(load, buffer.type, num_ctas)
        b.insert(AsyncTMACopyGlobalToLocalOp(load.desc, load.indices, full, buffer, always, sharing))


def _requested_registers(default: Block, channels: Sequence[Channel], config: GPUConfig) -> list[int]:
    """What the copying warps are left with, where accumulators need more registers than a launch gives each thread: two
    for the pointer of each copy of 16 bytes, and some.
    """
    copying_threads = COPYING_WARPS * config.machine.warp_size
    at_launch = config.machine.registers.count // (config.num_threads + copying_threads)
    if product_registers(default) + SPARE_REGISTERS <= at_launch:
        return []
    rings = [channel.ring for channel in channels if not channel.ring.is_of_blocks]
    copies = sum(ring.num_bytes for ring in rings) // (16 * copying_threads)
    return [max(-(-(2 * copies + SPARE_REGISTERS) // 8) * 8, FEWEST_REGISTERS)]


def product_registers(block: Block) -> int:
    """The registers of a thread for what products add up, and take from registers, at most in one loop."""
    loops: dict[Operation, int] = {}
    for dot in (op for outer in block.ops for op in outer.walk() if isinstance(op, WarpGroupDotOp)):
        tiles = [value.type for value in (dot.a, dot.result) if is_tile(value.type)]
        words = sum(layout_of(tile).in_size(REGISTER) * byte_width_of(tile) // 4 for tile in tiles)
        loops[dot.parent_op()] = loops.get(dot.parent_op(), 0) + words
    return max(loops.values(), default=0)

"""Ring buffers in shared memory between warps that copy and warps that compute, and the place in each of them.

full     filled: of every thread's copies, or of the bytes that TMA brings
empty    read: of every warp that computes
place    which buffer is next, and the parity of the round; carried through loops and branches, from loop to loop
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttng.mbarrier import (
    InitBarrierOp,
    barrier_type,
)
from deuteron.ir.types import i32
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.clusters.multicast import sharing_ctas
from deuteron.passes.gpu.specialization.ring_buffers import Ring
from deuteron.passes.rewrite import replace

COPYING_WARPS = 4  # one where TMA does all copies

Place = tuple[SSAValue, SSAValue]  # in a ring: the index of a buffer, and the parity of the round that uses it


def filling_ctas(ring: Ring, num_ctas: int) -> int:
    """How many blocks of a cluster fill a ring together, that of each of them."""
    blocks = [pair for one in ring.bundles if ring.is_of_blocks for pair in zip(one.loads, one.types, strict=True)]
    return max((sharing_ctas(*pair, num_ctas) for pair in blocks), default=1)


@dataclass(eq=False)
class Channel:
    """A ring in memory: its buffers, and for each of them the barriers that say that it is full, and empty.

    `num_ctas`: how many blocks of a cluster fill it, and wait until the buffers of all of them are empty.
    """

    ring: Ring
    capacity: int
    num_ctas: int
    buffers: list[SSAValue]
    full: SSAValue
    empty: SSAValue

    @staticmethod
    def allocate(b: Builder, ring: Ring, capacity: int, config: GPUConfig) -> Channel:
        """A buffer is filled by copies of every thread, or of one by TMA, and emptied by every warp that computes."""
        filling = filling_ctas(ring, config.num_ctas)
        arrivals = 1 if ring.is_of_blocks else COPYING_WARPS * config.machine.warp_size
        buffers = [b.value(LocalAllocOp(buffers_type(type, capacity))) for type in ring.types]
        for buffer, load in zip(buffers, ring.bundles[0].loads, strict=True):
            buffer.name_hint = load.result.name_hint
        full, empty = (b.value(LocalAllocOp(buffers_type(barrier_type(), capacity))) for _ in range(2))
        full.name_hint, empty.name_hint = "full", "empty"
        for number in range(capacity):
            index = b.constant(number, i32)
            b.insert(InitBarrierOp(b.value(MemDescIndexOp(full, index)), arrivals))
            b.insert(InitBarrierOp(b.value(MemDescIndexOp(empty, index)), config.num_warps * filling))
        return Channel(ring, capacity, filling, buffers, full, empty)

    def views(self, b: Builder, index: SSAValue) -> list[SSAValue]:
        return [b.value(MemDescIndexOp(buffer, index)) for buffer in self.buffers]

    def following(self, b: Builder, place: Place) -> Place:
        """The place of the next bundle."""
        step = b.insert(RingNextOp(*place, self.capacity))
        return step.next_index, step.next_phase


class Places:
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

"""A ring of buffers in shared memory: slots that are filled ahead of what reads them, and used over and over.

    slot        a buffer for each load of a bundle; bundles take one slot after the other, around and around
    position    (index, phase): a slot, and the parity of the round that uses it; `ttg.ring_next` gives the next one
    fill        starts to copy a bundle into a slot: every thread by cp.async, or one thread by TMA
    wait        until what fills the slot has come
    release     what reads the slot is done; it may be filled again

Three slots, of which two are filled ahead:

    bundle      0   1   2   3   4   5  ...
    index       0   1   2   0   1   2
    phase       0   0   0   1   1   1

    fill        0   1   2       3       4            bundle 3 goes where bundle 0 has been
    wait, read          0       1       2
    release                 0       1       2

Who says that a slot is full, and that it is empty again:

    filled by       the warps that read it                      warps of their own
    cp.async        groups of copies, which the user counts     mbarrier `full`: all threads, when their copies are done
    TMA             mbarrier `full`: the bytes of a bundle      the same
    empty           barriers, from the analysis of hazards      mbarrier `empty`: every warp that reads

Phase n of an mbarrier, of parity n % 2, ends when the slot is full, or empty, again. What reads in round n waits for
phase n of `full`; what fills in round n waits for phase n - 1 of `empty`: it begins with parity 1, and passes at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from deuteron.analysis.shared_memory.descriptor_buffers import block_bytes
from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalLoadOp
from deuteron.ir.ttng.mbarrier import (
    ArriveBarrierOp,
    AsyncCopyMBarrierArriveOp,
    BarrierExpectOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
    barrier_type,
)
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.types import i1, i32
from deuteron.passes.gpu.clusters.multicast import sharing_ctas
from deuteron.passes.gpu.rings.buffered_loads import BufferedLoad, Load, is_filled_by_tma, masked
from deuteron.passes.rewrite import Values, erase, replace

Position = tuple[SSAValue, ...]  # the index of a slot, and the phase of its round where the ring has mbarriers


class Ring:
    """The slots of a bundle of loads, all by cp.async or all by TMA.

    `producers`: how many threads fill it by cp.async and say so at `full`; None: groups of copies are waited for.
    `consumers`: how many warps release its slots at `empty`; None: it is in order otherwise. `num_ctas`: how many CTAs
    of the cluster fill it, and wait until the slot of each of them is empty.
    """

    def __init__(
        self,
        b: Builder,
        loads: Sequence[BufferedLoad],
        num_slots: int,
        producers: int | None = None,
        consumers: int | None = None,
        num_ctas: int = 1,
    ):
        self.num_slots, self.num_ctas, self._consumers = num_slots, num_ctas, consumers
        self.is_filled_by_tma = is_filled_by_tma(loads)
        self._slot_bytes = sum(block_bytes(one.buffer) for one in loads)
        self._places = [one.load.location for one in loads]
        self._buffers = [self._allocate(b, one) for one in loads]
        self.full = _allocate_barriers(b, num_slots, "full") if self.is_filled_by_tma or producers else None
        self.empty = _allocate_barriers(b, num_slots, "empty") if consumers else None
        for number in range(num_slots):
            index = b.constant(number, i32)
            if self.full is not None:
                b.insert(InitBarrierOp(_element(b, self.full, index), 1 if self.is_filled_by_tma else producers))
            if self.empty is not None:
                b.insert(InitBarrierOp(_element(b, self.empty, index), consumers * num_ctas))

    def _allocate(self, b: Builder, one: BufferedLoad) -> SSAValue:
        with b.located(one.load.location):
            buffers = b.value(LocalAllocOp(buffers_type(one.buffer, self.num_slots)))
        buffers.name_hint = one.load.result.name_hint
        return buffers

    def position(self, b: Builder, bundle: int) -> Position:
        """That of a bundle by its number; -1: the one before the first."""
        index = b.constant(bundle % self.num_slots, i32)
        return (index, b.constant(bundle // self.num_slots % 2, i32)) if self.full is not None else (index,)

    def first_read(self, b: Builder) -> Position:
        """Where what reads begins: it waits for the first phase of `full` to end."""
        return self.position(b, 0)

    def first_filled(self, b: Builder) -> Position:
        """Where what fills begins: it waits for the phase of `empty` before the first, which counts as ended."""
        return self.position(b, -self.num_slots)

    def following(self, b: Builder, position: Position) -> Position:
        """The position of the next bundle."""
        step = b.insert(RingNextOp(position[0], position[1] if len(position) > 1 else None, self.num_slots))
        return tuple(step.results)

    def slot(self, b: Builder, position: Position) -> list[SSAValue]:
        """The buffers of a slot."""
        elements = []
        for buffers, place in zip(self._buffers, self._places, strict=True):
            with b.located(place):
                elements.append(_element(b, buffers, position[0]))
        return elements

    def fill(
        self,
        b: Builder,
        loads: Sequence[Load],
        position: Position,
        values: Values | None = None,
        runs: SSAValue | None = None,
    ) -> list[SSAValue]:
        """Start to copy what the loads would load; gives the tokens of copies by cp.async.

        `values`: what stands for the loads' operands; `runs`: where it is off, nothing is loaded.
        """
        values = Values() if values is None else values
        if self.is_filled_by_tma:
            self._fill_by_tma(b, loads, position, values, runs)
            return []
        tokens = self._fill_by_threads(b, loads, position, values, runs)
        if self.full is not None:
            b.insert(AsyncCopyMBarrierArriveOp(_element(b, self.full, position[0])))
        return tokens

    def _fill_by_threads(
        self, b: Builder, loads: Sequence[LoadOp], position: Position, values: Values, runs: SSAValue | None
    ) -> list[SSAValue]:
        tokens = []
        for load, buffers in zip(loads, self._buffers, strict=True):
            with b.located(load.location):
                pointer, mask = masked(b, load, values, runs)
                cache, evict = CacheModifier(load.cache.value.data), EvictionPolicy(load.evict.value.data)
                buffer = _element(b, buffers, position[0])
                tokens.append(b.value(AsyncCopyGlobalToLocalOp(pointer, buffer, mask, cache, evict)))
        return tokens

    def _fill_by_tma(
        self, b: Builder, loads: Sequence[DescriptorLoadOp], position: Position, values: Values, runs: SSAValue | None
    ) -> None:
        runs = b.constant(True, i1) if runs is None else runs
        with b.located(self._places[0]):
            full = _element(b, self.full, position[0])
            b.insert(BarrierExpectOp(full, runs, self._slot_bytes))
        for load, buffers in zip(loads, self._buffers, strict=True):
            offsets = [values.of(offset) for offset in load.indices]
            with b.located(load.location):
                buffer = _element(b, buffers, position[0])
                sharing = sharing_ctas(load, buffer.type, self.num_ctas)
                b.insert(AsyncTMACopyGlobalToLocalOp(values.of(load.desc), offsets, full, buffer, runs, sharing))

    def wait(self, b: Builder, position: Position, slot: Sequence[SSAValue]) -> WaitBarrierOp:
        """Wait until the mbarrier of the position says that its slot is full."""
        with b.located(self._places[0]):
            return b.insert(WaitBarrierOp(_element(b, self.full, position[0]), position[1], slot))

    def wait_until_empty(self, b: Builder, position: Position) -> None:
        """Wait until the slot's last bundle has been read; the position is one of those of `first_filled`."""
        with b.located(self._places[0]):
            b.insert(WaitBarrierOp(_element(b, self.empty, position[0]), position[1]))

    def release(self, b: Builder, position: Position, slot: Sequence[SSAValue]) -> None:
        """Every warp that has read the slot says so, to the producers of all CTAs that fill it."""
        with b.located(self._places[0]):
            b.insert(ArriveBarrierOp(_element(b, self.empty, position[0]), self._consumers, None, slot, self.num_ctas))

    def close(self, b: Builder) -> None:
        """End the life of the ring, whose copies are all done."""
        for barriers in filter(None, (self.full, self.empty)):
            for number in range(self.num_slots):
                b.insert(InvalBarrierOp(_element(b, barriers, b.constant(number, i32))))
        for buffers in filter(None, (*self._buffers, self.full, self.empty)):
            b.insert(LocalDeallocOp(buffers))


def _allocate_barriers(b: Builder, num_slots: int, name: str) -> SSAValue:
    barriers = b.value(LocalAllocOp(buffers_type(barrier_type(), num_slots)))
    barriers.name_hint = name
    return barriers


def _element(b: Builder, of: SSAValue, index: SSAValue) -> SSAValue:
    return b.value(MemDescIndexOp(of, index))


def read_from(buffer: SSAValue, load: Load, b: Builder) -> None:
    """Let the users of a load read the buffer instead: itself, where they want it in shared memory as it is there, else
    the tile that is loaded from it at `b`.
    """
    for use in list(load.result.uses):
        user = use.operation
        if isinstance(user, LocalAllocOp) and user.result.type == buffer.type:
            replace(user, [buffer])
        elif isinstance(user, ConvertLayoutOp):
            replace(user, [Builder.before(user).value(LocalLoadOp(buffer, user.result.type))])
    if list(load.result.uses):
        replace(load, [b.value(LocalLoadOp(buffer, load.result.type))])
    else:
        erase(load)

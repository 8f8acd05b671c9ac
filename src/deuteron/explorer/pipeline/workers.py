"""The warps that run a block: its ops in order, on a clock of their own; who waits for others lets them go on.

    worker = Worker("4 warps", 4, scalars, shared, record)
    for _ in worker.run_block(block): ...        each step of the generator: it waits for what is not over yet

An op either computes on tiles, for a time, or starts what runs on by itself, or waits for such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.explorer.pipeline.clocks import (
    BARRIER,
    COPY_LATENCY,
    COPY_UNITS_PER_BYTE,
    DOT_UNITS,
    ELEMENT_UNITS,
    ISSUE,
    LOAD_LATENCY,
    Groups,
    Shared,
)
from deuteron.explorer.pipeline.scalars import Scalars
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, num_buffers
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.ttng.mbarrier import (
    ArriveBarrierOp,
    AsyncCopyMBarrierArriveOp,
    BarrierExpectOp,
    InitBarrierOp,
    WaitBarrierOp,
)
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp, tile_of
from deuteron.ir.types import byte_width_of, element_type_of, is_float, is_tile, num_elements_of, shape_of

MAX_TRIPS = 12  # of a loop: enough to see its steady state, and its end
UNKNOWN_TRIPS = 6


@dataclass(frozen=True)
class Slot:
    """A buffer of an allocation."""

    allocation: LocalAllocOp
    index: int


class Record(Protocol):
    """What is told of: `slot` is one of a ring, `bundle` counts what was copied into the ring."""

    def __call__(
        self, op: Operation, row: object, kind: str, begin: float, end: float, bundle: int | None = None
    ) -> None: ...

    def iteration(self, op: Operation, row: object, number: int, begin: float, end: float) -> None: ...


class Worker:
    """Warps that execute the same ops: those of the program, or of a partition, which only copy."""

    def __init__(
        self,
        name: str,
        num_warps: int,
        scalars: Scalars,
        shared: Shared,
        record: Record,
        is_partition: bool = False,
    ):
        self.name, self.num_warps, self.is_partition, self.time = name, num_warps, is_partition, 0.0
        self._scalars, self._shared, self._record = scalars, shared, record
        self._copies, self._dots = Groups(), Groups()
        self._held: dict[SSAValue, int | None] = {}  # which bundle a tile in registers was loaded from
        self._arriving = 0.0  # when the copies of cp.async that were issued so far are there

    def run_block(self, block: Block) -> Iterator[None]:
        """Execute a block; its terminator's operands are then those of `block.last_op`."""
        for op in block.ops:
            yield from self._run(op)

    def _run(self, op: Operation) -> Iterator[None]:
        if isinstance(op, scf.ForOp):
            yield from self._for(op)
        elif isinstance(op, scf.IfOp):
            yield from self._if(op)
        elif isinstance(op, scf.WhileOp):
            yield from self._while(op)
        elif isinstance(op, WarpSpecializeOp):
            yield from self._specialize(op)
        elif isinstance(op, WaitBarrierOp):
            yield from self._wait_barrier(op)
        else:
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            elif any(is_tile(result.type) for result in op.results):
                self._compute(op)
            else:
                self._scalars.run(op)

    # -- control flow ---

    def _for(self, op: scf.ForOp) -> Iterator[None]:
        begin, end, step = (self._scalars.integer(value) for value in (op.lb, op.ub, op.step))
        is_known = None not in (begin, end) and step
        numbers = range(begin, end, step) if is_known else [None] * UNKNOWN_TRIPS
        block, carried = op.body.block, list(op.iter_args)
        for number, induction in enumerate(numbers[:MAX_TRIPS]):
            self._pass(block.args[1:], carried)
            self._scalars.set(block.args[0], induction)
            started = self.time
            yield from self.run_block(block)
            carried = self._values(block.last_op.operands)
            self._record.iteration(op, self, number, started, self.time)
        self._pass(op.results, carried)

    def _if(self, op: scf.IfOp) -> Iterator[None]:
        is_taken = self._scalars.integer(op.cond) != 0
        region = op.true_region if is_taken or not op.false_region.blocks else op.false_region
        if not is_taken and not op.false_region.blocks:
            return
        yield from self.run_block(region.block)
        self._pass(op.results, region.block.last_op.operands)

    def _while(self, op: scf.WhileOp) -> Iterator[None]:
        carried = list(op.arguments)
        for number in range(MAX_TRIPS):
            before, after = op.before_region.block, op.after_region.block
            self._pass(before.args, carried)
            started = self.time
            yield from self.run_block(before)
            condition, *values = before.last_op.operands
            known = self._scalars.integer(condition)
            if known == 0 or (known is None and number >= UNKNOWN_TRIPS):
                break
            self._pass(after.args, values)
            yield from self.run_block(after)
            carried = self._values(after.last_op.operands)
            self._record.iteration(op, self, number, started, self.time)
        self._pass(op.results, before.last_op.operands[1:])

    def _specialize(self, op: WarpSpecializeOp) -> Iterator[None]:
        """The default region is this worker's, each partition that of another; all go on until all are done."""
        others = [
            Worker(_copying(warps), warps, self._scalars, self._shared, self._record, True) for warps in op.num_warps
        ]
        for other in others:
            other.time = self.time
        running = [self.run_block(op.default.block)]
        running += [other.run_block(region.block) for other, region in zip(others, op.partitions, strict=True)]
        while running:
            running = [steps for steps in running if next(steps, _DONE) is not _DONE]
            yield

    def _values(self, values: Sequence[SSAValue]) -> list[int | None]:
        return [self._scalars.integer(value) for value in values]

    def _pass(self, targets: Sequence[SSAValue], values: Sequence[SSAValue | int | None]) -> None:
        """Give block arguments or results what is passed to them, all at once."""
        numbers = [self._scalars.integer(v) if isinstance(v, SSAValue) else v for v in values]
        for target, number in zip(targets, numbers, strict=True):
            self._scalars.set(target, number)

    # -- memory ---

    def _slot(self, value: SSAValue) -> Slot | None:
        """Which buffer of which allocation a descriptor shows."""
        index = 0
        while not isinstance(value.owner, LocalAllocOp):
            owner = value.owner
            if not isinstance(owner, Operation) or not owner.operands:
                return None
            if isinstance(owner, MemDescIndexOp):
                index = self._scalars.integer(owner.index) or 0
            value = owner.operands[0]
        return Slot(value.owner, index)

    def _fill(self, op: Operation, buffer: SSAValue) -> float:
        """Start a copy into a buffer; when it is there."""
        slot = self._slot(buffer)
        num_bytes = num_elements_of(buffer.type.tile) * byte_width_of(buffer.type.tile)
        begin, end = self.time, self.time + COPY_LATENCY + num_bytes * COPY_UNITS_PER_BYTE
        if slot is not None:
            bundle = self._shared.fills[slot.allocation]
            self._shared.fills[slot.allocation] += 1
            self._shared.held[slot.allocation, slot.index] = bundle
            self._record(op, slot, "copy", begin, end, bundle)
            self._record(op, self, "issue", begin, begin + ISSUE, bundle)
        self.time += ISSUE
        return end

    def _copy_async(self, op: AsyncCopyGlobalToLocalOp) -> None:
        end = self._fill(op, op.dst)
        self._copies.add(end)
        self._arriving = max(self._arriving, end)

    def _copy_tma(self, op: AsyncTMACopyGlobalToLocalOp) -> None:
        if self._scalars.integer(op.pred) == 0:
            return
        buffer = op.result
        end = self._fill(op, buffer)
        num_bytes = num_elements_of(buffer.type.tile) * byte_width_of(buffer.type.tile)
        self._barrier(op.barrier).deliver(end, num_bytes)

    def _commit(self, op: AsyncCommitGroupOp) -> None:
        self._copies.commit()

    def _wait_copies(self, op: AsyncWaitOp) -> None:
        self._wait_until(op, self._copies.done(op.num.value.data))

    def _load(self, op: LoadOp) -> None:
        if not is_tile(op.results[0].type):
            return
        self._record(op, self, "load", self.time, self.time + LOAD_LATENCY)
        self.time += LOAD_LATENCY

    def _store(self, op: StoreOp) -> None:
        if is_tile(op.ptr.type):
            self._take(op, "store", 4 * ISSUE)

    def _load_shared(self, op: LocalLoadOp) -> None:
        slot = self._slot(op.src)
        length = max(0.5, num_elements_of(op.result.type) / (32 * self.num_warps) * ELEMENT_UNITS / 2)
        if slot is not None:
            held = self._shared.held.get((slot.allocation, slot.index))
            self._record(op, slot, "read", self.time, self.time + length, held)
            self._held[op.result] = held
        self._take(op, "compute", length)

    def _allocate(self, op: LocalAllocOp) -> None:
        if op.src is not None:
            self._take(op, "compute", 1.0)

    # -- barriers ---

    def _barrier(self, value: SSAValue):
        slot = self._slot(value)
        return self._shared.barriers[slot and (slot.allocation, slot.index)]

    def _init(self, op: InitBarrierOp) -> None:
        self._barrier(op.alloc).count = op.count.value.data

    def _expect(self, op: BarrierExpectOp) -> None:
        if self._scalars.integer(op.pred) != 0:
            self._barrier(op.alloc).expect(self.time, op.size.value.data)

    def _arrive(self, op: ArriveBarrierOp) -> None:
        if op.pred is None or self._scalars.integer(op.pred) != 0:
            self._barrier(op.alloc).arrive(self.time, op.count.value.data)
            self._record(op, self, "arrive", self.time, self.time)

    def _arrive_copies(self, op: AsyncCopyMBarrierArriveOp) -> None:
        barrier = self._barrier(op.alloc)
        barrier.arrive(self._arriving, barrier.count - barrier.arrivals)

    def _wait_barrier(self, op: WaitBarrierOp) -> Iterator[None]:
        parity, barrier = self._scalars.integer(op.phase), self._barrier(op.alloc)
        for _ in range(1000):
            passed = barrier.passed(parity or 0)
            if passed is not None:
                self._wait_until(op, passed)
                return
            yield

    def _wait_until(self, op: Operation, time: float) -> None:
        self._record(op, self, "wait", self.time, max(self.time, time))
        self.time = max(self.time, time)

    def _sync(self, op: BarrierOp) -> None:
        self._record(op, self, "barrier", self.time, self.time + BARRIER)
        self.time += BARRIER

    # -- arithmetic ---

    def _compute(self, op: Operation) -> None:
        most = max(num_elements_of(value.type) for value in (*op.operands, *op.results) if is_tile(value.type))
        length = most / (32 * self.num_warps) * ELEMENT_UNITS * _weight(op)
        if length:
            self._take(op, "compute", length)

    def _take(self, op: Operation, kind: str, length: float) -> None:
        self._record(op, self, kind, self.time, self.time + length)
        self.time += length

    def _warp_group_dot(self, op: WarpGroupDotOp) -> None:
        begin = max(self.time, self._shared.tensor_cores_free)
        end = begin + _dot_length(op)
        self._shared.tensor_cores_free = end
        held = self._read_operands(op, begin, end)
        self._record(op, "tensor cores", "dot", begin, end, held)
        self._dots.add(end)
        self._dots.commit()
        self._take(op, "issue", ISSUE)
        if not op.is_async.value.data:
            self._wait_until(op, end)

    def _wait_dots(self, op: WarpGroupDotWaitOp) -> None:
        self._wait_until(op, self._dots.done(op.pendings.value.data))

    def _dot(self, op: DotOp | SlicedDotOp) -> None:
        end = self.time + _dot_length(op)
        held = self._read_operands(op, self.time, end)
        self._record(op, self, "dot", self.time, end, held)
        self.time = end

    def _read_operands(self, op: Operation, begin: float, end: float) -> int | None:
        """The slots of rings that a dot reads are read for as long; which bundle they hold."""
        found = self._held.get(op.a)
        for operand in (op.a, op.b):
            slot = self._slot(operand) if isinstance(operand.type, MemDescType) else None
            if slot is None or num_buffers(slot.allocation.result.type) < 2:
                continue
            held = self._shared.held.get((slot.allocation, slot.index))
            self._record(op, slot, "read", begin, end, held)
            found = held if held is not None else found
        return found


def _weight(op: Operation) -> float:
    """How much an op takes beside an addition of floats: what only moves names of values takes nothing."""
    if op.name.startswith("math.") or isinstance(op, ConvertLayoutOp):
        return 4.0
    if isinstance(op, ReduceOp | ScanOp):
        return 2.0
    is_arithmetic = op.name.startswith("arith.") and not isinstance(op, arith.ConstantOp)
    return (1.0 if is_float(element_type_of(op.results[0].type)) else 0.25) if is_arithmetic else 0.0


def _copying(num_warps: int) -> str:
    return "1 warp that copies" if num_warps == 1 else f"{num_warps} warps that copy"


def _dot_length(op: Operation) -> float:
    depth = shape_of(tile_of(op.a.type))[-1]
    return max(1.0, prod(shape_of(tile_of(op.c.type))) * depth * DOT_UNITS)


_DONE = object()
_HANDLERS = {
    AsyncCopyGlobalToLocalOp: Worker._copy_async,
    AsyncTMACopyGlobalToLocalOp: Worker._copy_tma,
    AsyncCommitGroupOp: Worker._commit,
    AsyncWaitOp: Worker._wait_copies,
    LoadOp: Worker._load,
    StoreOp: Worker._store,
    LocalLoadOp: Worker._load_shared,
    LocalAllocOp: Worker._allocate,
    InitBarrierOp: Worker._init,
    BarrierExpectOp: Worker._expect,
    ArriveBarrierOp: Worker._arrive,
    AsyncCopyMBarrierArriveOp: Worker._arrive_copies,
    BarrierOp: Worker._sync,
    WarpGroupDotOp: Worker._warp_group_dot,
    WarpGroupDotWaitOp: Worker._wait_dots,
    DotOp: Worker._dot,
    SlicedDotOp: Worker._dot,
}

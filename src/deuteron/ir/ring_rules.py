"""What must hold of buffers in shared memory that take turns, and of the mbarriers that say what is in them.

    a buffer        is allocated before its uses, where all of them see it, and not used after its end
    an index        of several buffers is a constant, or what `ttg.ring_next` gives around as many slots
    a phase         goes with its index; the first wait is for slot 0, to read it in phase 0, to fill it in phase 1
    an mbarrier     is initialised, in each slot of a ring, and that is published by a fence, before its uses, and made
                    invalid after the last of them
    a wait          is for one that something arrives at
    a copy          by TMA arrives at one that is waited for
    arrivals        at a slot in a block are as many as its mbarrier counts
    bytes           that are expected for a slot in a block are those of the copies there
    a slot          that warps of their own fill: they wait until it is empty, once; who reads it releases it, once

A fault is an op and what is wrong with it; `verify_ttgir` raises the first. Only what can be told from the ops is
checked: how often loops run, and what predicates are, is not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.nested import nested_ops, of_kind
from deuteron.ir.reached import reached
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, num_buffers
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp
from deuteron.ir.ttg.views import is_view, viewed
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.ttng.mbarrier import (
    ArriveBarrierOp,
    AsyncCopyMBarrierArriveOp,
    BarrierExpectOp,
    FenceMBarrierInitOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
)
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.types import byte_width_of, num_elements_of, shape_of

Fault = tuple[Operation, str]
Positions = Mapping[Operation, int]
Place = tuple[Block, Hashable]  # a block, and the index of a slot there
NumThreads = Callable[[Operation], int]

ARRIVALS = (BarrierExpectOp, ArriveBarrierOp, AsyncCopyMBarrierArriveOp)
FILLS = (BarrierExpectOp, AsyncCopyMBarrierArriveOp)
BARRIER_OPS = (InitBarrierOp, InvalBarrierOp, WaitBarrierOp, *ARRIVALS)


def ring_faults(module: ModuleOp, num_threads: NumThreads) -> Iterator[Fault]:
    """What is wrong in a module; `num_threads` says how many threads execute an op."""
    ops = nested_ops(module)
    allocations = of_kind(ops, LocalAllocOp)
    if not allocations:
        return
    positions = {op: number for number, op in enumerate(ops)}
    fences = of_kind(ops, FenceMBarrierInitOp)
    yield from _lifetime_faults(allocations, positions)
    yield from _index_faults(of_kind(ops, (MemDescIndexOp, RingNextOp)))
    barriers: dict[SSAValue, list[Operation]] = defaultdict(list)
    for op in of_kind(ops, (*BARRIER_OPS, AsyncTMACopyGlobalToLocalOp)):
        is_copy = isinstance(op, AsyncTMACopyGlobalToLocalOp)
        barriers[viewed(op.barrier if is_copy else op.alloc)].append(op)
    for of_barrier in barriers.values():
        yield from _begin_faults(of_barrier, positions, fences)
        yield from _end_faults(of_barrier, positions)
        yield from _copy_faults(of_barrier)
        yield from _arrival_faults(of_barrier, num_threads)
        yield from _byte_faults(of_barrier)
        yield from _phase_faults(of_barrier)
    for op in of_kind(ops, WarpSpecializeOp):
        yield from _release_faults(op)


def _index_of(descriptor: SSAValue) -> SSAValue | None:
    """Which of several buffers a descriptor is; None where there is one."""
    while isinstance(descriptor, OpResult) and is_view(descriptor.op):
        if isinstance(descriptor.op, MemDescIndexOp):
            return descriptor.op.index
        descriptor = descriptor.op.operands[0]
    return None


def _place_of(op: Operation, descriptor: SSAValue) -> Place:
    index = _index_of(descriptor)
    number = constant_value(index) if index is not None else None
    return op.parent, index if number is None else number


# Buffers: before, where they are seen, and not after their end.


def _lifetime_faults(allocations: Sequence[LocalAllocOp], positions: Positions) -> Iterator[Fault]:
    for alloc in allocations:
        users = list(_users(alloc.result))
        for op in users:
            if not _is_before(alloc, op, positions):
                yield op, f"{op.name} uses shared memory that is not allocated before it, where it sees it"
        for end in (op for op in users if isinstance(op, LocalDeallocOp)):
            for op in users:
                around = end.parent.find_ancestor_op_in_block(op)
                if around is not None and positions[around] > positions[end]:
                    yield op, f"{op.name} uses shared memory after the end of its life"


def _is_before(first: Operation, op: Operation, positions: Positions) -> bool:
    """Whether an op is executed whenever another one is, and before it."""
    around = first.parent.find_ancestor_op_in_block(op)
    return around is not None and positions[first] <= positions[around]


def _users(descriptor: SSAValue) -> Iterator[Operation]:
    for use in descriptor.uses:
        yield use.operation
        if is_view(use.operation):
            yield from _users(use.operation.results[0])


# Indices and phases: constants, and steps around a ring.


def _index_faults(steps: Sequence[MemDescIndexOp | RingNextOp]) -> Iterator[Fault]:
    for op in steps:
        count = op.num_slots if isinstance(op, RingNextOp) else shape_of(op.src.type.tile)[0]
        for source in _sources(op.index):
            yield from _source_faults(op, source, count)


def _source_faults(op: Operation, source: SSAValue, count: int) -> Iterator[Fault]:
    number, step = constant_value(source), source.owner
    if number is not None:
        if not 0 <= number < count:
            yield op, f"{op.name} of {count} slots has the index {number}"
    elif not isinstance(step, RingNextOp) or source is not step.next_index:
        yield op, f"{op.name}: an index is a constant or what ttg.ring_next gives, this one is made otherwise"
    elif step.num_slots != count:
        yield op, f"{op.name} of {count} slots has an index that goes around {step.num_slots}"


def _sources(value: SSAValue) -> list[SSAValue]:
    """What a value is in the end, through what loops and branches carry."""
    return [one for one in reached([value], forwarded_from) if not forwarded_from(one)]


def _phase_faults(of_barrier: Sequence[Operation]) -> Iterator[Fault]:
    waits = [op for op in of_barrier if isinstance(op, WaitBarrierOp) and _index_of(op.alloc) is not None]
    for number, wait in enumerate(waits):
        index = _index_of(wait.alloc)
        if not _go_together(index, wait.phase):
            yield wait, f"{wait.name}: the index and the phase do not come from the same ttg.ring_next"
        elif not number:
            slot, phase = _first_position(index, wait.phase, shape_of(viewed(wait.alloc).type.tile)[0])
            begin = int(_is_for_filling(wait))
            if (slot, phase) != (0, begin):
                yield wait, f"{wait.name}: the first is for slot {slot} in phase {phase}, not for 0 in phase {begin}"


def _is_for_filling(wait: WaitBarrierOp) -> bool:
    """Whether a wait is until a slot is empty, which is then filled, and has another mbarrier to say so."""
    fills = [op for op in wait.parent.ops if isinstance(op, FILLS) and viewed(op.alloc) is not viewed(wait.alloc)]
    return any(_place_of(op, op.alloc) == _place_of(wait, wait.alloc) for op in fills)


def _go_together(index: SSAValue, phase: SSAValue) -> bool:
    """Whether index and phase are made by the same ops all the way."""
    seen, pending = {(index, phase)}, [(index, phase)]
    while pending:
        pair = pending.pop()
        if None not in map(constant_value, pair):
            continue
        if pair[0].owner is not pair[1].owner:
            return False
        sources = [forwarded_from(value) for value in pair]
        if not all(sources):
            step = pair[0].owner
            if not isinstance(step, RingNextOp) or pair != (step.next_index, step.next_phase):
                return False
            sources = [[step.index], [step.phase]]
        fresh = [source for source in zip(*sources, strict=True) if source not in seen]
        seen.update(fresh)
        pending += fresh
    return True


def _first_position(index: SSAValue, phase: SSAValue, slots: int) -> tuple[int, int]:
    """The slot and the phase of a wait in the first iteration of the loops around it."""
    steps = 0
    while (number := constant_value(index)) is None:
        step = index.owner
        if isinstance(step, RingNextOp):
            index, phase, steps = step.index, step.phase, steps + 1
        else:
            index, phase = forwarded_from(index)[0], forwarded_from(phase)[0]
    rounds, slot = divmod(number + steps, slots)
    return slot, (rounds + constant_value(phase)) % 2


# mbarriers: how they begin, and what they count.


def _begin_faults(
    of_barrier: Sequence[Operation], positions: Positions, fences: Sequence[FenceMBarrierInitOp]
) -> Iterator[Fault]:
    begins = [op for op in of_barrier if isinstance(op, InitBarrierOp)]
    if not begins:
        return
    slots = {_slot_of(op) for op in begins}
    missing = set(range(num_buffers(viewed(begins[0].alloc).type))) - slots
    if missing and None not in slots:
        yield begins[-1], f"slot {min(missing)} of these mbarriers is not initialised"
    later = fences[bisect_left(fences, max(map(positions.get, begins)), key=positions.get) :]
    publishing = [fence for fence in later if all(_is_before(begin, fence, positions) for begin in begins)]
    for op in (op for op in of_barrier if not isinstance(op, InitBarrierOp)):
        if not all(_is_before(begin, op, positions) for begin in begins):
            yield op, f"{op.name} uses an mbarrier that is not initialised before it"
        elif not any(_is_before(fence, op, positions) for fence in publishing):
            yield op, f"{op.name}: no {FenceMBarrierInitOp.name} is between it and the begin of its mbarrier"


def _end_faults(of_barrier: Sequence[Operation], positions: Positions) -> Iterator[Fault]:
    for end in (op for op in of_barrier if isinstance(op, InvalBarrierOp)):
        if end.parent is not viewed(end.alloc).owner.parent:
            yield end, f"{end.name} is in a loop or branch that its mbarrier is not in: uses may come after it"
        for op in (op for op in of_barrier if not isinstance(op, InvalBarrierOp)):
            around = end.parent.find_ancestor_op_in_block(op)
            if around is not None and positions[around] > positions[end]:
                yield op, f"{op.name} uses an mbarrier that has been made invalid"


def _copy_faults(of_barrier: Sequence[Operation]) -> Iterator[Fault]:
    has_begin, has_wait = (any(isinstance(op, kind) for op in of_barrier) for kind in (InitBarrierOp, WaitBarrierOp))
    for copy in (op for op in of_barrier if isinstance(op, AsyncTMACopyGlobalToLocalOp)):
        if not has_begin:
            yield copy, f"{copy.name} arrives at an mbarrier that is not initialised"
        elif not has_wait:
            yield copy, f"{copy.name} arrives at an mbarrier that nothing waits for"


def _slot_of(op: InitBarrierOp) -> int | None:
    """The number of a slot; None where it is not a constant."""
    index = _index_of(op.alloc)
    return 0 if index is None else constant_value(index)


def _arrival_faults(of_barrier: Sequence[Operation], num_threads: NumThreads) -> Iterator[Fault]:
    counts = {op.count.value.data for op in of_barrier if isinstance(op, InitBarrierOp)}
    arrivals: dict[Place, int] = defaultdict(int)
    last: dict[Place, Operation] = {}
    for op in of_barrier:
        if isinstance(op, ARRIVALS):
            place = _place_of(op, op.alloc)
            arrivals[place] += _count_of(op, num_threads)
            last[place] = op
    for wait in (op for op in of_barrier if isinstance(op, WaitBarrierOp)):
        if not counts:
            yield wait, f"{wait.name} waits for an mbarrier that is not initialised"
        if not arrivals:
            yield wait, f"{wait.name} waits for an mbarrier that nothing arrives at"
    for place, count in arrivals.items():
        if counts and counts != {count}:
            expected = " or ".join(map(str, sorted(counts)))
            yield last[place], f"{count} arrivals at an mbarrier that counts {expected}"


def _count_of(op: Operation, num_threads: NumThreads) -> int:
    if isinstance(op, ArriveBarrierOp):
        return op.count.value.data * op.num_ctas
    if isinstance(op, AsyncCopyMBarrierArriveOp):
        return num_threads(op) if op.no_increment is not None else 0
    return 1


def _byte_faults(of_barrier: Sequence[Operation]) -> Iterator[Fault]:
    expected: dict[Place, int] = defaultdict(int)
    copied: dict[Place, int] = defaultdict(int)
    last: dict[Place, Operation] = {}
    for op in of_barrier:
        if isinstance(op, BarrierExpectOp):
            expected[_place_of(op, op.alloc)] += op.size.value.data
        elif isinstance(op, AsyncTMACopyGlobalToLocalOp):
            tile = op.result.type.tile
            copied[_place_of(op, op.barrier)] += byte_width_of(tile) * num_elements_of(tile)
        else:
            continue
        last[_place_of(op, op.alloc if isinstance(op, BarrierExpectOp) else op.barrier)] = op
    for place, op in last.items():
        if expected[place] != copied[place]:
            yield op, f"{copied[place]} bytes are copied where {expected[place]} are expected"


# Slots that warps of their own fill.


def _release_faults(op: WarpSpecializeOp) -> Iterator[Fault]:
    for partition in op.partitions:
        rings: dict[SSAValue, SSAValue] = {}
        for waits, fills in _turns(partition):
            full, empty = ([viewed(step.alloc) for step in steps] for steps in (fills, waits))
            if not fills:
                yield waits[0], "a wait for a slot to be empty, which is not filled then"
            elif len(set(full)) != len(fills) or len(set(empty)) != len(waits) or len(fills) != len(waits):
                yield (
                    fills[-1],
                    f"a slot is filled {len(fills)} times after {len(waits)} waits for it to be empty",
                )
            rings |= zip(empty, full, strict=False)
        for empty, full in rings.items():
            yield from _Releases(full, empty).faults(op.default.block)


def _turns(partition: Region) -> Iterator[tuple[list[Operation], list[Operation]]]:
    """The waits and the fills at each place, in order. Rings that begin in one block have a place in common, slot 0:
    then the n-th fill is that of the ring of the n-th wait.
    """
    turns: dict[Place, tuple[list[Operation], list[Operation]]] = defaultdict(lambda: ([], []))
    for inner in partition.walk():
        if isinstance(inner, (WaitBarrierOp, *FILLS)):
            turns[_place_of(inner, inner.alloc)][isinstance(inner, FILLS)].append(inner)
    yield from turns.values()


class _Releases:
    """The waits for the slots of a ring in the warps that read it, and their releases.

    In a loop a slot may be released an iteration late, under a predicate; then the last one is released after the loop.
    """

    def __init__(self, full: SSAValue, empty: SSAValue):
        self._full, self._empty = full, empty

    def faults(self, block: Block) -> Iterator[Fault]:
        late = reads = releases = predicated = 0
        last: Operation | None = None
        for op in block.ops:
            for inner in (inner.block for inner in op.regions if inner.blocks):
                yield from self.faults(inner)
                late += self._late_in(inner) if isinstance(op, scf.ForOp) else 0
            if isinstance(op, WaitBarrierOp) and viewed(op.alloc) is self._full:
                reads, last = reads + 1, op
            elif isinstance(op, ArriveBarrierOp) and viewed(op.alloc) is self._empty:
                releases, predicated, last = releases + (op.pred is None), predicated + (op.pred is not None), op
        own = self._late_in(block) if isinstance(block.parent_op(), scf.ForOp) else 0
        at = last or block.parent_op()
        if reads != releases + own:
            yield at, f"slots are read {reads} times and released {releases} times in a block"
        elif predicated != late + own:
            yield at, f"{late + own} slots are left to be released later, {predicated} releases are under a predicate"

    def _late_in(self, block: Block) -> int:
        """How many slots an iteration leaves to the next one to release."""
        reads = sum(isinstance(op, WaitBarrierOp) and viewed(op.alloc) is self._full for op in block.ops)
        arrivals = [op for op in block.ops if isinstance(op, ArriveBarrierOp) and viewed(op.alloc) is self._empty]
        return max(reads - sum(op.pred is None for op in arrivals), 0) if any(op.pred for op in arrivals) else 0

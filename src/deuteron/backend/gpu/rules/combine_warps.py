"""The parts of a reduction that warps hold: each stores its part, all wait, and every thread combines parts.

    by threads    each thread loads the parts of all warps                         a + b + c + d
    by lanes      each lane loads a part, and lanes that differ in a bit combine   a + b, c + d; (a + b) + (c + d)
    shared out    so do lanes for any result, store it, all wait, and each thread loads those that it holds

What is fastest depends on how many parts and results there are, and how long the function takes (`warp_parts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.shared_memory.scratch import reduce_offsets
from deuteron.analysis.shared_memory.warp_parts import WarpParts, Way
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.rules.combine import Group, agree, combine_all, combine_lanes
from deuteron.backend.gpu.threads import Index
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import byte_width_of
from deuteron.layout import f2
from deuteron.layout.distributed import axis_bits
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2


def combine_warps(
    ctx: Context, op: Operation, layout: LinearLayout, sliced: LinearLayout, results: list[Group]
) -> list[Group]:
    """The parts of one result lie side by side, so that they are read in vectors."""
    along_axis, parts = axis_bits(layout, op.axis.value.data, WARP), WarpParts.of(op)
    guard = ctx.threads.zero_bits(_idle_lanes(sliced), _idle_warps(sliced, along_axis))
    slots = [_Slots(ctx, op, operand, sliced, parts) for operand in range(len(op.srcs))]
    for operand, slot in enumerate(slots):
        for index, group in enumerate(results):
            slot.store(index, group[operand], along_axis, guard)
    ctx.barrier()
    if parts.way is Way.SHARED_OUT:
        return _combine_shared_out(ctx, op, slots, parts, len(results))
    if parts.way is Way.LANES:
        return _combine_by_lanes(ctx, op, slots, len(results), _spare_lanes(sliced)[: len(along_axis)])
    loaded = [slot.load_all(len(results)) for slot in slots]
    return [combine_all(ctx, op.combine.block, groups) for groups in _groups_of(loaded)]


def _groups_of(loaded: list[list[list[Value]]]) -> list[list[Group]]:
    """Of each result the groups of its parts, of lists of parts for each operand and result."""
    return [[list(group) for group in zip(*columns, strict=True)] for columns in zip(*loaded, strict=True)]


def _spare_lanes(sliced: LinearLayout) -> list[int]:
    """Lane bits that say nothing of a result."""
    return [bit for bit, column in enumerate(sliced.columns(LANE)) if not column]


def _combine_by_lanes(
    ctx: Context, op: Operation, slots: list[_Slots], count: int, lane_bits: list[int]
) -> list[Group]:
    """One part a lane."""
    loaded = [slot.load_one(count, lane_bits) for slot in slots]
    groups = [list(group) for group in zip(*loaded, strict=True)]
    combined = combine_lanes(ctx, op.combine.block, op.srcs, groups, lane_bits)
    return agree(ctx, op.combine.block, op.srcs, combined, lane_bits)


def _combine_shared_out(ctx: Context, op: Operation, slots: list[_Slots], parts: WarpParts, count: int) -> list[Group]:
    """The lanes that have one result's parts follow each other, the first of them stores it."""
    lane_bits = list(range(log2(parts.lanes_together)))
    loaded = [slot.load_shares() for slot in slots]
    groups = [combine_all(ctx, op.combine.block, shares) for shares in _groups_of(loaded)]
    for number, group in enumerate(combine_lanes(ctx, op.combine.block, op.srcs, groups, lane_bits)):
        for slot, value in zip(slots, group, strict=True):
            slot.store_result(number, value)
    ctx.barrier()
    return [[slot.load_result(index) for slot in slots] for index in range(count)]


def _idle_lanes(sliced: LinearLayout) -> int:
    """Lane bits that make no difference to the result: where they are 0, a lane stores."""
    return sliced.free_bits()[LANE]


def _idle_warps(sliced: LinearLayout, along_axis: list[int]) -> int:
    return sliced.free_bits()[WARP] & ~sum(1 << bit for bit in along_axis)


def _lanes_first(sliced: LinearLayout) -> Callable[[int], int]:
    """The number of a result with its bits in another order: those that lanes decide are the lowest, so that a warp's
    accesses are to neighbouring slots, and not all to one bank.

    lanes that are 8 results apart, which each thread has       0, 8, 16, 24 -> 0, 1, 2, 3;  1, 9 -> 4, 5
    """
    of_lanes = [bit for column in sliced.columns(LANE) for bit in f2.ones(column)]
    order = list(dict.fromkeys([*of_lanes, *range(sliced.total_out_bits)]))
    place = {bit: position for position, bit in enumerate(order)}
    return lambda number: sum(1 << place[bit] for bit in f2.ones(number))


class _Slots:
    """Where one operand's parts of each result lie: `[result][part]`, results in the order of `_lanes_first`."""

    def __init__(self, ctx: Context, op: Operation, operand: int, sliced: LinearLayout, parts: WarpParts):
        self._ctx, self._type, self._sliced, self._parts = ctx, op.srcs[operand].type, sliced, parts
        self._base = ctx.shared_pointer(op, reduce_offsets(op)[operand])
        self._size = byte_width_of(self._type)
        self._row = self._size * parts.parts
        self._place = _lanes_first(sliced)

    def store(self, index: int, value: Value, along_axis: list[int], guard: Value | None) -> None:
        """The part of this thread's warp."""
        bits = to_bits(self._ctx.b, value, self._type)
        self._ctx.isa.store(self._ctx.b, [bits], self._address(index, warp_bits=along_axis), guard)

    def load_one(self, count: int, lane_bits: list[int]) -> list[Value]:
        """Of each of a thread's results the part that these bits of its lane number."""
        b, type = self._ctx.b, bits_type(self._type)
        loaded = [self._ctx.isa.load(b, type, self._address(index, lane_bits), 1)[0] for index in range(count)]
        return [from_bits(b, bits, self._type) for bits in loaded]

    def load_all(self, count: int) -> list[list[Value]]:
        """All parts of each of a thread's results."""
        return [self._load(index) for index in range(count)]

    def load_shares(self) -> list[list[Value]]:
        """Of each result that is this thread's to combine with others the parts that it takes."""
        count = self._parts.parts // self._parts.lanes_together
        first = self._share([count * self._size << bit for bit in range(log2(self._parts.lanes_together))], self._row)
        return [self._load_at(self._gep(first, number * self._round * self._row), count) for number in self._rounds]

    def store_result(self, number: int, value: Value) -> None:
        """Of those that this thread combined."""
        place = self._share([0] * log2(self._parts.lanes_together), self._size)
        begin = self._row * self._parts.results + number * self._round * self._size
        used = (self._parts.lanes_together * self._round) - 1
        idle = self._parts.num_threads - 1 & ~used | self._parts.lanes_together - 1
        bits = to_bits(self._ctx.b, value, self._type)
        self._ctx.isa.store(self._ctx.b, [bits], self._gep(place, begin), self._ctx.threads.zero_bits(idle))

    def load_result(self, index: int) -> Value:
        """Number `index` of those that this thread holds."""
        b, type = self._ctx.b, bits_type(self._type)
        base = self._gep(Index(const("i32", 0), 0), self._row * self._parts.results)
        address = b.gep("i8", base, self._offset(index, self._size))
        return from_bits(b, self._ctx.isa.load(b, type, address, 1)[0], self._type)

    @property
    def _round(self) -> int:
        """How many results are combined at once."""
        return self._parts.results // self._parts.taken

    @property
    def _rounds(self) -> range:
        return range(self._parts.taken)

    def _share(self, of_parts: list[int], of_result: int) -> Index:
        """Where this thread's share is: the bits of its number say first which parts, then of which result."""
        columns = [*of_parts, *(of_result << bit for bit in range(log2(self._round)))]
        columns += [0] * (log2(self._parts.num_threads) - len(columns))
        lane_bits = log2(self._parts.warp_size)
        return self._ctx.threads.image(columns[:lane_bits], columns[lane_bits:])

    def _gep(self, offset: Index, begin: int) -> Value:
        return self._ctx.b.gep("i8", self._base, offset.at(self._ctx.b, begin))

    def _load(self, index: int) -> list[Value]:
        return self._load_at(self._address(index), self._parts.parts)

    def _load_at(self, first: Value, count: int) -> list[Value]:
        """Neighbours, as vectors."""
        b, type = self._ctx.b, bits_type(self._type)
        step, parts = min(count * self._size, MAX_BYTES), []
        for begin in range(0, count * self._size, step):
            address = b.gep("i8", first, const("i32", begin)) if begin else first
            parts += self._ctx.isa.load(b, type, address, step // self._size)
        return [from_bits(b, bits, self._type) for bits in parts]

    def _address(self, index: int, lane_bits: Sequence[int] = (), warp_bits: Sequence[int] = ()) -> Value:
        """Of this thread's result number `index`, and there of the part that these bits of its place number."""
        return self._ctx.b.gep("i8", self._base, self._offset(index, self._row, lane_bits, warp_bits))

    def _offset(self, index: int, row: int, lane_bits: Sequence[int] = (), warp_bits: Sequence[int] = ()) -> Value:
        columns = (self._sliced.columns(name) for name in (LANE, WARP, REGISTER))
        lanes, warps, registers = ([row * self._place(number) for number in numbers] for numbers in columns)
        for bits, place in ((lane_bits, lanes), (warp_bits, warps)):
            for position, bit in enumerate(bits):
                place[bit] |= self._size << position
        return self._ctx.threads.image(lanes, warps).at(self._ctx.b, f2.apply(registers, index))

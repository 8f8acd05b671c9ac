"""The parts of a reduction that warps hold: each stores its part, all wait, and every thread combines all parts.

    by threads    each thread loads the parts of all warps                         a + b + c + d
    by lanes      each lane loads a part, and lanes that differ in a bit combine   a + b, c + d; (a + b) + (c + d)

By lanes where that is faster: where the parts are many and the function takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.along_axis import axis_bits
from deuteron.analysis.shared_memory.scratch import reduce_offsets, reduce_partials
from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.rules.combine import (
    LATENCY,
    MIN_CHAIN,
    NUM_CHAINS,
    SCHEDULERS,
    SHUFFLE_LATENCY,
    Group,
    agree,
    combine_all,
    combine_lanes,
)
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import byte_width_of
from deuteron.layout import f2
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout


def combine_warps(
    ctx: Context, op: Operation, layout: LinearLayout, sliced: LinearLayout, results: list[Group]
) -> list[Group]:
    """The parts of one result lie side by side, so that they are read in vectors."""
    along_axis = axis_bits(layout, op.axis.value.data, WARP)
    guard = ctx.threads.zero_bits(_idle_lanes(sliced), _idle_warps(sliced, along_axis))
    for operand in range(len(op.srcs)):
        slots = _Slots(ctx, op, operand, sliced)
        for index, group in enumerate(results):
            slots.store(index, group[operand], along_axis, guard)
    ctx.barrier()
    lanes = _spare_lanes(sliced)[: len(along_axis)]
    if len(lanes) == len(along_axis) and _is_faster_by_lanes(op, ctx.threads.num_warps):
        return _combine_by_lanes(ctx, op, sliced, len(results), lanes)
    parts = [_Slots(ctx, op, operand, sliced).load_all(len(results)) for operand in range(len(op.srcs))]
    return [
        combine_all(ctx, op.combine.block, [list(group) for group in zip(*columns, strict=True)])
        for columns in zip(*parts, strict=True)
    ]


def _spare_lanes(sliced: LinearLayout) -> list[int]:
    """Lane bits that say nothing of a result."""
    return [bit for bit, column in enumerate(sliced.columns(LANE)) if not column]


def _is_faster_by_lanes(op: Operation, num_warps: int) -> bool:
    """Whether the parts of one result are, in cycles. All warps do the same: they wait, or for each other's issue."""
    parts, ops = reduce_partials(op), len(op.combine.block.ops) - 1
    steps, chains = parts.bit_length() - 1, min(NUM_CHAINS, -(-parts // MIN_CHAIN))
    depth = parts // chains - 1 + chains - 1
    by_thread = max(depth * ops * LATENCY, (parts - 1) * ops * num_warps / SCHEDULERS)
    waits = steps * (ops * LATENCY + SHUFFLE_LATENCY) + SHUFFLE_LATENCY  # the last is for all to agree
    by_lanes = max(waits, steps * (ops + len(op.srcs)) * num_warps / SCHEDULERS)
    return by_lanes < by_thread


def _combine_by_lanes(
    ctx: Context, op: Operation, sliced: LinearLayout, count: int, lane_bits: list[int]
) -> list[Group]:
    """One part a lane."""
    parts = [_Slots(ctx, op, operand, sliced).load_one(count, lane_bits) for operand in range(len(op.srcs))]
    groups = [list(group) for group in zip(*parts, strict=True)]
    combined = combine_lanes(ctx, op.combine.block, op.srcs, groups, lane_bits)
    return agree(ctx, op.combine.block, op.srcs, combined, lane_bits)


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

    def __init__(self, ctx: Context, op: Operation, operand: int, sliced: LinearLayout):
        self._ctx, self._type, self._sliced = ctx, op.srcs[operand].type, sliced
        self._base = ctx.shared_pointer(op, reduce_offsets(op)[operand])
        self._size = byte_width_of(self._type)
        self._row = self._size * reduce_partials(op)
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

    def _load(self, index: int) -> list[Value]:
        b, type = self._ctx.b, bits_type(self._type)
        step = min(self._row, MAX_BYTES)
        first, parts = self._address(index), []
        for begin in range(0, self._row, step):
            address = b.gep("i8", first, const("i32", begin)) if begin else first
            parts += self._ctx.isa.load(b, type, address, step // self._size)
        return [from_bits(b, bits, self._type) for bits in parts]

    def _address(self, index: int, lane_bits: Sequence[int] = (), warp_bits: Sequence[int] = ()) -> Value:
        """Of this thread's result number `index`, and there of the part that these bits of its place number."""
        columns = (self._sliced.columns(name) for name in (LANE, WARP, REGISTER))
        lanes, warps, registers = ([self._row * self._place(number) for number in numbers] for numbers in columns)
        for bits, place in ((lane_bits, lanes), (warp_bits, warps)):
            for position, bit in enumerate(bits):
                place[bit] |= self._size << position
        offset = self._ctx.threads.image(lanes, warps).at(self._ctx.b, f2.apply(registers, index))
        return self._ctx.b.gep("i8", self._base, offset)

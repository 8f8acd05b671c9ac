"""tt.reduce: within each thread, then between the lanes of a warp, then between warps through shared memory.

    registers    those that differ only along the axis are combined
    lanes        for each lane bit along the axis, with the lane that differs in it
    warps        each warp stores its part, all wait, every thread combines the parts of all warps

Replicated elements count once: neither replicas in registers nor lanes and warps that hold replicas are combined.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.along_axis import axis_bits
from deuteron.analysis.shared_memory.scratch import reduce_offsets, reduce_partials
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment, Operand, positions
from deuteron.backend.gpu.shuffles import exchange
from deuteron.backend.gpu.threads import owned_registers
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import byte_width_of, is_tile
from deuteron.layout import f2
from deuteron.layout.distributed import slice_axis
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout

Group = list[Value]  # an element of each operand
NUM_CHAINS, MIN_CHAIN = 4, 4  # an instruction that waits for the one before it takes four times as long


def combine(ctx: Context, block: Block, first: Group, second: Group) -> Group:
    """What the region makes of two groups."""
    return ctx.run(block, [*first, *second])


def reduce(ctx: Context, op: Operation, *tiles: Fragment) -> list[Operand]:
    block, axis, layout = op.combine.block, op.axis.value.data, tiles[0].layout
    sliced = slice_axis(layout, axis)
    groups = _within_threads(ctx, block, axis, tiles)
    results = [groups[position] for position in positions(sliced)]
    for bit in axis_bits(layout, axis, LANE):
        results = [
            combine(ctx, block, group, other)
            for group, other in zip(results, exchange_groups(ctx, op.srcs, results, 1 << bit), strict=True)
        ]
    if reduce_partials(op) > 1:
        results = _between_warps(ctx, op, layout, sliced, results)
    columns = list(zip(*results, strict=True))
    return [
        Fragment(sliced, column) if is_tile(result.type) else column[0]
        for column, result in zip(columns, op.results, strict=True)
    ]


def _within_threads(ctx: Context, block: Block, axis: int, tiles: tuple[Fragment, ...]) -> dict[tuple[int, ...], Group]:
    """For each position in the result, what a thread's own registers give."""
    places, groups = positions(tiles[0].layout), {}
    for register in sorted(owned_registers(tiles[0].layout), key=lambda r: places[r]):
        place = places[register][:axis] + places[register][axis + 1 :]
        groups.setdefault(place, []).append([tile.registers[register] for tile in tiles])
    return {place: _combine_all(ctx, block, found) for place, found in groups.items()}


def exchange_groups(ctx: Context, srcs: list[SSAValue], groups: list[Group], lane_mask: int) -> list[Group]:
    """The groups of the lane whose number differs in `lane_mask`."""
    columns = []
    for src, column in zip(srcs, zip(*groups, strict=True), strict=True):
        moved = exchange(ctx.b, ctx.isa, [to_bits(ctx.b, value, src.type) for value in column], lane_mask)
        columns.append([from_bits(ctx.b, value, src.type) for value in moved])
    return [list(group) for group in zip(*columns, strict=True)]


def _between_warps(
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
    parts = [_Slots(ctx, op, operand, sliced).load_all(len(results)) for operand in range(len(op.srcs))]
    return [
        _combine_all(ctx, op.combine.block, [list(group) for group in zip(*columns, strict=True)])
        for columns in zip(*parts, strict=True)
    ]


def _combine_all(ctx: Context, block: Block, groups: list[Group]) -> Group:
    """In order, many groups in several chains that do not wait for each other."""
    length = max(-(-len(groups) // NUM_CHAINS), MIN_CHAIN)
    if len(groups) <= length:
        return _combine_chain(ctx, block, groups)
    chains = (groups[begin : begin + length] for begin in range(0, len(groups), length))
    return _combine_chain(ctx, block, [_combine_chain(ctx, block, chain) for chain in chains])


def _combine_chain(ctx: Context, block: Block, groups: list[Group]) -> Group:
    total, *rest = groups
    for group in rest:
        total = combine(ctx, block, total, group)
    return total


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
        parts = {bit: self._size << position for position, bit in enumerate(along_axis)}
        bits = to_bits(self._ctx.b, value, self._type)
        self._ctx.isa.store(self._ctx.b, [bits], self._address(index, parts), guard)

    def load_all(self, count: int) -> list[list[Value]]:
        """All parts of each of a thread's results."""
        return [self._load(index) for index in range(count)]

    def _load(self, index: int) -> list[Value]:
        b, type = self._ctx.b, bits_type(self._type)
        step = min(self._row, MAX_BYTES)
        first, parts = self._address(index, {}), []
        for begin in range(0, self._row, step):
            address = b.gep("i8", first, const("i32", begin)) if begin else first
            parts += self._ctx.isa.load(b, type, address, step // self._size)
        return [from_bits(b, bits, self._type) for bits in parts]

    def _address(self, index: int, parts: dict[int, int]) -> Value:
        """Of this thread's result number `index`; `parts` says what a warp's bits add."""
        columns = (self._sliced.columns(name) for name in (LANE, WARP, REGISTER))
        lanes, warps, registers = ([self._row * self._place(number) for number in numbers] for numbers in columns)
        warps = [column | parts.get(bit, 0) for bit, column in enumerate(warps)]
        offset = self._ctx.threads.image(lanes, warps).at(self._ctx.b, f2.apply(registers, index))
        return self._ctx.b.gep("i8", self._base, offset)


RULES: dict[str, Rule] = {"tt.reduce": reduce}

"""tt.scan, from the lowest bit of the position along the axis to the highest.

Before bit k, each element holds what its aligned block of 2**k elements gives up to it, and every thread knows the
total of the block. Two neighbouring blocks then become one:

    lower block    a  ab  | upper block  c  cd          totals  ab, cd
    after          a  ab    abc  abcd                   total   abcd

The neighbour's total is in another register, in another lane or, through shared memory, in another
warp. `reverse` goes from the end to the start. Replicated elements are scanned as often as they are held.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from deuteron.analysis.scratch import axis_bits, scan_offsets
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import bits_type, from_bits, to_bits
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.gpu.rules.reduce import Group, combine, exchange_groups
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import byte_width_of
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout


@dataclass(frozen=True)
class _Step:
    """A bit of the position along the axis, and where it is held."""

    weight: int
    in_name: str
    bit: int


def scan(ctx: Context, op: Operation, *tiles: Fragment) -> list[Fragment]:
    layout = tiles[0].layout
    elements = [list(group) for group in zip(*(tile.registers for tile in tiles), strict=True)]
    totals = list(elements)
    steps = _steps(layout, op.axis.value.data)
    first_exchange = next((step for step in steps if step.in_name == WARP), None)
    for step in steps:
        if step.in_name == WARP and step is not first_exchange:
            ctx.barrier()  # the exchange before has read what this one overwrites
        if step.in_name == REGISTER:
            elements, totals = _merge_registers(ctx, op, step.bit, elements, totals)
        else:
            elements, totals = _merge_threads(ctx, op, step, elements, totals)
    return [Fragment(layout, column) for column in zip(*elements, strict=True)]


def _steps(layout: LinearLayout, axis: int) -> list[_Step]:
    steps = [
        _Step(layout.of(name)[bit][axis], name, bit)
        for name in (REGISTER, LANE, WARP)
        for bit in axis_bits(layout, axis, name)
    ]
    return sorted(steps, key=lambda step: step.weight)


def _merge_registers(
    ctx: Context, op: Operation, bit: int, elements: list[Group], totals: list[Group]
) -> tuple[list[Group], list[Group]]:
    memo: dict = {}
    merged, sums = list(elements), list(totals)
    for register in range(len(elements)):
        lower, upper = register & ~(1 << bit), register | 1 << bit
        before, after = (upper, lower) if op.reverse.value.data else (lower, upper)
        if register == after:
            merged[register] = combine(ctx, op.combine.block, totals[before], elements[register])
        key = (*totals[before], *totals[after])
        if key not in memo:
            memo[key] = combine(ctx, op.combine.block, totals[before], totals[after])
        sums[register] = memo[key]
    return merged, sums


def _merge_threads(
    ctx: Context, op: Operation, step: _Step, elements: list[Group], totals: list[Group]
) -> tuple[list[Group], list[Group]]:
    """Every thread computes both: for the upper block `other + own`, for the lower one its own stays."""
    distinct = list({tuple(total): total for total in totals}.values())
    if step.in_name == LANE:
        others = exchange_groups(ctx, op.srcs, distinct, 1 << step.bit)
    else:
        others = _exchange_warps(ctx, op, distinct, 1 << step.bit)
    neighbour = {tuple(own): other for own, other in zip(distinct, others, strict=True)}
    index = ctx.threads.lane if step.in_name == LANE else ctx.threads.warp
    masked = ctx.b.and_(index, const("i32", 1 << step.bit))
    is_after = ctx.b.icmp("eq" if op.reverse.value.data else "ne", masked, const("i32", 0))
    sums = {key: _joined(ctx, op, is_after, list(key), other) for key, other in neighbour.items()}
    merged = [
        _select(ctx, is_after, combine(ctx, op.combine.block, neighbour[tuple(total)], element), element)
        for element, total in zip(elements, totals, strict=True)
    ]
    return merged, [sums[tuple(total)] for total in totals]


def _joined(ctx: Context, op: Operation, is_after: Value, own: Group, other: Group) -> Group:
    """The total of both blocks, the one that comes first as the first operand."""
    return combine(ctx, op.combine.block, _select(ctx, is_after, other, own), _select(ctx, is_after, own, other))


def _select(ctx: Context, condition: Value, first: Group, second: Group) -> Group:
    return [ctx.b.select(condition, x, y) for x, y in zip(first, second, strict=True)]


def _exchange_warps(ctx: Context, op: Operation, groups: list[Group], warp_mask: int) -> list[Group]:
    """The groups of the same lane in the warp whose number differs in `warp_mask`."""
    b, threads = ctx.b, ctx.threads
    partner = b.xor(threads.index, const("i32", warp_mask * threads.warp_size))
    slots = [[_slot(ctx, op, o, i, threads.index) for o in range(len(op.srcs))] for i in range(len(groups))]
    for group, addresses in zip(groups, slots, strict=True):
        for value, src, address in zip(group, op.srcs, addresses, strict=True):
            ctx.isa.store(b, [to_bits(b, value, src.type)], address)
    ctx.barrier()
    return [
        [
            from_bits(b, ctx.isa.load(b, bits_type(src.type), _slot(ctx, op, o, i, partner), 1)[0], src.type)
            for o, src in enumerate(op.srcs)
        ]
        for i in range(len(groups))
    ]


def _slot(ctx: Context, op: Operation, operand: int, group: int, thread: Value) -> Value:
    """The address of an operand's total number `group` of a thread."""
    size = byte_width_of(op.srcs[operand].type)
    row = group * size * ctx.threads.count
    base = ctx.shared_pointer(op, scan_offsets(op)[operand] + row)
    return ctx.b.gep(bits_type(op.srcs[operand].type), base, thread)


RULES: dict[str, Rule] = {"tt.scan": scan}

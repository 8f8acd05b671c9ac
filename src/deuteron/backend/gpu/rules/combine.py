"""What a reduction's function makes of groups, an element of each operand, in a thread and of other lanes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from deuteron.analysis.shared_memory.warp_parts import MIN_CHAIN, NUM_CHAINS
from deuteron.analysis.symmetric_functions import is_symmetric
from deuteron.backend.gpu.context import NOTHING, Context, Known
from deuteron.backend.gpu.elements import from_bits, to_bits
from deuteron.backend.gpu.shuffles import exchange, fetch
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.arith import SelectOp
from deuteron.ir.types import is_float
from deuteron.layout.linear import log2

Group = list[Value]  # an element of each operand
CHOOSES = (SelectOp, arith.MinimumfOp, arith.MaximumfOp, arith.MinnumfOp, arith.MaxnumfOp)


def combine(ctx: Context, block: Block, first: Group, second: Group, known: Known = NOTHING) -> Group:
    """What the region makes of two groups."""
    return ctx.run(block, [*first, *second], known)


def select(ctx: Context, condition: Value, first: Group, second: Group) -> Group:
    """The first where a condition holds, else the second."""
    return [ctx.b.select(condition, x, y) for x, y in zip(first, second, strict=True)]


def combine_all(ctx: Context, block: Block, groups: list[Group], known: Known = NOTHING) -> Group:
    """In order, many groups in several chains that do not wait for each other. `known`: what ops of the region give."""
    length = max(-(-len(groups) // NUM_CHAINS), MIN_CHAIN)
    if len(groups) <= length:
        return _combine_chain(ctx, block, groups, known)
    chains = (groups[begin : begin + length] for begin in range(0, len(groups), length))
    return _combine_chain(ctx, block, [_combine_chain(ctx, block, chain, known) for chain in chains], known)


def _combine_chain(ctx: Context, block: Block, groups: list[Group], known: Known) -> Group:
    total, *rest = groups
    for group in rest:
        total = combine(ctx, block, total, group, known)
    return total


def combine_lanes(
    ctx: Context,
    block: Block,
    srcs: list[SSAValue],
    groups: list[Group],
    lane_bits: list[int],
    adds_to_products: bool = False,
) -> list[Group]:
    """Of all lanes whose numbers differ in these bits. What adds to products is not fused with them: each lane would
    round the other's alone, and sums would differ.
    """
    for bit in lane_bits:
        others = _exchanged(ctx, srcs, groups, 1 << bit)
        with ctx.b.unfused() if adds_to_products else nullcontext():
            groups = [combine(ctx, block, group, other) for group, other in zip(groups, others, strict=True)]
    return groups


def scatter_lanes(
    ctx: Context,
    block: Block,
    srcs: list[SSAValue],
    groups: list[Group],
    registers: dict[int, int],
    adds_to_products: bool = False,
) -> list[Group]:
    """Of all lanes whose numbers differ in these bits, where each keeps a share of the results: those whose number has
    in the bit `registers[bit]` what its own has in `bit`. Pairs of lanes give each other what they do not keep, half of
    what there still is in each step.
    """
    left, in_order = list(range(log2(len(groups)))), may_differ(block)
    for bit, register in sorted(registers.items()):
        place = left.index(register)
        left.remove(register)
        lower, upper = ([group for at, group in enumerate(groups) if at >> place & 1 == half] for half in (0, 1))
        is_upper = ctx.b.icmp("ne", ctx.b.and_(ctx.threads.lane, const("i32", 1 << bit)), const("i32", 0))
        kept = [select(ctx, is_upper, above, below) for below, above in zip(lower, upper, strict=True)]
        given = [select(ctx, is_upper, below, above) for below, above in zip(lower, upper, strict=True)]
        taken = _exchanged(ctx, srcs, given, 1 << bit)
        pairs = list(zip(kept, taken, strict=True))
        if in_order:
            pairs = [(select(ctx, is_upper, y, x), select(ctx, is_upper, x, y)) for x, y in pairs]
        with ctx.b.unfused() if adds_to_products else nullcontext():
            groups = [combine(ctx, block, first, second) for first, second in pairs]
    return groups


def agree(ctx: Context, block: Block, srcs: list[SSAValue], groups: list[Group], lane_bits: list[int]) -> list[Group]:
    """What lanes that combined by these bits all take for the result, which may be the condition of a branch."""
    if not lane_bits or not may_differ(block):
        return groups
    first = ctx.b.and_(ctx.threads.lane, const("i32", ~sum(1 << bit for bit in lane_bits)))
    return _moved(ctx, srcs, groups, lambda bits: fetch(ctx.b, ctx.isa, bits, first))


def may_differ(block: Block) -> bool:
    """Whether lanes may give different results: each has its own operand first. What is rounded twice may be fused:
    d * a + c * b is then another number than a * d + b * c.
    """
    rounded = {
        result for op in block.ops for result in op.results if is_float(result.type) and not isinstance(op, CHOOSES)
    }
    rounds_twice = any(operand in rounded for value in rounded for operand in value.owner.operands)
    return rounds_twice or not is_symmetric(block)


def _exchanged(ctx: Context, srcs: list[SSAValue], groups: list[Group], lane_mask: int) -> list[Group]:
    """The groups of the lane whose number differs in `lane_mask`."""
    return _moved(ctx, srcs, groups, lambda bits: exchange(ctx.b, ctx.isa, bits, lane_mask))


def _moved(
    ctx: Context, srcs: list[SSAValue], groups: list[Group], move: Callable[[list[Value]], list[Value]]
) -> list[Group]:
    """The groups of another lane."""
    columns = []
    for src, column in zip(srcs, zip(*groups, strict=True), strict=True):
        moved = move([to_bits(ctx.b, value, src.type) for value in column])
        columns.append([from_bits(ctx.b, value, src.type) for value in moved])
    return [list(group) for group in zip(*columns, strict=True)]

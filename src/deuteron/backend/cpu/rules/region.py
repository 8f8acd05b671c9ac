"""The regions of reductions, scans and maps.

Of arithmetic alone, on fragments: the same rules as for tiles, lane by lane. Others, with control flow, on scalars.

^bb0(%a: f32, %b: f32):                 combine(ctx, block, [acc], [x])  ->  [acc + x]
  %c = arith.addf %a, %b
  tt.reduce.return %c
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, SSAValue

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Fragment, Uniform
from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import bit_width_of, element_type_of, i1, is_float, is_narrow_float


def combine(ctx: Context, block: Block, first: Sequence[Fragment], second: Sequence[Fragment]) -> list[Fragment]:
    """What the region makes of two groups of elements."""
    known: dict[SSAValue, Fragment] = dict(zip(block.args, [*first, *second], strict=True))

    def value_of(operand: SSAValue) -> Fragment:
        return known[operand] if operand in known else ctx.evaluate(operand, ())

    for op in block.ops:
        operands = [value_of(operand) for operand in op.operands]
        if op is block.last_op:
            return operands
        known[op.results[0]] = ctx.apply(op, *operands)
    raise AssertionError("a region ends with a return")


def adds_in_float(block: Block) -> Callable[..., Value] | None:
    """How to add an element to a sum or product of narrow floats, which is kept in float and rounded once, at its end.

    Rounded at every step, a sum of ones in bf16 would not grow beyond 256.
    """
    narrow = is_narrow_float(block.args[0].type)
    return _IN_FLOAT.get(block.first_op.name) if narrow and _is_single(block) else None


def run_scalars(ctx: Context, region: Region, block: Block, arguments: Sequence[Value]) -> list[Value]:
    """What a region with any items makes of scalars; it may be emitted several times."""
    for inner in block.walk():
        for value in (*inner.results, *(argument for r in inner.regions for b in r.blocks for argument in b.args)):
            ctx.scalars.pop(value, None)
    outer = ctx.nest_state.level
    ctx.bind_block(block)
    for argument, value in zip(block.args, arguments, strict=True):
        ctx.bind(argument, value)
    ctx.emit_region(ctx, region, block)
    ctx.nest_state.level = outer
    return [ctx.scalar(operand) for operand in block.last_op.operands]


def combine_scalars(
    ctx: Context, region: Region, block: Block, is_first: Value | None, before: Sequence[Value], group: Sequence[Value]
) -> list[Value]:
    """The combination of two groups of scalars by a region with control flow; of the first one, the second alone."""
    if is_first is None:
        return run_scalars(ctx, region, block, [*before, *group])
    emitter = ctx.emitter
    b = emitter.innermost()
    entry, end = b.block("combine"), b.block("combined")
    b.cond_br(is_first, end, entry)
    outside = b.current_block
    emitter.enter(entry)
    combined = run_scalars(ctx, region, block, [*before, *group])
    emitter.innermost().br(end)
    last = emitter.leave()
    b = emitter.innermost()
    b.position(end)
    return [b.phi(value.type, [(value, outside), (other, last)]) for value, other in zip(group, combined, strict=True)]


def identity_of(block: Block) -> Uniform | None:
    """The element that a region leaves others unchanged with, where it is a single op that has one."""
    find = _IDENTITIES.get(block.first_op.name) if _is_single(block) else None
    if find is None:
        return None
    type = element_type_of(block.args[0].type)
    return Uniform(const(register_type(type), find(type)), 0)


def _is_single(block: Block) -> bool:
    """Whether the region is one op of its two arguments."""
    ops = list(block.ops)
    return len(ops) == 2 and set(ops[0].operands) == set(block.args) and ops[1].operands[0] is ops[0].results[0]


def _lowest(type: Attribute) -> float:
    return float("-inf") if is_float(type) else -(1 << (bit_width_of(type) - 1))


def _highest(type: Attribute) -> float:
    return float("inf") if is_float(type) else (1 << (bit_width_of(type) - 1)) - 1


_IN_FLOAT = {"arith.addf": Builder.fadd, "arith.mulf": Builder.fmul}

_IDENTITIES = {
    # -0.0, not 0.0: the sum of negative zeros alone is -0.0
    "arith.addf": lambda type: -0.0,
    "arith.mulf": lambda type: 1.0,
    # NaN: maxnum and minnum give the other one
    "arith.maxnumf": lambda type: float("nan"),
    "arith.minnumf": lambda type: float("nan"),
    "arith.maximumf": _lowest,
    "arith.minimumf": _highest,
    "arith.addi": lambda type: 0,
    "arith.muli": lambda type: 1,
    "arith.andi": lambda type: True if type == i1 else -1,
    "arith.ori": lambda type: 0,
    "arith.xori": lambda type: 0,
    "arith.maxsi": _lowest,
    "arith.minsi": _highest,
    "arith.maxui": lambda type: 0,
    "arith.minui": lambda type: True if type == i1 else -1,
}

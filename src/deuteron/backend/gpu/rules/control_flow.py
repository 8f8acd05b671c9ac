"""scf.for, scf.if, scf.while: every register of every value that is carried or yielded gets a phi, equal ones get one.

Elements of 16 bits go in pairs: operands of dots are words from where they are rounded, and stay that.

Loops with dots, and those over slices, stay rolled: ptxas unrolls them eightfold, which takes it eight times as long,
for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.gpu.advanced_pointers import advanced, advances_of, as_offsets, as_pointers
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Operand
from deuteron.backend.gpu.neighbours import distinct, spread
from deuteron.backend.gpu.words import pack, unpack
from deuteron.backend.llvm.types import Value, bit_width
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.passes.gpu.slices.rolled_loops import ROLLED

DOTS = (DotOp, SlicedDotOp, WarpGroupDotOp)
BESIDE_DOTS = (*DOTS, AsyncCopyGlobalToLocalOp)  # also where warps of their own copy


def _flat(ctx: Context, values: Sequence[SSAValue], operands: Sequence[Operand]) -> list[Value]:
    """The words of what these values, which are carried or yielded, are."""
    pairs = zip(values, operands, strict=True)
    return [word for value, operand in pairs for word in _words(ctx, distinct(operand, _constancy(ctx, value)))]


def _constancy(ctx: Context, value: SSAValue) -> Sequence[int]:
    return ctx.info.of(value).constancy


def _words(ctx: Context, registers: Sequence[Value]) -> Sequence[Value]:
    if not _goes_in_pairs(registers):
        return registers
    return pack(ctx.b, [ctx.b.bitcast(value, "i16") for value in registers])


def _goes_in_pairs(registers: Sequence[Value]) -> bool:
    return len(registers) > 1 and bit_width(registers[0].type) == 16


def _unflat(ctx: Context, values: Sequence[SSAValue], like: Sequence[Operand], words: Sequence[Value]) -> list[Operand]:
    """Words as operands of the same layouts as those in `like`."""
    operands, begin = [], 0
    for value, operand in zip(values, like, strict=True):
        constancy = _constancy(ctx, value)
        registers = distinct(operand, constancy)
        end = begin + len(registers) // (2 if _goes_in_pairs(registers) else 1)
        operands.append(spread(operand, constancy, _elements(ctx, registers, words[begin:end])))
        begin = end
    return operands


def _elements(ctx: Context, like: Sequence[Value], words: Sequence[Value]) -> Sequence[Value]:
    if not _goes_in_pairs(like):
        return words
    return [ctx.b.bitcast(bits, like[0].type) for bits in unpack(ctx.b, words, "i16", len(like))]


def for_(ctx: Context, op: Operation, start: Value, stop: Value, step: Value, *initial: Operand) -> list[Operand]:
    block = op.body.block
    stays_rolled = ROLLED in op.attributes or _has_any(block, DOTS)
    metadata = ctx.module.rolled_loop() if stays_rolled else ""
    advances = advances_of(ctx, op, initial) if _has_any(block, BESIDE_DOTS) else {}
    entering, values = as_offsets(initial, advances), block.args[1:]
    flat = _flat(ctx, values, entering)
    with ctx.b.loop(start, stop, step, flat, block.args[0].name_hint or "i", metadata) as loop:
        carried = _unflat(ctx, values, entering, loop.carried)
        following = ctx.run(block, [loop.index, *as_pointers(ctx, op, initial, carried, advances)])
        loop.next(*_flat(ctx, values, advanced(ctx.b, carried, following, advances)))
    return as_pointers(ctx, op, initial, _unflat(ctx, values, entering, loop.results), advances)


def _has_any(block: Block, kinds: tuple[type[Operation], ...]) -> bool:
    return any(isinstance(op, kinds) for op in block.ops)


def if_(ctx: Context, op: Operation, condition: Value) -> list[Operand]:
    yielded: list[Operand] = []
    with ctx.b.if_(condition) as branch:
        for number, region in enumerate(region for region in op.regions if region.blocks):
            if number:
                branch.otherwise()
            yielded = ctx.run(region.block, [])
            branch.yield_(*_flat(ctx, op.results, yielded))
    return _unflat(ctx, op.results, yielded, branch.results)


def while_(ctx: Context, op: Operation, *initial: Operand) -> list[Operand]:
    """The block of the condition is the loop's header; what it passes on is known after the loop as well."""
    b, before = ctx.b, ctx.b.current_block
    header, body, end = b.block("while"), b.block("do"), b.block("done")
    values = op.before_region.block.args
    entering = _flat(ctx, values, initial)
    b.br(header)
    b.position(header)
    phis = [b.phi(value.type, [(value, before)]) for value in entering]
    condition, *passed = ctx.run(op.before_region.block, _unflat(ctx, values, initial, phis))
    b.cond_br(condition, body, end)
    b.position(body)
    following = ctx.run(op.after_region.block, passed)
    for phi, value in zip(phis, _flat(ctx, values, following), strict=True):
        b.add_incoming(phi, value, b.current_block)
    b.br(header)
    b.position(end)
    return passed


RULES: dict[str, Rule] = {"scf.for": for_, "scf.if": if_, "scf.while": while_}

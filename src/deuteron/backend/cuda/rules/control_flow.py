"""scf.for, scf.if, scf.while: every register of every value that is carried or yielded gets a phi.

Loops with matrix products stay rolled: ptxas unrolls them eightfold, which takes it eight times as long, for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from deuteron.backend.cuda.context import Context, Rule
from deuteron.backend.cuda.fragment import Operand, registers_of, with_registers
from deuteron.backend.llvm.types import Value
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp


def _flat(operands: Sequence[Operand]) -> list[Value]:
    return [value for operand in operands for value in registers_of(operand)]


def _unflat(like: Sequence[Operand], values: Sequence[Value]) -> list[Operand]:
    """Values as operands of the same layouts as those in `like`."""
    operands, begin = [], 0
    for operand in like:
        count = len(registers_of(operand))
        operands.append(with_registers(operand, values[begin : begin + count]))
        begin += count
    return operands


def for_(ctx: Context, op: Operation, start: Value, stop: Value, step: Value, *initial: Operand) -> list[Operand]:
    block = op.body.block
    metadata = ctx.module.rolled_loop() if _has_products(block) else ""
    with ctx.b.loop(start, stop, step, _flat(initial), block.args[0].name_hint or "i", metadata) as loop:
        following = ctx.run(block, [loop.index, *_unflat(initial, loop.carried)])
        loop.next(*_flat(following))
    return _unflat(initial, loop.results)


def _has_products(block: Block) -> bool:
    return any(isinstance(op, DotOp | WarpGroupDotOp) for op in block.ops)


def if_(ctx: Context, op: Operation, condition: Value) -> list[Operand]:
    yielded: list[Operand] = []
    with ctx.b.if_(condition) as branch:
        for number, region in enumerate(region for region in op.regions if region.blocks):
            if number:
                branch.otherwise()
            yielded = ctx.run(region.block, [])
            branch.yield_(*_flat(yielded))
    return _unflat(yielded, branch.results)


def while_(ctx: Context, op: Operation, *initial: Operand) -> list[Operand]:
    """The block of the condition is the loop's header; what it passes on is known behind the loop as well."""
    b, before = ctx.b, ctx.b.current_block
    header, body, end = b.block("while"), b.block("do"), b.block("done")
    b.br(header)
    b.position(header)
    phis = [b.phi(value.type, [(value, before)]) for value in _flat(initial)]
    condition, *passed = ctx.run(op.before_region.block, _unflat(initial, phis))
    b.cond_br(condition, body, end)
    b.position(body)
    following = ctx.run(op.after_region.block, passed)
    for phi, value in zip(phis, _flat(following), strict=True):
        b.add_incoming(phi, value, b.current_block)
    b.br(header)
    b.position(end)
    return passed


RULES: dict[str, Rule] = {"scf.for": for_, "scf.if": if_, "scf.while": while_}

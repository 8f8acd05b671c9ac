"""tt.dot: by mma.sync where the accumulator is in its layout, else by fused multiply-adds in each thread.

Sums are kept in f32 (f64 for f64, i32 for integers) and rounded once where the result is narrower. A thread's registers
of a, b and the accumulator are found by their positions, so that no order of registers is assumed.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from deuteron.backend.cuda.mma import Read, instruction_for
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.errors import CompilationError
from deuteron.ir.types import element_type_of, i8
from deuteron.layout.distributed import mma_v2_accumulator
from deuteron.layout.linear import LANE, LinearLayout

Place = tuple[int, ...]


def dot(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    narrow = c.registers[0].type
    wide = {"half": "float", "bfloat": "float"}.get(narrow, narrow)
    multiply = _by_mma if _is_mma(c.layout) else _by_fma
    _check_types(op, wide)
    sums = multiply(ctx, op, a, b, c.map(lambda value: ctx.b.fpext(value, wide)))
    return sums.map(lambda value: ctx.b.fptrunc(value, narrow))


def _check_types(op: Operation, wide: str) -> None:
    element = element_type_of(op.a.type)
    is_integer = isinstance(element, IntegerType)
    if (is_integer and element != i8) or wide not in (("i32",) if is_integer else ("float", "double")):
        types = " @ ".join(str(element_type_of(value.type)) for value in (op.a, op.b))
        raise CompilationError(
            f"tt.dot of {types} into {element_type_of(op.c.type)}: multiply int8 into int32, and floats into floats."
        )


def _is_mma(layout: LinearLayout) -> bool:
    rank = len(layout.shape)
    return layout.of(LANE) == mma_v2_accumulator((*[1] * (rank - 2), 16, 8), [1] * rank).of(LANE)


def _by_mma(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    """For each step along K, all 16x8 tiles of the accumulator: neighbours do not wait for each other."""
    instruction, at_c = instruction_for(element_type_of(op.a.type), element_type_of(op.b.type)), register_at(c.layout)
    corners = [place for place in at_c if not place[-2] & 8 and not place[-1] & 1]
    sums = {corner: [c.registers[register] for register in _tile(at_c, corner)] for corner in corners}
    for k in range(0, a.layout.shape[-1], instruction.k):
        operands_a = _operands(ctx.b, instruction.operand_a, a, {(*p[:-2], p[-2]) for p in corners}, k)
        operands_b = _operands(ctx.b, instruction.operand_b, b, {(*p[:-2], p[-1]) for p in corners}, k)
        for p in corners:
            x, y = operands_a[*p[:-2], p[-2]], operands_b[*p[:-2], p[-1]]
            sums[p] = instruction.multiply(ctx.b, x, y, sums[p])
    found = {register: value for p in corners for register, value in zip(_tile(at_c, p), sums[p], strict=True)}
    return Fragment(c.layout, tuple(found[at_c[place]] for place in positions(c.layout)))


def _tile(at_c: dict[Place, int], corner: Place) -> list[int]:
    """The registers of a thread in the 16x8 tile of the accumulator that begins there."""
    *batch, row, column = corner
    return [at_c[*batch, row + r, column + c] for r, c in ((0, 0), (0, 1), (8, 0), (8, 1))]


def _operands(
    b: Builder, make: Callable[..., list[Value]], tile: Fragment, places: set[Place], k: int
) -> dict[Place, list[Value]]:
    """The words of each row of a, or column of b, at one step along K; places are sorted, for equal output."""
    known = register_at(tile.layout)

    def reader(batch: Place) -> Read:
        return lambda row, column: tile.registers[known[*batch, row, column]]

    return {place: make(b, reader(place[:-1]), place[-1], k) for place in sorted(places)}


def _by_fma(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    at_a, at_b, type = register_at(a.layout), register_at(b.layout), c.registers[0].type
    a, b = (tile.map(lambda value: _widened(ctx.b, value, type)) for tile in (a, b))
    sums, places = list(c.registers), positions(c.layout)
    for k in range(a.layout.shape[-1]):
        for index, (*batch, row, column) in enumerate(places):
            x, y = a.registers[at_a[*batch, row, k]], b.registers[at_b[*batch, k, column]]
            sums[index] = _multiply_add(ctx.b, x, y, sums[index])
    return Fragment(c.layout, tuple(sums))


def _widened(b: Builder, value: Value, type: str) -> Value:
    return b.sext(value, type) if type == "i32" else b.fpext(value, type)


def _multiply_add(b: Builder, x: Value, y: Value, total: Value) -> Value:
    if total.type == "i32":
        return b.add(b.mul(x, y), total)
    return b.intrinsic("llvm.fma", total.type, x, y, total)


RULES: dict[str, Rule] = {"tt.dot": dot}

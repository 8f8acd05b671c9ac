"""tt.dot by fused multiply-adds in each thread.

Sums are kept in f32 (f64 for f64, i32 for integers) and rounded once where the result is narrower. A thread's registers
of a, b and the accumulator are found by their positions, so that no order of registers is assumed.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.errors import CompilationError
from deuteron.ir.types import element_type_of, i8

Multiply = Callable[[Context, Operation, Fragment, Fragment, Fragment], Fragment]


def dot(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    return in_wide_sums(multiply_add, ctx, op, a, b, c)


def in_wide_sums(multiply: Multiply, ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    """Multiply with an accumulator of 32 bits at least; round what comes of it."""
    narrow = c.registers[0].type
    wide = {"half": "float", "bfloat": "float"}.get(narrow, narrow)
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


def multiply_add(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    at_a, at_b, type = register_at(a.layout), register_at(b.layout), c.registers[0].type
    a, b = (tile.map(lambda value: _widened(ctx.b, value, type)) for tile in (a, b))
    sums, places = list(c.registers), positions(c.layout)
    for k in range(a.layout.shape[-1]):
        for index, (*batch, row, column) in enumerate(places):
            x, y = a.registers[at_a[*batch, row, k]], b.registers[at_b[*batch, k, column]]
            sums[index] = _fused(ctx.b, x, y, sums[index])
    return Fragment(c.layout, tuple(sums))


def _widened(b: Builder, value: Value, type: str) -> Value:
    return b.sext(value, type) if type == "i32" else b.fpext(value, type)


def _fused(b: Builder, x: Value, y: Value, total: Value) -> Value:
    if total.type == "i32":
        return b.add(b.mul(x, y), total)
    return b.intrinsic("llvm.fma", total.type, x, y, total)


RULES: dict[str, Rule] = {"tt.dot": dot}

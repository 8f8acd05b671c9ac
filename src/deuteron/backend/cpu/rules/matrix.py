"""tt.dot and the transposition of its operands, on buffers."""

from __future__ import annotations

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.microkernel import MatmulShape, emit_matmul
from deuteron.backend.cpu.places import address
from deuteron.backend.cpu.plan.items import Dot, Place, Transpose
from deuteron.backend.cpu.transpose import emit_transpose
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute
from deuteron.ir.types import shape_of


def emit_dot(ctx: Context, item: Dot) -> None:
    """One product, or one for each matrix of a batch."""
    places, type = (item.a, item.b, item.result), item.result.slot.type
    if any(place.slot.type != type for place in places):
        types = " @ ".join(str(operand.type) for operand in item.op.operands[:2])
        message = f"tt.dot of {types} into {item.op.c.type}: accumulate floats in fp32 (fp64 in fp64), integers in i32."
        raise CompilationError(message, *from_attribute(item.op.location))
    shape_a, shape_b = shape_of(item.op.a.type), shape_of(item.op.b.type)
    m, k, n = shape_a[-2], shape_a[-1], shape_b[-1]
    shape = MatmulShape(m, n, k, *(place.strides[-2] for place in places))
    emitter = ctx.emitter
    addresses = [address(ctx, place) for place in places]
    loop = None
    if len(shape_a) == 3 and shape_a[0] > 1:
        loop = emitter.open_loop(const("i64", 0), const("i64", shape_a[0]), const("i64", 1), hint="batch")
        addresses = [_matrix(ctx, place, first, loop.index) for place, first in zip(places, addresses, strict=True)]
    vector_width = ctx.target.vector_width(type)
    emit_matmul(emitter.innermost(), shape, *addresses, type, vector_width, ctx.target.vector_registers)
    if loop is not None:
        emitter.close_loop(loop)


def _matrix(ctx: Context, place: Place, first: Value, number: Value) -> Value:
    """The address of one matrix of a batch."""
    b = ctx.emitter.innermost()
    offset = b.mul(number, const("i64", place.strides[0] * byte_width(place.slot.type)))
    return b.gep("i8", first, offset, "inbounds")


def emit_transposition(ctx: Context, item: Transpose) -> None:
    rows, columns = shape_of(item.op.src.type)
    strides = item.source.strides[0], item.result.strides[0]
    addresses = address(ctx, item.source), address(ctx, item.result)
    emit_transpose(ctx.emitter.innermost(), *addresses, rows, columns, *strides, item.result.slot.type)

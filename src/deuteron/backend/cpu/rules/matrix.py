"""tt.dot and the transposition of its operands, on buffers."""

from __future__ import annotations

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.microkernel import MatmulShape, emit_matmul
from deuteron.backend.cpu.packing import emit_packed
from deuteron.backend.cpu.places import address
from deuteron.backend.cpu.plan.items import Dot, Place, Transpose
from deuteron.backend.cpu.products import LANES, NativeProduct, plain_product
from deuteron.backend.cpu.transpose import emit_transpose
from deuteron.backend.llvm.types import Value, byte_width, const
from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute
from deuteron.ir.types import shape_of


def emit_dot(ctx: Context, item: Dot) -> None:
    """One product, or one for each matrix of a batch."""
    places, emitter = (item.a, item.b, item.result), ctx.emitter
    addresses, batch, loop = [address(ctx, place) for place in places], shape_of(item.op.a.type)[:-2], None
    if batch and batch[0] > 1:
        loop = emitter.open_loop(const("i64", 0), const("i64", batch[0]), const("i64", 1), hint="batch")
        addresses = [_matrix(ctx, place, first, loop.index) for place, first in zip(places, addresses, strict=True)]
    if item.packed is None:
        _emit_plain(ctx, item, *addresses)
    else:
        _emit_native(ctx, item, item.product, item.packed, *addresses)
    if loop is not None:
        emitter.close_loop(loop)


def _emit_plain(ctx: Context, item: Dot, a: Value, bm: Value, c: Value) -> None:
    """A product of elements as they are kept."""
    type = item.result.slot.type
    if any(place.slot.type != type for place in (item.a, item.b)):
        types = " @ ".join(str(operand.type) for operand in item.op.operands[:2])
        message = f"tt.dot of {types} into {item.op.c.type}: accumulate floats in fp32 (fp64 in fp64), integers in i32."
        raise CompilationError(message, *from_attribute(item.op.location))
    m, n, k = _sizes(item)
    shape = MatmulShape(m, n, k, *(place.strides[-2] for place in (item.a, item.b, item.result)))
    vector_width = ctx.target.vector_width(type)
    b = ctx.emitter.innermost()
    emit_matmul(b, shape, a, bm, c, plain_product(type), vector_width, ctx.target.vector_registers)


def _emit_native(ctx: Context, item: Dot, product: NativeProduct, packed: Place, a: Value, bm: Value, c: Value) -> None:
    """A product of lanes; B is packed first."""
    m, n, k = _sizes(item)
    lanes = address(ctx, packed)
    b = ctx.emitter.innermost()
    if item.b_is_transposed:
        emit_transpose(b, bm, lanes, n, k // product.group, item.b.strides[-2] // product.group, n, product.lane)
    else:
        emit_packed(b, bm, lanes, k, n, item.b.strides[-2], product)
    lda = item.a.strides[-2] // product.group
    shape = MatmulShape(m, n, k // product.group, lda, n, item.result.strides[-2])
    emit_matmul(b, shape, a, lanes, c, product, LANES, ctx.target.vector_registers)


def _sizes(item: Dot) -> tuple[int, int, int]:
    """m, n and k."""
    m, n = shape_of(item.op.result.type)[-2:]
    return m, n, shape_of(item.op.a.type)[-1]


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

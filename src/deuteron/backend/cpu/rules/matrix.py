"""tt.dot and the transposition of its operands, on buffers."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import one_element
from deuteron.backend.cpu.memory.places import address, address_of_step
from deuteron.backend.cpu.memory.transpose import emit_transpose
from deuteron.backend.cpu.parts import elements_before, first_element
from deuteron.backend.cpu.plan.items import Dot, Transpose
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.cpu.products.amx import emit_tile_matmul
from deuteron.backend.cpu.products.blocking import TILE, Given, Operands, choose_blocking, depth_step
from deuteron.backend.cpu.products.microkernel import emit_matmul
from deuteron.backend.cpu.products.packing import emit_packed
from deuteron.backend.cpu.products.products import LANES, NativeProduct, PlainProduct, TileProduct, plain_product
from deuteron.backend.cpu.products.shared_products import call_matmul, kind_of, matmul_shape
from deuteron.backend.llvm.types import Value, bit_width, byte_width, const, zero
from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute
from deuteron.ir.types import shape_of


def emit_dot(ctx: Context, item: Dot) -> None:
    """One product, or one for each matrix of a batch; or, after some steps of a loop, the product of all of them."""
    places, emitter = (item.a, item.b, item.result), ctx.emitter
    first = [address(ctx, place) if item.copies_a or place is not item.a else zero("ptr") for place in places]
    batch, loop = shape_of(item.op.a.type)[:-2], None
    if batch and batch[0] > 1:
        loop = emitter.open_loop(const("i64", 0), const("i64", batch[0]), const("i64", 1), hint="batch")
        first = [_matrix(ctx, *taken, loop.index) for taken in zip(places, first, strict=True)]
    operands = Operands(*first)
    if item.packed is not None:
        _emit_packed(ctx, item, item.product, item.packed, operands.b)
    row_bytes = None
    if not item.copies_a:
        a, row_bytes = _rows_in_memory(ctx, item)
        operands = operands._replace(a=a)
    elif item.direct is not None:
        a, row_bytes = _rows_or_copies(ctx, item, operands.a)
        operands = operands._replace(a=a)
    depth = _depth(ctx, item)
    if item.steps == 1:
        _emit_product(ctx, item, operands, row_bytes, depth if item.needed_depth else None)
    else:
        _emit_steps(ctx, item, operands, row_bytes, depth)
    if loop is not None:
        emitter.close_loop(loop)


def _rows_in_memory(ctx: Context, item: Dot) -> tuple[Value, Value]:
    """Of A, which tiles read where the arguments have it: where the first step's rows begin, how many bytes apart."""
    first, row_bytes = _rows_of_step(ctx, item)
    if item.steps > 1:
        b, step_bytes = ctx.emitter.innermost(), shape_of(item.op.a.type)[-1] * byte_width(item.a.slot.type)
        first = b.gep("i8", first, b.mul(ctx.step.number, const("i64", -step_bytes)))
    return first, row_bytes


def _rows_of_step(ctx: Context, item: Dot) -> tuple[Value, Value]:
    """The same, of this step."""
    indices = [(one_element(row), one_element(0)) for row in range(2)]
    with ctx.evaluating_afresh():
        first, second = (ctx.evaluate(item.direct.load.ptr, index).value for index in indices)
    b = ctx.emitter.innermost()
    return first, b.sub(b.ptrtoint(second), b.ptrtoint(first))


def _rows_or_copies(ctx: Context, item: Dot, copies: Value) -> tuple[Value, Value]:
    """The same, of the copies where there are any."""
    rows, row_bytes = _rows_in_memory(ctx, item)
    b, is_direct = ctx.emitter.innermost(), ctx.products.read_directly[item]
    pitch = const("i64", item.a.strides[-2] * byte_width(item.a.slot.type))
    return b.select(is_direct, rows, copies), b.select(is_direct, row_bytes, pitch)


def first_row_of_a(ctx: Context, item: Dot) -> Value:
    """Where A begins in this step, in memory or copied."""
    if not item.copies_a:
        return _rows_of_step(ctx, item)[0]
    copies = address_of_step(ctx, item.a)
    if item.direct is None:
        return copies
    first, _ = _rows_of_step(ctx, item)
    return ctx.emitter.innermost().select(ctx.products.read_directly[item], first, copies)


def _depth(ctx: Context, item: Dot) -> Value:
    """How many lanes along k this step has to be computed of: those up to the limits, in whole steps of the product."""
    _, _, lanes = _sizes(item)
    if not item.needed_depth:
        return const("i64", lanes)
    group, unit = item.product.group if item.product else 1, depth_unit(item.product, lanes)
    elements = elements_needed(ctx, item.needed_depth, lanes * group)
    b, unit = ctx.emitter.innermost(), unit * group
    units = b.udiv(b.add(elements, const("i64", unit - 1)), const("i64", unit))
    return b.mul(units, const("i64", unit // group))


def _emit_steps(ctx: Context, item: Dot, operands: Operands, row_bytes: Value | None, depth: Value) -> None:
    """The product of the steps so far, if as many are kept as there is room for, or no other follows. Of those before
    the last all lanes count.
    """
    b, step = ctx.emitter.innermost(), ctx.step
    _, _, lanes = _sizes(item)
    with b.if_(step.is_last, "product"):
        depth = b.add(b.mul(step.number, const("i64", lanes)), depth)
        _emit_product(ctx, item, operands, row_bytes, depth)


def _emit_packed(ctx: Context, item: Dot, product: NativeProduct, packed: Place, bm: Value) -> None:
    """Write the lanes of B, panel by panel."""
    _, n, k = _sizes(item)
    panels, target, stride = packed.slot.layout, address_of_step(ctx, packed), item.b.strides[-2]
    b = ctx.emitter.innermost()
    size = const("i64", panels.columns)
    with b.loop(const("i64", 0), const("i64", n), size, hint="panel") as panel:
        target = b.gep(product.lane, target, b.mul(panel.index, const("i64", panels.pitch // panels.columns)))
        if item.b_is_transposed:
            lane_stride = stride // product.group
            source = b.gep(product.lane, bm, b.mul(panel.index, const("i64", lane_stride)))
            emit_transpose(b, source, target, panels.columns, k, lane_stride, panels.columns, product.lane)
        else:
            source = b.gep(product.element, bm, panel.index)
            emit_packed(b, source, target, k * product.group, panels.columns, stride, product)


def _emit_product(
    ctx: Context, item: Dot, operands: Operands, row_bytes: Value | None, depth: Value | None = None
) -> None:
    b, product, shape = ctx.emitter.innermost(), item.product, matmul_shape(item)
    if item.packed is not None:
        operands = operands._replace(b=address(ctx, item.packed))
    from_zero = ctx.step.is_first if item.begins_sums else item.from_zero
    m, n, _ = _sizes(item)
    needed = [_needed(ctx, limits, extent) for limits, extent in ((item.needed_rows, m), (item.needed_columns, n))]
    given = Given(depth, from_zero, row_bytes, *needed)
    ctx.locate(item.op)  # after what was computed of other ops
    if isinstance(product, TileProduct):
        emit_tile_matmul(b, shape, operands, product, given)
        return
    width = LANES if product is not None else ctx.target.vector_width(bit_width(item.result.slot.type))
    product = product or _plain_product(item)
    emit = call_matmul if kind_of(item) in ctx.products.repeated else emit_matmul
    emit(b, shape, operands, product, choose_blocking(shape, width, ctx.target.vector_registers), given)


def _needed(ctx: Context, limits: Sequence[Sequence[Limit]], extent: int) -> Value | None:
    return elements_needed(ctx, limits, extent) if limits else None


def elements_needed(ctx: Context, limits: Sequence[Sequence[Limit]], extent: int) -> Value:
    """How many rows, columns or elements along k there have to be for all stores, or both operands: for each those
    below the lowest of its limits.
    """
    b = ctx.emitter.innermost()
    with ctx.evaluating_afresh():
        of_each = [[_below(ctx, limit, extent) for limit in own] for own in limits]
    return b.zext(functools.reduce(b.umax, [functools.reduce(b.umin, own) for own in of_each]), "i64")


def _below(ctx: Context, limit: Limit, extent: int) -> Value:
    """How many elements there are up to a limit."""
    return elements_before(ctx, limit, first_element(limit.index), extent)[1]


def _plain_product(item: Dot) -> PlainProduct:
    """A product of elements as they are kept."""
    type = item.result.slot.type
    if any(place.slot.type != type for place in (item.a, item.b)):
        types = " @ ".join(str(operand.type) for operand in item.op.operands[:2])
        message = f"tt.dot of {types} into {item.op.c.type}: accumulate floats in fp32 (fp64 in fp64), integers in i32."
        raise CompilationError(message, *from_attribute(item.op.location))
    return plain_product(type)


def depth_unit(product: NativeProduct | None, lanes: int) -> int:
    """A product of so many lanes is computed in steps of how many: of tiles, or of what is unrolled."""
    return min(TILE, lanes) if isinstance(product, TileProduct) else depth_step(lanes)


def _sizes(item: Dot) -> tuple[int, int, int]:
    """m, n and k, in lanes."""
    m, n = shape_of(item.op.result.type)[-2:]
    return m, n, shape_of(item.op.a.type)[-1] // (item.product.group if item.product else 1)


def _matrix(ctx: Context, place: Place, first: Value, number: Value) -> Value:
    """The address of one matrix of a batch."""
    b = ctx.emitter.innermost()
    offset = b.mul(number, const("i64", place.strides[0] * byte_width(place.slot.type)))
    return b.gep("i8", first, offset, "inbounds")


def emit_transposition(ctx: Context, item: Transpose) -> None:
    rows, columns = shape_of(item.op.src.type)
    strides = item.source.strides[0], item.result.strides[0]
    addresses = address(ctx, item.source), address_of_step(ctx, item.result)
    emit_transpose(ctx.emitter.innermost(), *addresses, rows, columns, *strides, item.result.slot.type)

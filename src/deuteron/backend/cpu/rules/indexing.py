"""tt.gather and tt.histogram, one element at a time; the tile that is gathered from, and the bins, are in memory. A
gather that exchanges the elements of pairs is computed in vectors, as its operand at another index (plan/indices.py).

out[i, j] = scratch[(index[i, j] & 63) * 16 + j]        the lowest bits of an index: nothing else is ever read
bin = x[i]; if mask[i] and bin < 64: scratch[bin] += 1
"""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cpu.context import AxisIndex, Context, Rule
from deuteron.backend.cpu.fragment import Axis, Fragment
from deuteron.backend.cpu.memory.places import address, read_place, write_place
from deuteron.backend.llvm.types import Value, bit_width, const
from deuteron.ir.types import shape_of


def gather_element(ctx: Context, op: Operation, index: AxisIndex) -> None:
    """Copy one element to the result."""
    axis = op.axis.value.data
    extent = shape_of(op.src.type)[axis]
    found = _wide(ctx, ctx.evaluate(op.indices, index).value)
    b, level = ctx.emitter.innermost(), ctx.emitter.depth
    start = b.and_(b.trunc(found, "i32"), const("i32", extent - 1))
    along = Axis(start, 1, level) if extent > 1 else None
    element = read_place(ctx, op.src, ctx.plan.places[op.src], (*index[:axis], along, *index[axis + 1 :]))
    write_place(ctx, ctx.plan.places[op.result], index, element)


def clear_bins(ctx: Context, op: Operation) -> None:
    """Set every bin to 0."""
    place = ctx.plan.places[op.result]
    where, num_bytes = address(ctx, place), const("i64", 4 * place.shape[0])
    b = ctx.emitter.innermost()
    b.intrinsic("llvm.memset", "void", where, const("i8", 0), num_bytes, const("i1", 0), overloads=("ptr", "i64"))


def count_element(ctx: Context, op: Operation, index: AxisIndex) -> None:
    """Add one element to its bin, if it has one."""
    place = ctx.plan.places[op.result]
    value = _wide(ctx, ctx.evaluate(op.src, index).value)
    mask = None if op.mask is None else ctx.evaluate(op.mask, index).value
    where = address(ctx, place)
    b = ctx.emitter.innermost()
    counted = b.icmp("ult", value, const(value.type, place.shape[0]))
    counted = counted if mask is None else b.and_(counted, mask)
    with b.if_(counted, "counted"):
        bin = b.gep("i32", where, b.zext(value, "i64"), "inbounds")
        b.store(b.add(b.load("i32", bin), const("i32", 1)), bin)


def _wide(ctx: Context, value: Value) -> Value:
    """An integer in at least 32 bits."""
    return ctx.emitter.innermost().zext(value, "i32") if bit_width(value.type) < 32 else value


def exchanged_elements(ctx: Context, op: Operation, partners: Fragment) -> Fragment:
    """What was read at the index of the partners."""
    return partners


RULES: dict[str, Rule] = {"tt.gather": exchanged_elements}

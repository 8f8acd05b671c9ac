"""tt.dot and ttg.sliced_dot by fused multiply-adds in each thread.

Sums are kept in f32 (f64 for f64, i32 for integers) and rounded once where the result is narrower. A thread's registers
of a, b and the accumulator are found by their positions, so that no order of registers is assumed.

Slices come from shared memory. Many of them make a loop: ptxas takes 20 s for 16,384 multiply-adds in a row. What
loops have in an iteration is shared out over the dots of a kernel, so that the code of many stays of a size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.elements import from_bits
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.gpu.rules.cast import in_format
from deuteron.backend.gpu.shared_tile import SharedTile, load_tile
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import CompilationError
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttng.warp_group_dot import tile_of
from deuteron.ir.types import element_type_of, f32, i8, is_fp8, shape_of
from deuteron.layout.distributed import multiply_add_operand

Operand = Fragment | SharedTile
Multiply = Callable[[Context, Operation, Operand, Operand, Fragment], Fragment]
# In an iteration of a loop over slices; so many in a row, of a whole dot, are none. So many of all loops together, of
# more than FEW dots fewer, as long as each has the last number: 16 of 64x64x64 in one warp were 33,152 in a kernel, of
# which ptxas took 15 s. What a shorter iteration costs where it runs is not measured.
MULTIPLY_ADDS, OF_ALL_DOTS, FEW, LEAST = 2048, 8192, 8, 128


def dot(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    return in_wide_sums(multiply_add, ctx, op, a, b, c)


def in_wide_sums(multiply: Multiply, ctx: Context, op: Operation, a: Operand, b: Operand, c: Fragment) -> Fragment:
    """Multiply with an accumulator of 32 bits at least; round what comes of it."""
    narrow = c.registers[0].type
    wide = {"half": "float", "bfloat": "float"}.get(narrow, narrow)
    _check_types(op, wide)
    sums = multiply(ctx, op, a, b, c.map(lambda value: ctx.b.fpext(value, wide)))
    return sums.map(lambda value: ctx.b.fptrunc(value, narrow))


def _check_types(op: Operation, wide: str) -> None:
    element = element_type_of(tile_of(op.a.type))
    is_integer = isinstance(element, IntegerType)
    if (is_integer and element != i8) or wide not in (("i32",) if is_integer else ("float", "double")):
        types = " @ ".join(str(element_type_of(tile_of(value.type))) for value in (op.a, op.b))
        raise CompilationError(
            f"tt.dot of {types} into {element_type_of(op.c.type)}: multiply int8 into int32, and floats into floats."
        )


def multiply_add(ctx: Context, op: Operation, a: Fragment, b: Fragment, c: Fragment) -> Fragment:
    at_a, at_b, type = register_at(a.layout), register_at(b.layout), c.registers[0].type
    a, b = (_widened(ctx, tile, operand, type) for tile, operand in ((a, op.a), (b, op.b)))
    sums, places = list(c.registers), positions(c.layout)
    for k in range(a.layout.shape[-1]):
        for index, (*batch, row, column) in enumerate(places):
            x, y = a.registers[at_a[*batch, row, k]], b.registers[at_b[*batch, k, column]]
            sums[index] = _fused(ctx.b, x, y, sums[index])
    return Fragment(c.layout, tuple(sums))


def sliced_dot(ctx: Context, op: Operation, a: SharedTile, b: SharedTile, c: Fragment) -> Fragment:
    return in_wide_sums(_over_slices, ctx, op, a, b, c)


def _over_slices(ctx: Context, op: Operation, a: SharedTile, b: SharedTile, c: Fragment) -> Fragment:
    step, k = op.depth.value.data, a.layout.shape[-1]
    most = _multiply_adds(op)
    while step < k and 2 * step * len(c.registers) <= most:
        step *= 2
    if step == k:
        return _add_slices(ctx, op, a, b, c, step)
    start, stop, by = (const("i32", number) for number in (0, k, step))
    with ctx.b.loop(start, stop, by, c.registers, "k", ctx.module.rolled_loop()) as loop:
        here = a.part(ctx.b, -1, loop.index, step), b.part(ctx.b, -2, loop.index, step)
        total = _add_slices(ctx, op, *here, Fragment(c.layout, tuple(loop.carried)), step)
        loop.next(*total.registers)
    return Fragment(c.layout, tuple(loop.results))


def _multiply_adds(op: Operation) -> int:
    """Of an iteration of a loop over slices."""
    num_dots = len(nested_ops(op.get_toplevel_object(), SlicedDotOp))
    of_all = OF_ALL_DOTS * FEW // max(num_dots, FEW)
    return min(MULTIPLY_ADDS, max(of_all // num_dots, LEAST))


def _add_slices(ctx: Context, op: Operation, a: SharedTile, b: SharedTile, total: Fragment, size: int) -> Fragment:
    """`size` columns of a and rows of b, as many at a time as the op says."""
    depth = op.depth.value.data
    for begin in range(0, size, depth):
        slices = (
            _load_slice(ctx, tile, operand.type.tile, total, index, begin, depth)
            for index, (tile, operand) in enumerate(((a, op.a), (b, op.b)))
        )
        total = multiply_add(ctx, op, *slices, total)
    return total


def _load_slice(
    ctx: Context, shared: SharedTile, type: Attribute, sums: Fragment, index: int, begin: int, depth: int
) -> Fragment:
    """The elements of operand a (0) or b (1) from `begin` on along K that a thread multiplies."""
    shape, origin, axis = list(shape_of(type)), [0] * len(sums.layout.shape), -1 - index
    shape[axis], origin[axis] = depth, begin
    layout = multiply_add_operand(sums.layout, tuple(shape), index)
    bits = load_tile(ctx, replace(shared, origin=tuple(origin)), layout)
    return Fragment(layout, tuple(from_bits(ctx.b, value, type) for value in bits))


def _widened(ctx: Context, tile: Fragment, operand: SSAValue, type: str) -> Fragment:
    """What an operand holds, or a slice of it, in the type of the sums."""
    element = element_type_of(tile_of(operand.type))
    if is_fp8(element):
        tile = in_format(ctx, tile, element, f32)
    return tile.map(lambda value: ctx.b.sext(value, type) if type == "i32" else ctx.b.fpext(value, type))


def _fused(b: Builder, x: Value, y: Value, total: Value) -> Value:
    if total.type == "i32":
        return b.add(b.mul(x, y), total)
    return b.fma(x, y, total)


RULES: dict[str, Rule] = {"tt.dot": dot, "ttg.sliced_dot": sliced_dot}

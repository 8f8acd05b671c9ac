"""Copies a kernel's function for planning, and gives a value of its own to what has to be in memory in its own right.

    for ...: a, b = b, a        yields copies taken at the end of the body: no order of writes can go wrong
    tl.dot(i8_tile, ...)        multiplies copies, which are widened to i32
    tl.dot(half_of_split, ...)  multiplies a copy whose elements are neighbours
    x = x + 1; reshape(x)       shows a copy: what a loop only adds to is not in memory; so does gather(x, i, 0)

A copy is a `tt.broadcast` to the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.core import BlockArgument
from xdsl.rewriter import InsertPoint

from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.plan.inductions import find_inductions
from deuteron.backend.cpu.plan.narrow_integers import narrow_integers
from deuteron.backend.cpu.plan.ops.shape import is_transpose
from deuteron.backend.cpu.plan.products.marks import mark_steps
from deuteron.backend.cpu.plan.products.native_products import use_native_product
from deuteron.backend.cpu.plan.products.steps_together import copy_operands_of_steps, is_sum_of_loop, steps_together
from deuteron.backend.cpu.plan.tiles.views import is_strided, is_view, viewed_source
from deuteron.backend.cpu.products.blocking import block_columns, tile_columns
from deuteron.backend.cpu.products.products import LANES, NativeProduct, TileProduct, native_product
from deuteron.backend.llvm.types import bit_width
from deuteron.errors import UsageError
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.map_elementwise import MapElementwiseOp
from deuteron.ir.tt.shape import BroadcastOp
from deuteron.ir.types import is_integer, is_tile, shape_of
from deuteron.machine.cpu import CPU


def kernel_of(module: ModuleOp, target: CPU) -> FuncOp:
    """A copy of the kernel, the only public function, prepared for planning."""
    kernels = [func for func in functions_in(module.clone()) if not func.is_private]
    if len(kernels) != 1:
        raise UsageError(f"a module needs exactly one public function, the kernel; this one has {len(kernels)}")
    narrow_integers(nested_ops(kernels[0]))
    ops = nested_ops(kernels[0])
    inductions = {value for op in ops if isinstance(op, scf.ForOp) for value in _induction_values(op)}
    for op in ops:
        if isinstance(op, scf.ForOp):
            _copy_yielded(op, inductions)
        elif isinstance(op, DotOp):
            _prepare_product(op, target, inductions)
        elif (is_view(op) or isinstance(op, GatherOp)) and op.operands[0] in inductions:
            _copy_operand(op, 0)
        elif isinstance(op, MapElementwiseOp) and op.pack.value.data > 1:
            _copy_inductions(op, inductions)
    return kernels[0]


def _induction_values(op: scf.ForOp) -> Iterator[SSAValue]:
    """The values that are inductions, in the loop and after it: they are not in memory."""
    for number in find_inductions(op):
        yield op.body.block.args[number + 1]
        yield op.results[number]


def _copy_yielded(op: scf.ForOp, inductions: set[SSAValue]) -> None:
    """What shows the memory of a value that the loop carries, or of an inner loop's, before it is written again."""
    block, terminator = op.body.block, op.body.block.last_op
    for number, value in enumerate(terminator.operands):
        if not is_tile(value.type) or block.args[number + 1] in inductions:
            continue
        source = viewed_source(value)
        is_carried = isinstance(source, BlockArgument) and source.owner is block
        if is_carried or (isinstance(source.owner, scf.ForOp) and source.owner.parent_block() is block):
            _copy_operand(terminator, number)


def _prepare_product(op: DotOp, target: CPU, inductions: set[SSAValue]) -> None:
    product = native_product(op, target, is_sum_of_loop(op))
    steps = steps_together(op, product)
    m, n = shape_of(op.result.type)[-2:]
    if product is not None:
        use_native_product(op, product, steps)
        mark_steps(op, steps, _panel_columns(m, n, product, target))
        return
    if steps == 1:
        _copy_operands(op, inductions)
        return
    columns = block_columns(m, n, target.vector_width(bit_width(register_type(op.c.type))), target.vector_registers)
    mark_steps(op, steps)
    copy_operands_of_steps(op, steps, columns)


def _panel_columns(m: int, n: int, product: NativeProduct, target: CPU) -> int:
    """How many columns the panels of B have that a product is given."""
    if isinstance(product, TileProduct):
        return tile_columns(n)
    return block_columns(m, n, LANES, target.vector_registers)


def _copy_operands(op: Operation, inductions: set[SSAValue]) -> None:
    """The operands of a product are widened, or not in memory element by element."""
    for number in (0, 1):
        value = op.operands[number]
        transposed = value.owner if is_transpose(value) else None
        if is_integer(value.type) or _is_scattered(value, inductions):
            _copy_operand(op, number)
        elif transposed is not None and _is_scattered(transposed.src, inductions):
            _copy_operand(transposed, 0)


def _copy_inductions(op: Operation, inductions: set[SSAValue]) -> None:
    for number, value in enumerate(op.operands):
        if value in inductions:
            _copy_operand(op, number)


def _is_scattered(value: SSAValue, inductions: set[SSAValue]) -> bool:
    return value in inductions or is_strided(value)


def _copy_operand(op: Operation, number: int) -> None:
    op.operands[number] = _copy(op.operands[number], op)


def _copy(value: SSAValue, before: Operation) -> SSAValue:
    builder = Builder(InsertPoint.before(before), before.location)
    return builder.value(BroadcastOp(value, shape_of(value.type)))

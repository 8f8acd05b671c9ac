"""About how many instructions of a thread ops are: registers of their tiles, times what an element takes.

arith.addf of 64 registers     64
tt.load of 64 registers        192    with address and mask
a dot without an instruction   a multiply-add for each of its sums and each step of K
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.instruction_weights import weight_of
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import bit_width_of, i32, is_tile, shape_of
from deuteron.layout.linear import LANE, REGISTER, WARP
from deuteron.machine.gpu import USUAL_REGISTERS
from deuteron.machine.matrix import USUAL_COLUMNS, USUAL_DEPTH_BITS, USUAL_ROWS
from deuteron.passes.gpu.slices.slice_axes import SUMMED

MATRIX_SUMS = 4  # what an instruction for matrices gives a thread
REGISTER_BITS = USUAL_REGISTERS * bit_width_of(i32)  # of a thread
_OF_SCAN, _OF_EXCHANGED_SCAN = 2, 16  # within a thread; among lanes or warps


def registers_of(value: SSAValue) -> int:
    """How many elements of a tile a thread has; of a scalar one."""
    return layout_of(value.type).in_size(REGISTER) if is_tile(value.type) else 1


def most_registers(op: Operation) -> int:
    """Of the largest tile that an op gives or takes."""
    return max([registers_of(value) for value in (*op.results, *op._operands) if is_tile(value.type)], default=1)


def is_wider_than_threads(value: SSAValue) -> bool:
    """Whether a thread has more of a tile than registers, so that most of it is in memory whatever is done."""
    return bits_in_thread(value) > REGISTER_BITS


def bits_in_thread(value: SSAValue) -> int:
    """Of a tile, or of a scalar."""
    return registers_of(value) * bit_width_of(value.type)


def cost_of(op: Operation) -> int:
    count = most_registers(op)
    if isinstance(op, DotOp):
        return max(multiply_adds(op), count)
    return count * _weight(op)


def _weight(op: Operation) -> int:
    if isinstance(op, ScanOp):
        layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
        is_exchanged = any(basis[axis] for name in (LANE, WARP) for basis in layout.of(name))
        return _OF_EXCHANGED_SCAN if is_exchanged else _OF_SCAN
    return weight_of(op)


def multiply_adds(op: DotOp) -> int:
    """How many a thread does, where it has whole rows of a and columns of b; with matrix instructions it has not: 0."""
    layout, k = layout_of(op.a.type), shape_of(op.a.type)[-1]
    is_whole = not any(basis[-1] for name in (LANE, WARP) for basis in layout.of(name))
    return registers_of(op.c) * k if is_whole else 0


def matrix_instructions(op: DotOp) -> int:
    """How many a warp executes, where threads have no whole rows and columns; else 0."""
    steps = max(shape_of(op.a.type)[-1] * bit_width_of(op.a.type) // USUAL_DEPTH_BITS, 1)
    return 0 if multiply_adds(op) else registers_of(op.c) // MATRIX_SUMS * steps


def dot_slices(op: DotOp, axis: int) -> int:
    """Into how many slices a dot may be cut along a dimension of its result, or along K (SUMMED): instructions are
    not cut, and may be larger than the dot.
    """
    rank, k = len(shape_of(op.result.type)), shape_of(op.a.type)[-1]
    if multiply_adds(op) or 0 <= axis < rank - 2:
        return k if axis == SUMMED else shape_of(op.result.type)[axis]
    if axis == SUMMED:
        return max(k * bit_width_of(op.a.type) // USUAL_DEPTH_BITS, 1)
    return max(shape_of(op.result.type)[axis] // (USUAL_ROWS if axis == rank - 2 else USUAL_COLUMNS), 1)


def cost_of_all(op: Operation) -> int:
    """Of an op and what is in its regions; what is in a reduction is counted with it."""
    return sum(map(cost_of, _executed(nested_ops(op))))


def cost_beside_dots(op: Operation) -> int:
    """Without the dots, which become loops of their own."""
    return sum(cost_of(inner) for inner in _executed(nested_ops(op)) if not isinstance(inner, DotOp))


def _executed(ops: Iterable[Operation]) -> Iterable[Operation]:
    return (op for op in ops if not isinstance(op.parent_op(), ReduceOp | ScanOp))

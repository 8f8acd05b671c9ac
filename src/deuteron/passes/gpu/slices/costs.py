"""About how many instructions of a thread ops are: registers of their tiles, times what an element takes.

arith.addf of 64 registers     64
tt.load of 64 registers        192    with address and mask
a dot without an instruction   a multiply-add for each of its sums and each step of K
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import bit_width_of, is_tile, shape_of
from deuteron.layout.linear import LANE, REGISTER, WARP
from deuteron.machine.matrix import USUAL_DEPTH_BITS

_FREE = (
    "tt.splat",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.reshape",
    "tt.trans",
    "tt.join",
    "tt.split",
    "arith.constant",
)
_WEIGHTS = {
    "tt.load": 3,
    "tt.store": 3,
    "ttg.convert_layout": 2,
    "tt.gather": 4,
    "tt.extern_elementwise": 60,  # pow, erf, atan2, lgamma, tan: between 30 and 150; of f64 twice that
    "math.sin": 60,
    "math.cos": 60,
    "arith.divf": 8,
    "arith.divsi": 20,
    "arith.remsi": 20,
}
_OF_FUNCTION = 8  # of math: exp, log, sqrt: between 3 and 20
MATRIX_SUMS = 4  # what an instruction for matrices gives a thread
_OF_SCAN, _OF_EXCHANGED_SCAN = 2, 16  # within a thread; among lanes or warps


def registers_of(value: SSAValue) -> int:
    """How many elements of a tile a thread has; of a scalar one."""
    return layout_of(value.type).in_size(REGISTER) if is_tile(value.type) else 1


def cost_of(op: Operation) -> int:
    if op.name in _FREE:
        return 0
    values = (*op.results, *op.operands)
    count = max([registers_of(value) for value in values if is_tile(value.type)], default=1)
    if isinstance(op, DotOp):
        return max(multiply_adds(op), count)
    return count * _weight(op)


def _weight(op: Operation) -> int:
    if isinstance(op, ScanOp):
        layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
        is_exchanged = any(basis[axis] for name in (LANE, WARP) for basis in layout.of(name))
        return _OF_EXCHANGED_SCAN if is_exchanged else _OF_SCAN
    if not op.name.startswith(("math.", "tt.extern_")):
        return _WEIGHTS.get(op.name, 1)
    words = max(bit_width_of(op.results[0].type) // 32, 1)
    return words * _WEIGHTS.get(op.name, _OF_FUNCTION)


def multiply_adds(op: DotOp) -> int:
    """How many a thread does, where it has whole rows of a and columns of b; with matrix instructions it has not: 0."""
    layout, k = layout_of(op.a.type), shape_of(op.a.type)[-1]
    is_whole = not any(basis[-1] for name in (LANE, WARP) for basis in layout.of(name))
    return registers_of(op.c) * k if is_whole else 0


def matrix_instructions(op: DotOp) -> int:
    """How many a warp executes, where threads have no whole rows and columns; else 0."""
    steps = max(shape_of(op.a.type)[-1] * bit_width_of(op.a.type) // USUAL_DEPTH_BITS, 1)
    return 0 if multiply_adds(op) else registers_of(op.c) // MATRIX_SUMS * steps


def cost_of_all(op: Operation) -> int:
    """Of an op and what is in its regions; what is in a reduction is counted with it."""
    return sum(map(cost_of, _executed(nested_ops(op))))


def _executed(ops: Iterable[Operation]) -> Iterable[Operation]:
    return (op for op in ops if not isinstance(op.parent_op(), ReduceOp | ScanOp))

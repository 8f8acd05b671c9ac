"""What a value is as an expression of the kernel's arguments: sums, differences, products, maxima and minima, for a
launch to evaluate.

    %n1 = arith.extsi %n : i32 to i64        ("argument", 1, 32)
    %s = arith.muli %n1, %c2 : i64           ("mul", 64, ("argument", 1, 32), ("constant", 2))
    %q = tt.addptr %p, %s                    ("add", 64, ("argument", 0, 64), ("mul", 64, ..., ("constant", 4)))

Numbers are signed; the second item is the width in bits in which a result wraps. Expressions are plain tuples, because
they go into a kernel's metadata; `backend.tensor_map` evaluates them.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from deuteron.analysis.aliasing.points_to import is_argument
from deuteron.ir.arith import constant_value
from deuteron.ir.casts import ExtSIOp, TruncIOp
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.types import bit_width_of, byte_width_of, is_float, is_tile, pointee_of

Expression = tuple

_NAMES = {arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul", arith.MaxSIOp: "max", arith.MinSIOp: "min"}


def expression_of(value: SSAValue) -> Expression | None:
    """The expression that a scalar is; None where it depends on more than the arguments, or in another way."""
    if is_tile(value.type) or is_float(value.type):
        return None
    number = constant_value(value)
    if number is not None:
        return ("constant", number)
    if isinstance(value, BlockArgument):
        return ("argument", value.index, bit_width_of(value.type)) if is_argument(value) else None
    op = value.owner
    if isinstance(op, ExtSIOp):
        return expression_of(op.input)
    if isinstance(op, TruncIOp):
        return _combined("add", bit_width_of(value.type), expression_of(op.input), ("constant", 0))
    if isinstance(op, AddPtrOp):
        size = ("constant", byte_width_of(pointee_of(value.type)))
        return _combined("add", 64, expression_of(op.ptr), _combined("mul", 64, expression_of(op.offset), size))
    if type(op) in _NAMES:
        return _combined(_NAMES[type(op)], bit_width_of(value.type), *map(expression_of, op.operands))
    return None


def _combined(name: str, bits: int, x: Expression | None, y: Expression | None) -> Expression | None:
    return None if x is None or y is None else (name, bits, x, y)

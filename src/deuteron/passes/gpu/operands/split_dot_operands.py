"""Makes of a dot of f32 several on tensor cores, of parts of its operands: tf32x3, bf16x3 and bf16x6.

                                                  %a0 = %a rounded, %a1 = %a - %a0; %b the same
    %d = "tt.dot"(%a, %b, %c)                     %x = "tt.dot"(%a1, %b0, 0)
         <{inputPrecision = tf32x3}>       ->     %y = "tt.dot"(%a0, %b1, %x), 0 where it is NaN
                                                  %z = "tt.dot"(%a0, %b0, %y)
                                                  %d = %c + %z         each <{inputPrecision = tf32_rtz}>

tf32 holds 11 bits of a number and bf16 8, of 24: two parts give about 22 and 16 bits, three of bf16 all. Products of
two parts that are small both are left out. The last part is what is left, one bit more than tf32 holds at most: to
cut it off is as exact as to round it. What would be rounded to infinity is cut off instead. What is infinite has
parts that are NaN; it enters by the product of the first parts alone. What is accumulated is added outside: tensor
cores cut off the sums, which over a long K costs more than the parts gain (4096: 1e-5 instead of 3e-7 on an H200).

Dots that are too small for tensor cores stay: threads multiply exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, OpResult, SSAValue

from deuteron.ir.arith import CmpFOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.convert import BitcastOp
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f32, i32, shape_of, with_element_type
from deuteron.machine.gpu import GPUConfig
from deuteron.machine.matrix import MatrixUnit
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace


@dataclass(frozen=True)
class Split:
    """Into how many parts, of which type, an operand goes; a part has `cut` of the bits of f32 less. `precision` is
    that of the dots of parts.
    """

    num_parts: int
    element: Attribute
    cut: int
    precision: InputPrecision = InputPrecision.TF32

    @property
    def least_infinite(self) -> float:
        """The least number that would be rounded to infinity."""
        return (2 - 2.0 ** (self.cut - 24)) * 2.0**127


SPLITS = {
    InputPrecision.TF32x3: Split(2, f32, 13, InputPrecision.TF32_RTZ),
    InputPrecision.BF16x3: Split(2, bf16, 16),
    InputPrecision.BF16x6: Split(3, bf16, 16),
}


@dataclass(frozen=True)
class SplitDotOperands(Optimisation):
    """Rewrites the dots whose precision asks for it."""

    name = "split-dot-operands"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        unit = self.config.machine.mma
        if unit is None:
            return
        for dot in nested_ops(op):
            if isinstance(dot, DotOp) and (split := _split_of(dot, unit)) is not None:
                _rewrite(dot, split)


def _split_of(dot: DotOp, unit: MatrixUnit) -> Split | None:
    split = SPLITS.get(InputPrecision(dot.input_precision.value.data))
    if split is None or {element_type_of(value.type) for value in dot.operands} != {f32}:
        return None
    (rows, columns), depth = shape_of(dot.result.type)[-2:], shape_of(dot.a.type)[-1]
    is_large = rows >= unit.rows and columns >= unit.columns and depth * bit_width_of(split.element) >= unit.depth_bits
    kind = "tf32" if split.element == f32 else str(split.element)
    return split if is_large and unit.takes(kind, kind, str(f32)) else None


def _rewrite(dot: DotOp, split: Split) -> None:
    b = Builder.before(dot)
    parts = [_parts(dot, operand, split) for operand in (dot.a, dot.b)]
    rest = b.constant(0.0, dot.c.type)
    for i, j in _small_dots(split.num_parts):
        rest = b.value(DotOp(parts[0][i], parts[1][j], rest, split.precision))
    is_number = b.value(CmpFOp(rest, rest, "oeq"))
    rest = b.value(SelectOp(is_number, rest, b.constant(0.0, dot.c.type)))
    large = b.value(DotOp(parts[0][0], parts[1][0], rest, split.precision))
    replace(dot, [b.value(arith.AddfOp(dot.c, large))])


def _small_dots(count: int) -> list[tuple[int, int]]:
    """All pairs of parts that count, but the first ones; the smallest dots come first."""
    return [(i, total - i) for total in range(count - 1, 0, -1) for i in range(total, -1, -1)]


def _parts(dot: DotOp, operand: SSAValue, split: Split) -> list[SSAValue]:
    """Where the operand is made, so that one which a loop does not change is split before it."""
    b = Builder.before(dot)
    if isinstance(operand, OpResult) and operand.op.parent is not dot.parent:
        b = Builder.after(operand.op)
    parts: list[SSAValue] = []
    for _ in range(split.num_parts - 1):
        parts.append(_rounded(b, operand, split))
        operand = b.value(arith.SubfOp(operand, parts[-1]))
    return [_as_element(b, part, split.element) for part in (*parts, operand)]


def _rounded(b: Builder, value: SSAValue, split: Split) -> SSAValue:
    """To nearest in the bits that stay; cut off where that gives infinity, or nothing is to be rounded."""
    type, half = with_element_type(value.type, i32), 1 << (split.cut - 1)
    magnitude = b.value(math.AbsFOp(value))
    is_small = b.value(CmpFOp(magnitude, b.constant(split.least_infinite, value.type), "olt"))
    added = b.value(SelectOp(is_small, b.constant(half, type), b.constant(0, type)))
    bits = b.value(arith.AddiOp(b.value(BitcastOp(value, i32)), added))
    return b.value(BitcastOp(b.value(arith.AndIOp(bits, b.constant(-1 << split.cut, type))), f32))


def _as_element(b: Builder, value: SSAValue, element: Attribute) -> SSAValue:
    if element == f32:
        return value
    return b.value(arith.TruncFOp(value, with_element_type(value.type, element)))

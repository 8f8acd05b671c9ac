"""Matrix products: `tt.dot`, `tt.dot_scaled`.

    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}>
         : (tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>

a is [M, K] or [B, M, K], b is [K, N] or [B, K, N]; the result, a @ b + c, has the type of c.

    %d = "tt.dot_scaled"(%a, %b, %c, %a_scale) <{a_elem_type = 4 : i32, b_elem_type = 0 : i32, fastMath = false,
         lhs_k_pack = true, rhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}>
         : (tensor<64x32xi8>, tensor<64x32xf8E4M3FN>, tensor<64x32xf32>, tensor<64x2xi8>) -> tensor<64x32xf32>

Here a is e2m1, two numbers in a byte along K, with a scale for each 32 of them; b is e4m3, without.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.member import member_of
from deuteron.ir.types import (
    bf16,
    bit_width_of,
    element_type_of,
    f8e4m3,
    f8e5m2,
    f16,
    i1,
    i8,
    i32,
    is_float,
    is_integer,
    shape_of,
)


class InputPrecision(IntEnum):
    """How float32 operands are rounded before they are multiplied.

    TF32_RTZ is not said in programs: what tf32 does not hold may be cut off, as tensor cores do. Of the parts of an
    operand it is nothing, or as near as rounded.
    """

    TF32 = 0
    TF32x3 = 1
    IEEE = 2
    BF16x3 = 3
    BF16x6 = 4
    TF32_RTZ = 5


@irdl_op_definition
class DotOp(IRDLOperation):
    """The matrix dot a @ b + c, accumulated in the type of c."""

    name = "tt.dot"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    result = result_def()
    input_precision = prop_def(member_of(InputPrecision), prop_name="inputPrecision")
    max_num_imprecise_acc = prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    traits = traits_def(Pure())

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        input_precision: InputPrecision = InputPrecision.TF32,
        max_num_imprecise_acc: int = 0,
    ):
        super().__init__(
            operands=[a, b, c],
            result_types=[c.type],
            properties={
                "inputPrecision": IntegerAttr(input_precision, i32),
                "maxNumImpreciseAcc": IntegerAttr(max_num_imprecise_acc, i32),
            },
        )

    def verify_(self) -> None:
        a, b, c = (shape_of(value.type) for value in (self.a, self.b, self.c))
        if not 2 <= len(a) == len(b) == len(c) <= 3:
            raise VerifyException(f"tt.dot needs tiles of rank 2 or 3, got shapes {a}, {b}, {c}")
        if a[-1] != b[-2] or c != (*a[:-1], b[-1]) or a[:-2] != b[:-2]:
            raise VerifyException(f"tt.dot: shapes {a} @ {b} + {c} do not go together")
        left, right, total = (element_type_of(value.type) for value in (self.a, self.b, self.c))
        if left != right and not all(is_float(one) and bit_width_of(one) == 8 for one in (left, right)):
            raise VerifyException(f"tt.dot of {left} and {right}: only floats of 8 bits may differ")
        if is_float(left) != is_float(total) or is_integer(left) != is_integer(total):
            raise VerifyException(f"tt.dot of {left} is not added to {total}")
        if self.result.type != self.c.type:
            raise VerifyException(f"tt.dot: the result is {self.result.type}, the accumulator {self.c.type}")


class ScaledFormat(IntEnum):
    """Formats of operands of `tt.dot_scaled`, with Triton's numbers. E2M1 is two numbers in a byte."""

    E4M3 = 0
    E5M2 = 1
    E2M1 = 4
    BF16 = 5
    FP16 = 6


ELEMENTS = {
    ScaledFormat.E4M3: f8e4m3,
    ScaledFormat.E5M2: f8e5m2,
    ScaledFormat.E2M1: i8,
    ScaledFormat.BF16: bf16,
    ScaledFormat.FP16: f16,
}


GROUPS = (32, 16)  # how many numbers may share a scale


@dataclass(frozen=True)
class ScaledOperand:
    """One operand of `tt.dot_scaled`: `axis` is K's, `packed_axis` that along which a byte has two numbers, or None."""

    value: SSAValue
    scale: SSAValue | None
    format: ScaledFormat
    axis: int
    packed_axis: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of its numbers."""
        shape = list(shape_of(self.value.type))
        if self.packed_axis is not None:
            shape[self.packed_axis] *= 2
        return tuple(shape)

    @property
    def group(self) -> int:
        """How many numbers along K share a scale, whose shape says it."""
        return self.shape[self.axis] // shape_of(self.scale.type)[-1]

    def obstacle(self) -> str | None:
        """What is wrong with the types, in words."""
        if element_type_of(self.value.type) != ELEMENTS[self.format]:
            return f"{self.format.name.lower()} in {self.value.type}"
        if self.scale is None:
            return None
        *batch, _, _ = self.shape
        rows, depth = self.shape[-1 if self.axis == len(self.shape) - 2 else -2], self.shape[self.axis]
        expected = [(*batch, rows, depth // group) for group in GROUPS if depth % group == 0]
        if element_type_of(self.scale.type) not in (i8, f8e4m3) or shape_of(self.scale.type) not in expected:
            return f"scales of type {self.scale.type} for {rows} x {depth} numbers"
        if element_type_of(self.scale.type) == f8e4m3 and self.format in (ScaledFormat.BF16, ScaledFormat.FP16):
            # Such a product has more bits than bf16 or tf32, in which it would be multiplied.
            return f"{self.format.name.lower()} with scales of fp8: these go with e2m1, e4m3 and e5m2"
        return None


@irdl_op_definition
class DotScaledOp(IRDLOperation):
    """a @ b + c, where numbers along K share scales: those of a are [..., M, groups], those of b [..., N, groups].

    A scale in a byte x is 2 ** (x - 127), and 255 is NaN, if `fast_math` does not say that it does not occur.
    """

    name = "tt.dot_scaled"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    a_scale = opt_operand_def()
    b_scale = opt_operand_def()
    result = result_def()
    a_elem_type = prop_def(member_of(ScaledFormat))
    b_elem_type = prop_def(member_of(ScaledFormat))
    fast_math = prop_def(IntegerAttr, prop_name="fastMath")
    lhs_k_pack = prop_def(IntegerAttr)
    rhs_k_pack = prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        scales: tuple[SSAValue | None, SSAValue | None],
        formats: tuple[ScaledFormat, ScaledFormat],
        fast_math: bool = False,
        k_pack: tuple[bool, bool] = (True, True),
    ):
        super().__init__(
            operands=[a, b, c, *([scale] if scale else [] for scale in scales)],
            result_types=[c.type],
            properties={
                "a_elem_type": IntegerAttr(formats[0], i32),
                "b_elem_type": IntegerAttr(formats[1], i32),
                "fastMath": IntegerAttr(int(fast_math), i1),
                "lhs_k_pack": IntegerAttr(int(k_pack[0]), i1),
                "rhs_k_pack": IntegerAttr(int(k_pack[1]), i1),
            },
        )

    @property
    def lhs(self) -> ScaledOperand:
        return self._operand(self.a, self.a_scale, self.a_elem_type, -1, self.lhs_k_pack)

    @property
    def rhs(self) -> ScaledOperand:
        return self._operand(self.b, self.b_scale, self.b_elem_type, -2, self.rhs_k_pack)

    def _operand(
        self, value: SSAValue, scale: SSAValue | None, format: IntegerAttr, k: int, k_pack: IntegerAttr
    ) -> ScaledOperand:
        found, rank = ScaledFormat(format.value.data), len(shape_of(value.type))
        other = -1 if k == -2 else -2
        packed = rank + (k if k_pack.value.data else other) if found is ScaledFormat.E2M1 else None
        return ScaledOperand(value, scale, found, rank + k, packed)

    def verify_(self) -> None:
        for operand in (self.lhs, self.rhs):
            if (obstacle := operand.obstacle()) is not None:
                raise VerifyException(f"tt.dot_scaled: {obstacle}")
        a, b, c = self.lhs.shape, self.rhs.shape, shape_of(self.c.type)
        if not 2 <= len(a) == len(b) <= 3 or a[-1] != b[-2] or c != (*a[:-1], b[-1]) or a[:-2] != b[:-2]:
            raise VerifyException(f"tt.dot_scaled: shapes {a} @ {b} + {c} do not go together")
        if self.result.type != self.c.type:
            raise VerifyException(f"tt.dot_scaled: the result is {self.result.type}, the accumulator {self.c.type}")


OPS = [DotOp, DotScaledOp]

"""Conversions that `arith` does not have: bitcast, fp_to_fp (with rounding, fp8), pointers to and from integers;
and the elementwise ops of Triton's own: clampf, precise_sqrt, precise_divf, mulhiui.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.member import member_of
from deuteron.ir.types import bit_width_of, i32, i64, is_float, is_pointer, shape_of, with_element_type


class RoundingMode(IntEnum):
    """How a narrowing conversion of floats rounds: towards zero, or to nearest even."""

    RTZ = 0
    RTNE = 1


class PropagateNan(IntEnum):
    """Whether clamping keeps a NaN: NONE gives the bound, ALL gives NaN."""

    NONE = 0
    ALL = 65535


class _CastOp(IRDLOperation):
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, element_type: Attribute):
        super().__init__(operands=[src], result_types=[with_element_type(src.type, element_type)])

    def verify_(self) -> None:
        if shape_of(self.src.type) != shape_of(self.result.type):
            raise VerifyException(f"{self.name} keeps the shape, got {self.src.type} and {self.result.type}")


@irdl_op_definition
class BitcastOp(_CastOp):
    """The same bits as another type of the same width."""

    name = "tt.bitcast"

    def verify_(self) -> None:
        super().verify_()
        if bit_width_of(self.src.type) != bit_width_of(self.result.type):
            raise VerifyException(f"tt.bitcast from {self.src.type} to {self.result.type}: widths differ")


@irdl_op_definition
class PtrToIntOp(_CastOp):
    """The address as i64."""

    name = "tt.ptr_to_int"

    def __init__(self, src: SSAValue):
        super().__init__(src, i64)


# On a pointer that is there for a path on which a variable has none: nobody reads it, or what is computed of it.
UNREAD = "tt.unread"


@irdl_op_definition
class IntToPtrOp(_CastOp):
    """An i64 as an address."""

    name = "tt.int_to_ptr"

    def verify_(self) -> None:
        super().verify_()
        if not is_pointer(self.result.type):
            raise VerifyException(f"tt.int_to_ptr gives {self.result.type}")


@irdl_op_definition
class FpToFpOp(IRDLOperation):
    """Converts between float types, fp8 included; narrowing needs a rounding mode."""

    name = "tt.fp_to_fp"
    src = operand_def()
    rounding = opt_prop_def(member_of(RoundingMode))
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, element_type: Attribute, rounding: RoundingMode | None = None):
        super().__init__(
            operands=[src],
            result_types=[with_element_type(src.type, element_type)],
            properties={"rounding": None if rounding is None else IntegerAttr(rounding, i32)},
        )

    def verify_(self) -> None:
        is_of_floats = is_float(self.src.type) and is_float(self.result.type)
        if not is_of_floats or shape_of(self.src.type) != shape_of(self.result.type):
            raise VerifyException(f"tt.fp_to_fp from {self.src.type} to {self.result.type}")


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """`min(max(x, min), max)`."""

    name = "tt.clampf"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(_T)
    min = operand_def(_T)
    max = operand_def(_T)
    propagate_nan = prop_def(member_of(PropagateNan), prop_name="propagateNan")
    result = result_def(_T)
    traits = traits_def(Pure())

    def __init__(self, x: SSAValue, min: SSAValue, max: SSAValue, propagate_nan: PropagateNan = PropagateNan.NONE):
        super().__init__(
            operands=[x, min, max],
            result_types=[x.type],
            properties={"propagateNan": IntegerAttr(propagate_nan, i32)},
        )


@irdl_op_definition
class PreciseSqrtOp(IRDLOperation):
    """The square root, correctly rounded."""

    name = "tt.precise_sqrt"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())

    def __init__(self, x: SSAValue):
        super().__init__(operands=[x], result_types=[x.type])


class _BinaryOp(IRDLOperation):
    _T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(_T)
    y = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())

    def __init__(self, x: SSAValue, y: SSAValue):
        super().__init__(operands=[x, y], result_types=[x.type])


@irdl_op_definition
class PreciseDivFOp(_BinaryOp):
    """The quotient, correctly rounded."""

    name = "tt.precise_divf"


@irdl_op_definition
class MulHiUIOp(_BinaryOp):
    """The high half of the product of unsigned integers."""

    name = "tt.mulhiui"


OPS = [BitcastOp, PtrToIntOp, IntToPtrOp, FpToFpOp, ClampFOp, PreciseSqrtOp, PreciseDivFOp, MulHiUIOp]

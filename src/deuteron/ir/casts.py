"""Integer casts of `arith` that accept tiles, and `arith.remf`, which xDSL 0.74 does not have.

    %w = "arith.extsi"(%i) : (tensor<64xi32>) -> tensor<64xi64>
    %x = "arith.sitofp"(%w) : (tensor<64xi64>) -> tensor<64xf32>
    %m = "arith.remf"(%x, %y) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, ...) -> tensor<64xf32>

xDSL's own integer casts take scalars only. Its `arith.extf` and `arith.truncf` accept tiles as they are.
"""

from __future__ import annotations

from xdsl.dialects.arith import FloatingPointLikeBinaryOperation
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import bit_width_of, is_float, is_integer, shape_of


class _CastOp(IRDLOperation):
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, input: SSAValue, target_type: Attribute):
        super().__init__(operands=[input], result_types=[target_type])

    def fits(self, source: Attribute, result: Attribute) -> bool:
        """Whether the op casts between these element types."""
        raise NotImplementedError

    def verify_(self) -> None:
        source, result = self.input.type, self.result.type
        if not self.fits(source, result) or shape_of(source) != shape_of(result):
            raise VerifyException(f"{self.name} from {source} to {result}")


class _WidenOp(_CastOp):
    def fits(self, source: Attribute, result: Attribute) -> bool:
        return is_integer(source) and is_integer(result) and bit_width_of(source) < bit_width_of(result)


class _IntToFloatOp(_CastOp):
    def fits(self, source: Attribute, result: Attribute) -> bool:
        return is_integer(source) and is_float(result)


class _FloatToIntOp(_CastOp):
    def fits(self, source: Attribute, result: Attribute) -> bool:
        return is_float(source) and is_integer(result)


@irdl_op_definition
class ExtSIOp(_WidenOp):
    """Widens signed integers."""

    name = "arith.extsi"


@irdl_op_definition
class ExtUIOp(_WidenOp):
    """Widens unsigned integers, i1 included."""

    name = "arith.extui"


@irdl_op_definition
class TruncIOp(_CastOp):
    """Keeps the low bits of integers."""

    name = "arith.trunci"

    def fits(self, source: Attribute, result: Attribute) -> bool:
        return is_integer(source) and is_integer(result) and bit_width_of(source) > bit_width_of(result)


@irdl_op_definition
class SIToFPOp(_IntToFloatOp):
    """Signed integers to floats, to nearest even."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_IntToFloatOp):
    """Unsigned integers, i1 included, to floats, to nearest even."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_FloatToIntOp):
    """Floats to signed integers, towards zero."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_FloatToIntOp):
    """Floats to unsigned integers, towards zero."""

    name = "arith.fptoui"


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """The remainder of a division of floats, with the sign of the dividend (C's fmod)."""

    name = "arith.remf"
    traits = traits_def(Pure())


OPS = [ExtSIOp, ExtUIOp, TruncIOp, SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, RemFOp]

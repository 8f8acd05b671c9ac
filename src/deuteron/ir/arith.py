"""The `arith` and `math` dialects as tile IR uses them: xDSL's ops, but with comparisons and selects that accept
tiles (casts that do are in casts.py).

    %m = "arith.cmpi"(%i, %n) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %y = "arith.select"(%m, %a, %b) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>

The condition of a select is one i1 for the whole tile, or a tile of i1 of the same shape.
"""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects import arith as xdsl_arith
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.dialects.math import Math as Math
from xdsl.ir import Attribute, Dialect, OpResult, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir import casts
from deuteron.ir.member import member_of
from deuteron.ir.types import (
    element_type_of,
    i1,
    is_float,
    is_integer,
    is_tile,
    num_elements_of,
    shape_of,
    with_element_type,
)

# Of a signed division by a number that is not known: what is divided is not negative in any launch of the kernel.
OF_NATURAL = "tt.of_natural"
# Of the index of a later iteration of a loop, its own index and a lead: if that iteration comes, it is below the end
# of the loop, and if it does not, nothing is read at what is computed of it.
AHEAD = "tt.ahead"


@irdl_op_definition
class CmpIOp(IRDLOperation):
    """Compares integers elementwise; `predicate` is an index into CMPI_COMPARISON_OPERATIONS."""

    name = "arith.cmpi"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def()
    predicate = prop_def(member_of(range(len(CMPI_COMPARISON_OPERATIONS))))
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: str):
        super().__init__(
            operands=[lhs, rhs],
            result_types=[with_element_type(lhs.type, i1)],
            properties={"predicate": IntegerAttr(CMPI_COMPARISON_OPERATIONS.index(predicate), i64)},
        )

    @property
    def predicate_name(self) -> str:
        return CMPI_COMPARISON_OPERATIONS[self.predicate.value.data]

    def verify_(self) -> None:
        _check_comparison(self, is_integer(self.lhs.type), "integers")


@irdl_op_definition
class CmpFOp(IRDLOperation):
    """Compares floats elementwise; `predicate` is an index into CMPF_COMPARISON_OPERATIONS."""

    name = "arith.cmpf"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def()
    predicate = prop_def(member_of(range(len(CMPF_COMPARISON_OPERATIONS))))
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: str):
        super().__init__(
            operands=[lhs, rhs],
            result_types=[with_element_type(lhs.type, i1)],
            properties={
                "predicate": IntegerAttr(CMPF_COMPARISON_OPERATIONS.index(predicate), i64),
                "fastmath": FastMathFlagsAttr("none"),
            },
        )

    @property
    def predicate_name(self) -> str:
        return CMPF_COMPARISON_OPERATIONS[self.predicate.value.data]

    def verify_(self) -> None:
        _check_comparison(self, is_float(self.lhs.type), "floats")


def _check_comparison(op: CmpIOp | CmpFOp, right_kind: bool, kind: str) -> None:
    if not right_kind:
        raise VerifyException(f"{op.name} compares {kind}, got {op.lhs.type}")
    if op.result.type != with_element_type(op.lhs.type, i1):
        raise VerifyException(f"{op.name} of {op.lhs.type} gives a tile of i1 of that shape, got {op.result.type}")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`condition ? true_value : false_value`, elementwise."""

    name = "arith.select"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    condition = operand_def()
    true_value = operand_def(_T)
    false_value = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())

    def __init__(self, condition: SSAValue, true_value: SSAValue, false_value: SSAValue):
        super().__init__(operands=[condition, true_value, false_value], result_types=[true_value.type])

    def verify_(self) -> None:
        condition = self.condition.type
        if element_type_of(condition) != i1:
            raise VerifyException(f"arith.select needs a condition of i1, got {condition}")
        if isinstance(condition, TensorType) and shape_of(condition) != shape_of(self.result.type):
            raise VerifyException(f"arith.select of {self.result.type} has a condition of another shape: {condition}")


_OWN_OPS = [CmpIOp, CmpFOp, SelectOp, *casts.OPS]
_REPLACED = {op.name for op in _OWN_OPS}

Arith = Dialect(
    "arith",
    [*(op for op in xdsl_arith.Arith.operations if op.name not in _REPLACED), *_OWN_OPS],
    list(xdsl_arith.Arith.attributes),
)


def has_constants(type: Attribute) -> bool:
    """Whether a number of the type can be an attribute: of a float that MLIR does not have it cannot."""
    return isinstance(element_type_of(type), IntegerType | AnyFloat)


def constant(value: bool | int | float, type: Attribute) -> xdsl_arith.ConstantOp:
    """A constant of a scalar type, or a tile with that value everywhere (`dense<value>`)."""
    attr: Attribute
    if is_tile(type):
        attr = DenseIntOrFPElementsAttr(type, BytesAttr(_bytes_of(value, type.element_type) * num_elements_of(type)))
    elif isinstance(type, IntegerType):
        attr = IntegerAttr(int(value), type, truncate_bits=True)
    else:
        attr = FloatAttr(float(value), type)
    # `create`, for by its constructor it takes three times as long
    return xdsl_arith.ConstantOp.create(result_types=[type], properties={"value": attr})


def _bytes_of(value: bool | int | float, element_type: IntegerType | AnyFloat) -> bytes:
    is_int = element_type.__class__ is IntegerType
    number = element_type.normalized_value(int(value), truncate_bits=True) if is_int else float(value)
    return element_type.pack([number])


def is_positive_zero(value: SSAValue) -> bool:
    """Whether a value is known to be 0 everywhere, and not -0."""
    number = constant_value(value)
    return number is not None and number == 0 and math.copysign(1, number) > 0


def constant_value(value: SSAValue) -> int | float | None:
    """The number that a value is known to be everywhere (a scalar constant or a `dense` splat), or None.

    Integers come back signed; an i1 comes back as 0 or 1.
    """
    owner = value.owner
    if owner.__class__ is not xdsl_arith.ConstantOp:
        is_splat = isinstance(value, OpResult) and owner.name == "tt.splat"
        return constant_value(owner.operands[0]) if is_splat else None
    attr = owner.value
    if isinstance(attr, DenseIntOrFPElementsAttr):
        # on the bytes: xDSL's is_splat makes a number of every element, 0.1 s for the largest tile
        first = attr.data.data[: attr.type.element_type.compile_time_size]
        if attr.data.data != first * len(attr):
            return None
        number = attr.get_element_type().unpack(first, 1)[0]
    else:
        number = attr.value.data
    return 1 if number == -1 and element_type_of(value.type) == i1 else number

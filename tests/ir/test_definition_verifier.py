"""What the definitions of ops say is verified as xDSL does, with its words."""

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, i1, i32, i64
from xdsl.ir import Block, Region
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from deuteron.ir.definition_verifier import prepare


def fixed():
    @irdl_op_definition
    class FixedOp(IRDLOperation):
        name = "test.fixed"
        first = operand_def(i32)
        second = operand_def()
        result = result_def(i1)
        asked = prop_def(IntegerAttr)
        perhaps = opt_prop_def(StringAttr)
        noted = attr_def(StringAttr)

    return FixedOp


def variadic():
    @irdl_op_definition
    class VariadicOp(IRDLOperation):
        name = "test.variadic"
        some = var_operand_def(i32)
        last = opt_operand_def(i64)
        body = region_def("single_block")
        irdl_options = (AttrSizedOperandSegments(as_property=True),)

    return VariadicOp


def made(op_class, operands=(), results=(), properties=None, attributes=None, regions=()):
    return op_class.create(
        operands=[create_ssa_value(type) for type in operands],
        result_types=results,
        properties=properties or {},
        attributes=attributes or {},
        regions=regions,
    )


ASKED, NOTED = {"asked": IntegerAttr(1, i32)}, {"noted": StringAttr("a")}


def segments(*sizes):
    return {"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}


CASES = {
    "right": (fixed, lambda op: made(op, [i32, i1], [i1], ASKED, NOTED)),
    "all properties": (fixed, lambda op: made(op, [i32, i1], [i1], ASKED | {"perhaps": StringAttr("b")}, NOTED)),
    "an operand's type": (fixed, lambda op: made(op, [i64, i1], [i1], ASKED, NOTED)),
    "a result's type": (fixed, lambda op: made(op, [i32, i1], [i32], ASKED, NOTED)),
    "one operand": (fixed, lambda op: made(op, [i32], [i1], ASKED, NOTED)),
    "two results": (fixed, lambda op: made(op, [i32, i1], [i1, i1], ASKED, NOTED)),
    "no property": (fixed, lambda op: made(op, [i32, i1], [i1], {}, NOTED)),
    "another property": (fixed, lambda op: made(op, [i32, i1], [i1], ASKED | {"other": i1}, NOTED)),
    "a property's kind": (fixed, lambda op: made(op, [i32, i1], [i1], {"asked": StringAttr("c")}, NOTED)),
    "no attribute": (fixed, lambda op: made(op, [i32, i1], [i1], ASKED)),
    "an attribute's kind": (fixed, lambda op: made(op, [i32, i1], [i1], ASKED, {"noted": i1})),
    "a region": (fixed, lambda op: made(op, [i32, i1], [i1], ASKED, NOTED, [Region(Block())])),
    "segments": (variadic, lambda op: made(op, [i32, i32, i64], (), segments(2, 1), {}, [Region(Block())])),
    "a segment's type": (variadic, lambda op: made(op, [i32, i64, i64], (), segments(2, 1), {}, [Region(Block())])),
    "segments of others": (variadic, lambda op: made(op, [i32], (), segments(2, 1), {}, [Region(Block())])),
    "two blocks": (variadic, lambda op: made(op, [], (), segments(0, 0), {}, [Region([Block(), Block()])])),
    "no region": (variadic, lambda op: made(op, [], (), segments(0, 0))),
    "an xDSL op": (lambda: arith.AddiOp, lambda op: made(op, [i32, i64], [i32], {"overflowFlags": NO_FLAGS})),
}
NO_FLAGS = arith.IntegerOverflowAttr("none")


def told(op) -> str | None:
    try:
        op.verify_()
    except VerifyException as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", CASES)
def test_ops_are_verified_as_xdsl_does(name: str):
    make_class, make_op = CASES[name]
    op_class = make_class()
    definition = op_class.get_irdl_definition()
    vars(definition).pop("verify", None)
    expected = told(make_op(op_class))
    assert (expected is None) == (name in ("right", "all properties", "segments"))
    prepare.cache_clear()
    prepare(op_class)
    assert "verify" in vars(definition)
    assert told(make_op(op_class)) == expected

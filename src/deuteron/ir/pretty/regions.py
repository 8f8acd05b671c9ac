"""What more than a form says: functions, constants, selects, and the loops that xDSL reads in another way.

tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} { ... }
scf.while (%a = %b) : (i32) -> i32 { ... } do { ... }
%c = arith.constant dense<0.0> : tensor<64xf32>
%s = arith.select %m, %a, %b : tensor<64xi1>, tensor<64xf32>
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
)
from xdsl.dialects.scf import WhileOp
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser, UnresolvedOperand

from deuteron.ir.arith import SelectOp, constant, has_constants
from deuteron.ir.pretty.elements import NameOf, TextOf, dictionary_text
from deuteron.ir.tt.convert import BitcastOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import i1


def parse_function(parser: Parser, op_type: type[FuncOp]) -> FuncOp:
    """`public @f(%x: i32 {tt.divisibility = 16 : i32} loc(...), ...) -> type attributes {noinline = false} { ... }`"""
    visibility = parser.parse_optional_visibility_keyword()
    name = parser.parse_symbol_name()
    described = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_argument(parser))
    results = _parse_results(parser) if parser.parse_optional_punctuation("->") else []
    attributes = parser.parse_optional_attr_dict_with_keyword()
    arguments = [argument for argument, _ in described]
    body = parser.parse_region(arguments)
    for value, argument in zip(body.blocks[0].args, arguments, strict=True):
        value.location = argument.location or value.location
    properties: dict[str, Attribute] = {
        "sym_name": name,
        "function_type": FunctionType.from_lists([argument.type for argument in arguments], [t for t, _ in results]),
    }
    if visibility is not None:
        properties["sym_visibility"] = visibility
    for key, dictionaries in (("arg_attrs", [d for _, d in described]), ("res_attrs", [d for _, d in results])):
        if any(dictionaries):
            properties[key] = ArrayAttr(map(DictionaryAttr, dictionaries))
    return op_type.create(properties=properties, attributes=dict(attributes.data) if attributes else {}, regions=[body])


def _parse_argument(parser: Parser) -> tuple[Parser.Argument, dict[str, Attribute]]:
    argument = parser.parse_argument()
    attributes = parser.parse_optional_attr_dict()
    argument.location = parser.parse_optional_location()
    return argument, attributes


def _parse_results(parser: Parser) -> list[tuple[Attribute, dict[str, Attribute]]]:
    def one() -> tuple[Attribute, dict[str, Attribute]]:
        return parser.parse_type(), parser.parse_optional_attr_dict()

    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, one)
    return [(parser.parse_type(), {})] if several is None else several


def parse_while(parser: Parser, op_type: type[WhileOp]) -> WhileOp:
    """As xDSL's, whose list of what is carried cannot be left out."""

    def assignment() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    carried = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, assignment) or []
    parser.parse_punctuation(":")
    place = parser.pos
    signature = parser.parse_function_type()
    types = signature.inputs.data
    operands = parser.resolve_operands([operand for _, operand in carried], types, place)
    before = parser.parse_region([argument.resolve(type) for (argument, _), type in zip(carried, types, strict=True)])
    parser.parse_keyword("do")
    after = parser.parse_region()
    attributes = parser.parse_optional_attr_dict_with_keyword()
    return op_type.create(
        operands=operands,
        result_types=signature.outputs.data,
        regions=[before, after],
        attributes=dict(attributes.data) if attributes else {},
    )


def parse_constant(parser: Parser, op_type: type[ConstantOp]) -> ConstantOp:
    attributes = parser.parse_optional_attr_dict()
    place, value = parser.pos, parser.parse_attribute()
    if not isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
        parser.raise_error(f"a constant is a number or a tile of numbers, got {value}", place)
    return op_type.create(result_types=[value.type], properties={"value": value}, attributes=attributes)


def write_constant(op: ConstantOp, name_of: NameOf, text_of: TextOf) -> str:
    attributes = f" {dictionary_text(op.attributes, text_of)}" if op.attributes else ""
    return f"arith.constant{attributes} {text_of(op.value)}"


def parse_select(parser: Parser, op_type: type[SelectOp]) -> SelectOp:
    """The type of the condition is written where it is no i1."""
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    place = parser.pos
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    condition = types[0] if len(types) == 2 else i1
    values = parser.resolve_operands(operands, [condition, types[-1], types[-1]], place)
    return op_type.create(operands=values, result_types=[types[-1]], attributes=attributes)


def write_select(op: SelectOp, name_of: NameOf, text_of: TextOf) -> str:
    attributes = f" {dictionary_text(op.attributes, text_of)}" if op.attributes else ""
    condition = f"{text_of(op.condition.type)}, " if op.condition.type != i1 else ""
    return f"arith.select {', '.join(map(name_of, op.operands))}{attributes} : {condition}{text_of(op.result.type)}"


def parse_bitcast(parser: Parser, op_type: type[BitcastOp]) -> BitcastOp:
    """`arith.bitcast`, which is `tt.bitcast` here."""
    operand = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    value = parser.resolve_operand(operand, parser.parse_type())
    parser.parse_keyword("to")
    return op_type.create(operands=[value], result_types=[parser.parse_type()], attributes=attributes)


def parse_barrier(parser: Parser, op_type: type[BarrierOp]) -> BarrierOp:
    """`gpu.barrier` of Triton 3.4 says no more."""
    return op_type()


def parse_poison(parser: Parser, op_type: type[ConstantOp]) -> ConstantOp:
    """Any value will do: zeros."""
    parser.parse_punctuation(":")
    place, type = parser.pos, parser.parse_type()
    if not has_constants(type):
        parser.raise_error(f"no value stands for one of {type} that is not defined", place)
    return constant(0, type)


WRITERS: dict[type[Operation], Callable[..., str]] = {ConstantOp: write_constant, SelectOp: write_select}
PARSERS: dict[str, Callable[[Parser, type], Operation]] = {
    "tt.func": parse_function,
    "scf.while": parse_while,
    "arith.constant": parse_constant,
    "arith.select": parse_select,
    "arith.bitcast": parse_bitcast,
    "gpu.barrier": parse_barrier,
    "ub.poison": parse_poison,
}

"""How an op is written without quotes and signature, in a part of MLIR's notation of assembly formats.

    Form("$ptr (`,` $mask)? attr-dict `:` type($ptr)", infer={"mask": ("ptr", mask_of), "result": ("ptr", loaded)})
    %v = tt.load %p, %m {isVolatile = true} : tensor<64x!tt.ptr<f32>>

`$name` is an operand or a property, `operands` are all operands. A property that has keywords is one of them. A group
`( ... )?` is there if its first operand or property is; `flag(name)` is the name of a property without value, if it is
there. `short-type($x)` is a type without the name of its class; one that is not written is inferred from another one.
`fastmath` and `overflow` are sets of flags, if there are any. `promises` of values (`nneg`, `exact`) are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OptionalDef, VariadicDef
from xdsl.parser import Parser

from deuteron.ir.pretty.elements import (
    FLAGS,
    Attributes,
    Flag,
    Flags,
    Group,
    Keywords,
    Literal,
    NameOf,
    Operands,
    Promises,
    Property,
    Reader,
    Signature,
    TextOf,
    Types,
    Values,
    Writer,
)

Inference = Mapping[str, tuple[str, Callable[[Attribute], Attribute]]]
Translation = Callable[[dict[str, Attribute]], dict[str, Attribute]]
SEGMENTS = "operandSegmentSizes"
_TOKEN = re.compile(r"`(?P<literal>[^`]+)`|\$(?P<value>\w+)|(?P<word>[\w-]+)(?:\(\$?(?P<argument>\w+)\))?|[()]\??")


class _Known(NamedTuple):
    """The form of one op class: its elements, and what its properties are where nothing is said."""

    elements: list
    defaults: dict[str, Attribute]


class Form:
    """The form of an op, or of several that are written alike.

    `after_reading` and `before_writing` translate attributes that a text has otherwise than the op. An op that does not
    fit, whose types are not those that are inferred, has no form.
    """

    def __init__(
        self,
        text: str,
        infer: Inference | None = None,
        keywords: Mapping[str, Keywords] | None = None,
        defaults: Mapping[str, Attribute] | None = None,
        short: Mapping[str, type[ParametrizedAttribute]] | None = None,
        after_reading: Translation | None = None,
        before_writing: Translation | None = None,
        fits: Callable[[Operation], bool] = lambda op: True,
    ):
        self.text = text
        self.infer = infer or {}
        self.keywords = keywords or {}
        self.defaults = defaults or {}
        self.short = short or {}
        self.after_reading = after_reading
        self.before_writing = before_writing
        self.fits = fits
        self._known: dict[type[IRDLOperation], _Known] = {}

    def parse(self, parser: Parser, op_type: type[IRDLOperation]) -> Operation:
        """Read what comes after the op's name."""
        reader, place = Reader(parser, op_type), parser.pos
        elements, defaults = self._for(op_type)
        for element in elements:
            element.read(reader)
        definition = op_type.get_irdl_definition()
        names = [name for name, _ in definition.operands]
        given = [reader.operands.get(name, []) for name in names]
        types = [self._types(reader, name, len(found)) for name, found in zip(names, given, strict=True)]
        operands = [parser.resolve_operands(*pair, place) for pair in zip(given, types, strict=True)]
        attributes = defaults | reader.attributes
        attributes = self.after_reading(attributes) if self.after_reading else attributes
        properties = {name: attributes.pop(name) for name in definition.properties if name in attributes}
        if any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
            properties[SEGMENTS] = DenseArrayBase.from_list(i32, [len(found) for found in given])
        return op_type.create(
            operands=[operand for found in operands for operand in found],
            result_types=[type for name, _ in definition.results for type in self._types(reader, name, 1)],
            properties=properties,
            attributes=attributes,
        )

    def _types(self, reader: Reader, name: str, count: int) -> list[Attribute]:
        """The types of what a name stands for, as they are written, or inferred."""
        if name in reader.types or name not in self.infer:
            return reader.types.get(name, [])
        source, rule = self.infer[name]
        return [rule(reader.types[source][0])] * count

    def write(self, op: Operation, name_of: NameOf, text_of: TextOf) -> str:
        """What comes after the op's name."""
        elements, defaults = self._for(type(op))
        properties = self.before_writing(op.properties) if self.before_writing else op.properties
        writer = Writer(op, properties, defaults, name_of, text_of)
        for element in elements:
            element.write(writer)
        return writer.text

    def _for(self, op_type: type[IRDLOperation]) -> _Known:
        """What is known of an op class; found out when it is first asked for."""
        known = self._known.get(op_type)
        if known is None:
            properties = op_type.get_irdl_definition().properties
            usual = {name: found.default_value for name, found in properties.items() if found.default_value is not None}
            stated = {name: value for name, value in self.defaults.items() if name in properties}
            known = self._known[op_type] = _Known(self._elements(op_type), usual | stated)
        return known

    def _elements(self, op_type: type[IRDLOperation]) -> list:
        written = {SEGMENTS}
        levels: list[list] = [[]]
        for token in _TOKEN.finditer(self.text):
            if token[0] == "(":
                levels.append([])
            elif token[0] == ")?":
                elements = levels.pop()
                anchor = next(element for element in elements if isinstance(element, Operands | Property | Types))
                levels[-1].append(Group(tuple(elements), anchor))
            elif (element := self._element(token, op_type, written)) is not None:
                levels[-1].append(element)
        return levels[0]

    def _element(self, token: re.Match[str], op_type: type[IRDLOperation], written: set[str]) -> object | None:
        """The element that a token stands for; None for flags that the op has not."""
        definition, name = op_type.get_irdl_definition(), token["value"]
        if token["literal"] is not None:
            return Literal(token["literal"])
        if name in definition.properties:
            written.add(name)
            return Property(name, self.keywords.get(name))
        if name is not None:
            return Operands((name,), _is_list(dict(definition.operands)[name]), _values(op_type, name))
        return self._directive(token["word"], token["argument"], op_type, written)

    def _directive(
        self, word: str, argument: str | None, op_type: type[IRDLOperation], written: set[str]
    ) -> object | None:
        definition = op_type.get_irdl_definition()
        if word in ("type", "short-type"):
            found = dict([*definition.operands, *definition.results])[argument]
            return Types(argument, _is_list(found), _values(op_type, argument), self.short.get(argument))
        if word == "operands":
            return Operands(tuple(name for name, _ in definition.operands), False, attrgetter("operands"))
        if word == "flag":
            written.add(argument)
            return Flag(argument)
        if word in FLAGS:
            name, kind = FLAGS[word]
            written.add(name)
            return Flags(word, name, kind) if name in definition.properties else None
        if word == "attr-dict":
            return Attributes(written)
        return {"signature": Signature, "promises": Promises}[word]()


def _is_list(definition: object) -> bool:
    return isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef)


def _values(op_type: type[IRDLOperation], name: str) -> Values:
    """What gives the operands or results of a name: by their places, which is quicker, where these are fixed."""
    definition = op_type.get_irdl_definition()
    for found, values in ((definition.operands, attrgetter("operands")), (definition.results, attrgetter("results"))):
        names = [known for known, _ in found]
        if name in names and not any(isinstance(known, VariadicDef) for _, known in found):
            place = names.index(name)
            return lambda op: (values(op)[place],)
        if names == [name]:
            return values
    return lambda op: _as_sequence(getattr(op, name))


def _as_sequence(found: object) -> tuple:
    return () if found is None else (found,) if isinstance(found, SSAValue) else tuple(found)

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OptionalDef, VariadicDef
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.mlir_lexer import MLIRTokenKind

Inference = Mapping[str, tuple[str, Callable[[Attribute], Attribute]]]
SEGMENTS = "operandSegmentSizes"
_TOKEN = re.compile(r"`(?P<literal>[^`]+)`|\$(?P<value>\w+)|(?P<word>[\w-]+)(?:\(\$?(?P<argument>\w+)\))?|[()]\??")
_FLAGS = {"fastmath": FastMathFlagsAttr, "overflow": IntegerOverflowAttr}
_FLAG_PROPERTIES = {"fastmath": "fastmath", "overflow": "overflowFlags"}
_PROMISES = ("nneg", "exact")


@dataclass(frozen=True)
class Keywords:
    """The words that stand for the values of an enumeration."""

    words: Mapping[str, int]
    type: Attribute = i32

    def parse(self, parser: Parser) -> Attribute:
        place, word = parser.pos, parser.parse_optional_identifier()
        if word not in self.words:
            parser.raise_error(f"expected one of {', '.join(self.words)}", place)
        return IntegerAttr(self.words[word], self.type)

    def word(self, attribute: IntegerAttr) -> str:
        return next(word for word, value in self.words.items() if value == attribute.value.data)


@dataclass
class _Reader:
    """What has been read of an op. The types of operands and results by their names."""

    parser: Parser
    op_type: type[IRDLOperation]
    operands: dict[str, list[UnresolvedOperand]] = field(default_factory=dict)
    types: dict[str, list[Attribute]] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)


@dataclass
class Writer:
    """Writes an op: `name_of` gives the text of a value, `text_of` that of an attribute or a type."""

    op: Operation
    name_of: Callable[[SSAValue], str]
    text_of: Callable[[Attribute], str]
    defaults: Mapping[str, Attribute]
    text: str = ""
    written: set[str] = field(default_factory=lambda: {SEGMENTS})

    def add(self, text: str) -> None:
        self.text += text if self.text.endswith(("[", "(")) else f" {text}"

    def add_literal(self, text: str) -> None:
        is_tight = text in (",", "]", ")") or (text == "[" and not self.text.endswith(","))
        self.text += text if is_tight else f" {text}"

    def has(self, name: str) -> bool:
        """Whether there is such a property, which is not as usual."""
        found = self.op.properties.get(name)
        return found is not None and found != self.defaults.get(name)


@dataclass(frozen=True)
class _Literal:
    text: str

    def read(self, reader: _Reader) -> None:
        reader.parser.parse_characters(self.text)

    def write(self, writer: Writer) -> None:
        writer.add_literal(self.text)

    def is_next(self, parser: Parser) -> bool:
        return parser._current_token.text == self.text


@dataclass(frozen=True)
class _Operands:
    """One operand, all that one name stands for, or one for each name."""

    names: tuple[str, ...]
    is_list: bool

    def read(self, reader: _Reader) -> None:
        parser = reader.parser
        found = [] if self.is_list and not self.is_next(parser) else [parser.parse_unresolved_operand()]
        while found and (self.is_list or len(self.names) > 1) and parser.parse_optional_punctuation(","):
            found.append(parser.parse_unresolved_operand())
        if self.is_list:
            reader.operands[self.names[0]] = found
        elif len(found) != len(self.names):
            parser.raise_error(f"expected {len(self.names)} operands, got {len(found)}")
        else:
            reader.operands |= {name: [operand] for name, operand in zip(self.names, found, strict=True)}

    def write(self, writer: Writer) -> None:
        operands = [operand for name in self.names for operand in _values(writer.op, name)]
        if operands:
            writer.add(", ".join(map(writer.name_of, operands)))

    def is_next(self, parser: Parser) -> bool:
        return parser._current_token.kind == MLIRTokenKind.PERCENT_IDENT

    def is_there(self, writer: Writer) -> bool:
        return bool(_values(writer.op, self.names[0]))


@dataclass(frozen=True)
class _Property:
    name: str
    keywords: Keywords | None

    def read(self, reader: _Reader) -> None:
        parser = reader.parser
        reader.attributes[self.name] = self.keywords.parse(parser) if self.keywords else parser.parse_attribute()

    def write(self, writer: Writer) -> None:
        attribute = writer.op.properties[self.name]
        writer.written.add(self.name)
        writer.add(self.keywords.word(attribute) if self.keywords else writer.text_of(attribute))

    def is_there(self, writer: Writer) -> bool:
        return writer.has(self.name)


@dataclass(frozen=True)
class _Flags:
    """`fastmath<nnan, ninf>`"""

    word: str

    def read(self, reader: _Reader) -> None:
        if reader.parser.parse_optional_keyword(self.word):
            kind = _FLAGS[self.word]
            reader.attributes[_FLAG_PROPERTIES[self.word]] = kind(kind.parse_parameter(reader.parser))

    def write(self, writer: Writer) -> None:
        name = _FLAG_PROPERTIES[self.word]
        writer.written.add(name)
        if writer.has(name):
            flags = writer.text_of(writer.op.properties[name])
            writer.add(f"{self.word}{flags[flags.index('<') :]}")


class _Promises:
    def read(self, reader: _Reader) -> None:
        while reader.parser.parse_optional_keyword_in(_PROMISES):
            pass

    def write(self, writer: Writer) -> None:
        pass


class _Attributes:
    """All properties and attributes that the form does not write elsewhere, by their names."""

    def read(self, reader: _Reader) -> None:
        reader.attributes |= reader.parser.parse_optional_attr_dict()

    def write(self, writer: Writer) -> None:
        given = {name: value for name, value in writer.op.properties.items() if name not in writer.written}
        kept = {name: value for name, value in given.items() if value != writer.defaults.get(name)}
        if kept or writer.op.attributes:
            writer.add(dictionary_text(kept | writer.op.attributes, writer.text_of))


def dictionary_text(attributes: Mapping[str, Attribute], text_of: Callable[[Attribute], str]) -> str:
    """`{axis = 0 : i32, unit}`, by the names."""
    entries = (
        name if isinstance(value, UnitAttr) else f"{name} = {text_of(value)}"
        for name, value in sorted(attributes.items())
    )
    return f"{{{', '.join(entries)}}}"


@dataclass(frozen=True)
class _Types:
    """The type of what a name stands for; several, where it is a list."""

    name: str
    is_list: bool
    short: type[ParametrizedAttribute] | None

    def read(self, reader: _Reader) -> None:
        types = [self._read_one(reader)]
        while self.is_list and reader.parser.parse_optional_punctuation(","):
            types.append(self._read_one(reader))
        reader.types[self.name] = types

    def _read_one(self, reader: _Reader) -> Attribute:
        if self.short is None:
            return reader.parser.parse_type()
        return self.short.new(self.short.parse_parameters(reader.parser))

    def write(self, writer: Writer) -> None:
        texts = [writer.text_of(value.type) for value in _values(writer.op, self.name)]
        writer.add(", ".join(text[text.index("<") :] if self.short else text for text in texts))

    def is_there(self, writer: Writer) -> bool:
        return bool(_values(writer.op, self.name))


class _Signature:
    """The types of all operands, and of all results."""

    def read(self, reader: _Reader) -> None:
        parser, place = reader.parser, reader.parser.pos
        signature: FunctionType = parser.parse_function_type()
        definition = reader.op_type.get_irdl_definition()
        inputs = iter(signature.inputs.data)
        given = [(name, len(reader.operands.get(name, ()))) for name, _ in definition.operands]
        if sum(count for _, count in given) != len(signature.inputs.data):
            parser.raise_error(f"{sum(count for _, count in given)} operands have another number of types", place)
        for name, count in given:
            reader.types[name] = [next(inputs) for _ in range(count)]
        for name, _ in definition.results:
            reader.types[name] = list(signature.outputs.data)

    def write(self, writer: Writer) -> None:
        inputs = ", ".join(writer.text_of(type) for type in writer.op.operand_types)
        outputs = ", ".join(writer.text_of(type) for type in writer.op.result_types)
        writer.add(f"({inputs}) -> {outputs if len(writer.op.results) == 1 else f'({outputs})'}")


@dataclass(frozen=True)
class _Group:
    elements: tuple

    def read(self, reader: _Reader) -> None:
        if self.elements[0].is_next(reader.parser):
            for element in self.elements:
                element.read(reader)

    def write(self, writer: Writer) -> None:
        anchor = next(element for element in self.elements if isinstance(element, _Operands | _Property | _Types))
        if anchor.is_there(writer):
            for element in self.elements:
                element.write(writer)


@dataclass(frozen=True)
class _Flag:
    """A property without value: its name."""

    name: str

    def read(self, reader: _Reader) -> None:
        if reader.parser.parse_optional_keyword(self.name):
            reader.attributes[self.name] = UnitAttr()

    def write(self, writer: Writer) -> None:
        if writer.has(self.name):
            writer.written.add(self.name)
            writer.add(self.name)


class Form:
    """The form of an op, or of several that are written alike."""

    def __init__(
        self,
        text: str,
        infer: Inference | None = None,
        keywords: Mapping[str, Keywords] | None = None,
        defaults: Mapping[str, Attribute] | None = None,
        short: Mapping[str, type[ParametrizedAttribute]] | None = None,
        translate: Callable[[dict[str, Attribute]], dict[str, Attribute]] = dict,
    ):
        self.text = text
        self.infer = infer or {}
        self.keywords = keywords or {}
        self.defaults = defaults or {}
        self.short = short or {}
        self.translate = translate
        self._known: dict[type[IRDLOperation], tuple[list, dict[str, Attribute]]] = {}

    def parse(self, parser: Parser, op_type: type[IRDLOperation]) -> Operation:
        """Read what comes after the op's name."""
        reader, place = _Reader(parser, op_type), parser.pos
        elements, defaults = self._for(op_type)
        for element in elements:
            element.read(reader)
        definition = op_type.get_irdl_definition()
        names = [name for name, _ in definition.operands]
        given = [reader.operands.get(name, []) for name in names]
        types = [self._types(reader, name, len(found)) for name, found in zip(names, given, strict=True)]
        operands = [parser.resolve_operands(*pair, place) for pair in zip(given, types, strict=True)]
        attributes = self.translate(defaults | reader.attributes)
        properties = {name: attributes.pop(name) for name in definition.properties if name in attributes}
        if any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
            properties[SEGMENTS] = DenseArrayBase.from_list(i32, [len(found) for found in given])
        return op_type.create(
            operands=[operand for found in operands for operand in found],
            result_types=[type for name, _ in definition.results for type in self._types(reader, name, 1)],
            properties=properties,
            attributes=attributes,
        )

    def _types(self, reader: _Reader, name: str, count: int) -> list[Attribute]:
        """The types of what a name stands for, as they are written, or inferred."""
        if name in reader.types or name not in self.infer:
            return reader.types.get(name, [])
        source, rule = self.infer[name]
        return [rule(reader.types[source][0])] * count

    def write(self, op: Operation, name_of: Callable[[SSAValue], str], text_of: Callable[[Attribute], str]) -> str:
        """What comes after the op's name."""
        elements, defaults = self._for(type(op))
        writer = Writer(op, name_of, text_of, defaults)
        for element in elements:
            element.write(writer)
        return writer.text

    def _for(self, op_type: type[IRDLOperation]) -> tuple[list, dict[str, Attribute]]:
        """The elements of an op, and what its properties are where nothing is said."""
        if op_type not in self._known:
            properties = op_type.get_irdl_definition().properties
            usual = {name: known.default_value for name, known in properties.items() if known.default_value is not None}
            stated = {name: value for name, value in self.defaults.items() if name in properties}
            self._known[op_type] = self._elements(op_type), usual | stated
        return self._known[op_type]

    def _elements(self, op_type: type[IRDLOperation]) -> list:
        levels: list[list] = [[]]
        for token in _TOKEN.finditer(self.text):
            if token[0] == "(":
                levels.append([])
            elif token[0] == ")?":
                group = _Group(tuple(levels.pop()))
                levels[-1].append(group)
            else:
                levels[-1].append(self._element(token, op_type))
        return levels[0]

    def _element(self, token: re.Match[str], op_type: type[IRDLOperation]) -> object:
        definition = op_type.get_irdl_definition()
        if token["literal"] is not None:
            return _Literal(token["literal"])
        if token["value"] in definition.properties:
            return _Property(token["value"], self.keywords.get(token["value"]))
        if token["value"] is not None:
            return _Operands((token["value"],), _is_list(dict(definition.operands)[token["value"]]))
        word, argument = token["word"], token["argument"]
        if word in ("type", "short-type"):
            values = dict([*definition.operands, *definition.results])
            return _Types(argument, _is_list(values[argument]), self.short.get(argument))
        if word == "operands":
            return _Operands(tuple(name for name, _ in definition.operands), is_list=False)
        if word == "flag":
            return _Flag(argument)
        if word in _FLAGS:
            return _Flags(word)
        return {"attr-dict": _Attributes, "signature": _Signature, "promises": _Promises}[word]()


def _is_list(definition: object) -> bool:
    return isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef)


def _values(op: Operation, name: str) -> Sequence[SSAValue]:
    """The operands or results of a name."""
    found = getattr(op, name)
    return () if found is None else (found,) if isinstance(found, SSAValue) else found

"""What the form of an op is made of: each element reads its part of the text, and writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import FunctionType, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.mlir_lexer import MLIRTokenKind

from deuteron.ir.generic_printer import entries_text

FLAGS = {"fastmath": ("fastmath", FastMathFlagsAttr), "overflow": ("overflowFlags", IntegerOverflowAttr)}
_PROMISES = ("nneg", "exact")
_CLOSING, _OPENING = (",", "]", ")"), ("[", "(")

NameOf = Callable[[SSAValue], str]
TextOf = Callable[[Attribute], str]
Values = Callable[[Operation], Sequence[SSAValue]]


@dataclass(eq=False, repr=False)
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
class Reader:
    """What has been read of an op. The types of operands and results by their names."""

    parser: Parser
    op_type: type[IRDLOperation]
    operands: dict[str, list[UnresolvedOperand]] = field(default_factory=dict)
    types: dict[str, list[Attribute]] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)


class Writer:
    """Writes an op: `name_of` gives the text of a value, `text_of` that of an attribute or a type."""

    __slots__ = ("defaults", "name_of", "op", "properties", "text", "text_of")

    def __init__(
        self,
        op: Operation,
        properties: Mapping[str, Attribute],
        defaults: Mapping[str, Attribute],
        name_of: NameOf,
        text_of: TextOf,
    ):
        self.op, self.properties, self.defaults = op, properties, defaults
        self.name_of, self.text_of = name_of, text_of
        self.text = ""

    def add(self, text: str) -> None:
        self.text += text if self.text.endswith(_OPENING) else f" {text}"

    def has(self, name: str) -> bool:
        """Whether there is such a property, which is not as usual."""
        found = self.properties.get(name)
        return found is not None and found != self.defaults.get(name)


@dataclass(eq=False, repr=False)
class Literal:
    text: str

    def read(self, reader: Reader) -> None:
        reader.parser.parse_characters(self.text)

    def write(self, writer: Writer) -> None:
        is_tight = self.text in _CLOSING or (self.text == "[" and not writer.text.endswith(","))
        writer.text += self.text if is_tight else f" {self.text}"

    def is_next(self, parser: Parser) -> bool:
        return parser._current_token.text == self.text


@dataclass(eq=False, repr=False)
class Operands:
    """One operand, all that one name stands for, or one for each name."""

    names: tuple[str, ...]
    is_list: bool
    values: Values

    def read(self, reader: Reader) -> None:
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
        if operands := self.values(writer.op):
            writer.add(", ".join(map(writer.name_of, operands)))

    def is_next(self, parser: Parser) -> bool:
        return parser._current_token.kind == MLIRTokenKind.PERCENT_IDENT

    def is_there(self, writer: Writer) -> bool:
        return bool(self.values(writer.op))


@dataclass(eq=False, repr=False)
class Property:
    name: str
    keywords: Keywords | None

    def read(self, reader: Reader) -> None:
        parser = reader.parser
        reader.attributes[self.name] = self.keywords.parse(parser) if self.keywords else parser.parse_attribute()

    def write(self, writer: Writer) -> None:
        attribute = writer.properties[self.name]
        writer.add(self.keywords.word(attribute) if self.keywords else writer.text_of(attribute))

    def is_there(self, writer: Writer) -> bool:
        return writer.has(self.name)


@dataclass(eq=False, repr=False)
class Flag:
    """A property without value: its name."""

    name: str

    def read(self, reader: Reader) -> None:
        if reader.parser.parse_optional_keyword(self.name):
            reader.attributes[self.name] = UnitAttr()

    def write(self, writer: Writer) -> None:
        if writer.has(self.name):
            writer.add(self.name)


@dataclass(eq=False, repr=False)
class Flags:
    """`fastmath<nnan, ninf>`"""

    word: str
    name: str
    kind: type

    def read(self, reader: Reader) -> None:
        if reader.parser.parse_optional_keyword(self.word):
            reader.attributes[self.name] = self.kind(self.kind.parse_parameter(reader.parser))

    def write(self, writer: Writer) -> None:
        if writer.has(self.name):
            flags = writer.text_of(writer.properties[self.name])
            writer.add(f"{self.word}{flags[flags.index('<') :]}")


class Promises:
    def read(self, reader: Reader) -> None:
        while reader.parser.parse_optional_keyword_in(_PROMISES):
            pass

    def write(self, writer: Writer) -> None:
        pass


@dataclass(eq=False, repr=False)
class Attributes:
    """All attributes, and the properties that are not `written` elsewhere, by their names."""

    written: set[str]

    def read(self, reader: Reader) -> None:
        reader.attributes |= reader.parser.parse_optional_attr_dict()

    def write(self, writer: Writer) -> None:
        kept = {name: value for name, value in writer.properties.items() if name not in self.written}
        kept = {name: value for name, value in kept.items() if value != writer.defaults.get(name)}
        if kept or writer.op.attributes:
            writer.add(dictionary_text(kept | writer.op.attributes, writer.text_of))


def dictionary_text(attributes: Mapping[str, Attribute], text_of: TextOf) -> str:
    """`{axis = 0 : i32, unit}`, by the names."""
    return f"{{{entries_text(sorted(attributes.items()), text_of)}}}"


@dataclass(eq=False, repr=False)
class Types:
    """The type of what a name stands for; several, where it is a list."""

    name: str
    is_list: bool
    values: Values
    short: type[ParametrizedAttribute] | None

    def read(self, reader: Reader) -> None:
        types = [self._read_one(reader)]
        while self.is_list and reader.parser.parse_optional_punctuation(","):
            types.append(self._read_one(reader))
        reader.types[self.name] = types

    def _read_one(self, reader: Reader) -> Attribute:
        if self.short is None:
            return reader.parser.parse_type()
        return self.short.new(self.short.parse_parameters(reader.parser))

    def write(self, writer: Writer) -> None:
        texts = [writer.text_of(value.type) for value in self.values(writer.op)]
        writer.add(", ".join(text[text.index("<") :] if self.short else text for text in texts))

    def is_there(self, writer: Writer) -> bool:
        return bool(self.values(writer.op))


class Signature:
    """The types of all operands, and of all results."""

    def read(self, reader: Reader) -> None:
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
        inputs = ", ".join([writer.text_of(operand.type) for operand in writer.op.operands])
        outputs = ", ".join([writer.text_of(result.type) for result in writer.op.results])
        writer.add(f"({inputs}) -> {outputs if len(writer.op.results) == 1 else f'({outputs})'}")


@dataclass(eq=False, repr=False)
class Group:
    """Elements that are there together: when the first one is next, or when `anchor`, one of them, is there."""

    elements: tuple
    anchor: Operands | Property | Types

    def read(self, reader: Reader) -> None:
        if self.elements[0].is_next(reader.parser):
            for element in self.elements:
                element.read(reader)

    def write(self, writer: Writer) -> None:
        if self.anchor.is_there(writer):
            for element in self.elements:
                element.write(writer)

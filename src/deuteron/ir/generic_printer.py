"""Prints tile IR in MLIR's generic form, which every op has.

#linear = #ttg.linear<{register = [[0, 1], ...], lane = ..., warp = ..., block = []}>
"builtin.module"() ({ ... %x = "tt.load"(%p) <{...}> : (...) -> tensor<64x64xf16, #linear> ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from io import StringIO
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.mlir_lexer import MLIRLexer

from deuteron.ir.ttg.layout import LinearEncodingAttr, SharedLinearEncodingAttr, SharedMemorySpaceAttr


class GenericPrinter(Printer):
    """Prints an alias for every layout; `definitions` says what they stand for, in the order of first use.

    xDSL's printer follows the column of every character, and makes the text of a type as often as it occurs. Here text
    is written as it is, and that of an attribute is kept: it takes a third of the time.
    """

    _STEMS: ClassVar = {LinearEncodingAttr: "linear", SharedLinearEncodingAttr: "shared", SharedMemorySpaceAttr: "smem"}

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._aliases: dict[Attribute, str] = {}
        self._counts: Counter[str] = Counter()
        self._texts: dict[int, tuple[Attribute, str]] = {}

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        self.stream.write(text)

    def print_bytes_literal(self, bytestring: bytes) -> None:
        self.stream.write(quoted(bytestring))

    def print_attribute(self, attribute: Attribute) -> None:
        if self.printing_location:  # within one, what prints as loc(...) elsewhere prints without
            super().print_attribute(attribute)
        else:
            self.stream.write(self.text(attribute))

    def text(self, attribute: Attribute) -> str:
        kept = self._texts.get(id(attribute))
        if kept is None:
            kept = self._texts[id(attribute)] = attribute, self._make_text(attribute)
        return kept[1]

    def _make_text(self, attribute: Attribute) -> str:
        if type(attribute) in self._STEMS:
            return self._alias(attribute)
        if isinstance(attribute, DenseIntOrFPElementsAttr) and (literal := self._equal_elements(attribute)):
            return f"{literal} : {self.text(attribute.type)}"
        outer, self.stream = self.stream, StringIO()
        super().print_attribute(attribute)
        text, self.stream = self.stream.getvalue(), outer
        return text

    def print_op(self, op: Operation) -> None:
        """The generic form; our ops have no successors."""
        is_isolated = bool(op.regions) and op.has_trait(IsolatedFromAbove)
        write = self.stream.write
        self._print_results(op)
        if is_isolated:
            self.enter_scope()
        write(f'"{op.name}"(')
        self.print_list(op.operands, self.print_operand)
        write(f") <{{{self._dictionary(op.properties)}}}>" if op.properties else ")")
        self.print_regions(op.regions)
        write(f" {{{self._dictionary(op.attributes)}}} : " if op.attributes else " : ")
        self.print_operation_type(op)
        if is_isolated:
            self.exit_scope()

    def _dictionary(self, attributes: Mapping[str, Attribute]) -> str:
        return entries_text(attributes.items(), self.text)

    def print_operation_type(self, op: Operation) -> None:
        operands = ", ".join([self.text(operand.type) for operand in op.operands])
        results = ", ".join([self.text(result.type) for result in op.results])
        location = f" {self.text(op.location)}" if self.print_debuginfo else ""
        self.stream.write(f"({operands}) -> {results if len(op.results) == 1 else f'({results})'}{location}")

    def _equal_elements(self, attribute: DenseIntOrFPElementsAttr) -> str | None:
        """The literal of a tile whose elements are equal, of which xDSL would decode each; None where they differ."""
        count, data = len(attribute), attribute.data.data
        if count <= 1:
            return None
        first = data[: len(data) // count]
        if data == first * count:
            return f"dense<{self._number(attribute.get_element_type(), first)}>"
        zeros_of_both_signs = attribute.is_splat()
        return f'dense<"0x{data.hex().upper()}">' if zeros_of_both_signs else None

    def _number(self, element_type: IntegerType | AnyFloat, data: bytes) -> str:
        number = element_type.unpack(data, 1)[0]
        outer, self.stream = self.stream, StringIO()
        if isinstance(number, float):
            self.print_float(number, element_type)
        else:
            self.print_int(number, element_type)
        text, self.stream = self.stream.getvalue(), outer
        return text

    def _alias(self, attribute: Attribute) -> str:
        if attribute not in self._aliases:
            stem = self._STEMS[type(attribute)]
            self._aliases[attribute] = f"#{stem}{self._counts[stem] or ''}"
            self._counts[stem] += 1
        return self._aliases[attribute]

    def locations(self) -> str:
        """What comes after the module: nothing, locations are where they are used."""
        return ""

    def definitions(self) -> str:
        return "".join(f"{alias} = {attribute}\n" for attribute, alias in self._aliases.items())


def entries_text(entries: Iterable[tuple[str, Attribute]], text_of: Callable[[Attribute], str]) -> str:
    """`axis = 0 : i32, unit`: the entries of a dictionary."""
    texts = (
        key_text(name) if isinstance(attribute, UnitAttr) else f"{key_text(name)} = {text_of(attribute)}"
        for name, attribute in entries
    )
    return ", ".join(texts)


@cache
def key_text(name: str) -> str:
    """The name of an attribute, in quotes where it is no identifier."""
    return name if MLIRLexer.bare_identifier_regex.fullmatch(name) else quoted(name.encode())


@cache
def quoted(text: bytes) -> str:
    """As MLIR writes a string: what is not printable in hexadecimal."""
    escaped = (
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x22 else f"\\{byte:02X}"
        for byte in text
    )
    return f'"{"".join(escaped)}"'

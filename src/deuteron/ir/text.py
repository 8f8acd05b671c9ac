"""Tile IR as text: the generic MLIR form, which Triton's parser reads too.

    #linear = #ttg.linear<{register = [[0, 1], ...], lane = ..., warp = ..., block = []}>
    "builtin.module"() ({ ... %x = "tt.load"(%p) ... : (...) -> tensor<64x64xf16, #linear> ...

Printed with locations, a module's text carries everything, so that the text of any stage can be an input. Layouts have
names: written out, they are nine tenths of the text of ttgir.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from io import StringIO
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import Builtin, BytesAttr, DenseIntOrFPElementsAttr, ModuleOp, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

from deuteron.errors import IRError, Location
from deuteron.ir.arith import Arith, Math
from deuteron.ir.foreign import make_native
from deuteron.ir.location import is_unknown, to_attribute
from deuteron.ir.pretty.parser import PrettyParser
from deuteron.ir.tt import TT
from deuteron.ir.ttg import TTG
from deuteron.ir.ttg.layout import LinearEncodingAttr, SharedLinearEncodingAttr, SharedMemorySpaceAttr
from deuteron.ir.ttng import TTNG
from deuteron.ir.types import byte_width_of, is_float

DIALECTS = (Builtin, Arith, Math, scf.Scf, TT, TTG, TTNG)


def make_context() -> Context:
    """A context that knows every dialect of tile IR."""
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    return context


def print_module(module: ModuleOp, locations: bool = True) -> str:
    """The module in generic form, after the layouts that it names."""
    stream = StringIO()
    printer = _Printer(stream, print_generic_format=True, print_debuginfo=locations)
    printer.print_op(module)
    return f"{printer.definitions()}{stream.getvalue()}\n"


class _Printer(Printer):
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
        self.stream.write(_quoted(bytestring))

    def print_attribute(self, attribute: Attribute) -> None:
        if self.printing_location:  # within one, what prints as loc(...) elsewhere prints without
            super().print_attribute(attribute)
        else:
            self.stream.write(self._text(attribute))

    def _text(self, attribute: Attribute) -> str:
        kept = self._texts.get(id(attribute))
        if kept is None:
            kept = self._texts[id(attribute)] = attribute, self._make_text(attribute)
        return kept[1]

    def _make_text(self, attribute: Attribute) -> str:
        if type(attribute) in self._STEMS:
            return self._alias(attribute)
        if isinstance(attribute, DenseIntOrFPElementsAttr) and (literal := self._equal_elements(attribute)):
            return f"{literal} : {self._text(attribute.type)}"
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
        entries = (
            _key(name) if isinstance(attribute, UnitAttr) else f"{_key(name)} = {self._text(attribute)}"
            for name, attribute in attributes.items()
        )
        return ", ".join(entries)

    def print_operation_type(self, op: Operation) -> None:
        operands = ", ".join([self._text(operand.type) for operand in op.operands])
        results = ", ".join([self._text(result.type) for result in op.results])
        location = f" {self._text(op.location)}" if self.print_debuginfo else ""
        self.stream.write(f"({operands}) -> {results if len(op.results) == 1 else f'({results})'}{location}")

    def _equal_elements(self, attribute: DenseIntOrFPElementsAttr) -> str | None:
        """The literal of a tile whose elements are equal, of which xDSL would decode each; None where they differ."""
        count, data = len(attribute), attribute.data.data
        if count <= 1:
            return None
        first = data[: len(data) // count]
        if data == first * count:
            one = DenseIntOrFPElementsAttr(TensorType(attribute.get_element_type(), [1]), BytesAttr(first))
            return self._text(one).rpartition(" : ")[0]
        zeros_of_both_signs = attribute.is_splat()
        return f'dense<"0x{data.hex().upper()}">' if zeros_of_both_signs else None

    def _alias(self, attribute: Attribute) -> str:
        if attribute not in self._aliases:
            stem = self._STEMS[type(attribute)]
            self._aliases[attribute] = f"#{stem}{self._counts[stem] or ''}"
            self._counts[stem] += 1
        return self._aliases[attribute]

    def definitions(self) -> str:
        return "".join(f"{alias} = {attribute}\n" for attribute, alias in self._aliases.items())


@cache
def _key(name: str) -> str:
    """The name of an attribute, in quotes where it is no identifier."""
    return name if MLIRLexer.bare_identifier_regex.fullmatch(name) else _quoted(name.encode())


@cache
def _quoted(text: bytes) -> str:
    """As MLIR writes a string: what is not printable in hexadecimal."""
    escaped = (
        "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x22 else f"\\{byte:02X}"
        for byte in text
    )
    return f'"{"".join(escaped)}"'


class _HexLiteral(AttrParser._TensorLiteralElement):
    """An element of a dense literal in hexadecimal: for a float type it is the bit pattern (infinities, NaN)."""

    def to_type(self, parser: AttrParser, type: Attribute):
        if not is_float(type):
            return super().to_type(parser, type)
        bits = self.value.to_bytes(byte_width_of(type), "little")
        return type.unpack(bits, 1)[0]


class _Parser(PrettyParser):
    """xDSL's parser (0.74), which takes hexadecimal floats in dense literals for integers, and strings of more than
    ASCII for bytes, and leaves locations unknown.

    Here an op without a location in the text has its place in the text.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.spans: dict[Operation, Span] = {}

    def parse_operation(self) -> Operation:
        span = self._current_token.span
        op = super().parse_operation()
        self.spans[op] = span
        if is_unknown(op.location):
            op.location = to_attribute(_place(span))
        return op

    def parse_optional_str_literal(self) -> str | None:
        if self._current_token.kind != MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            text = StringLiteral.from_span(self._current_token.span).string_contents
        except UnicodeDecodeError:
            return None
        self._consume_token()
        return text

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        is_hexadecimal = self._current_token.text[:2] in ("0x", "0X")
        element = super()._parse_tensor_literal_element()
        return _HexLiteral(**vars(element)) if is_hexadecimal else element


def parse_module(text: str, file: str = "<ttir>") -> ModuleOp:
    """Parse and verify the text of a module; raises IRError with the place in `file`."""
    context = make_context()
    context.load_dialect(cf.Cf)
    parser = _Parser(context, text, file)
    try:
        module = parser.parse_module()
        make_native(module)
    except ParseError as error:
        raise IRError(error.msg, _use_of_undefined(parser, text, file) or _place(error.span)) from error
    except VerifyException as error:
        raise IRError(str(error), _place(parser._current_token.span)) from error
    try:
        module.verify()
    except VerifyException as error:
        span = next((span for op, span in parser.spans.items() if _is_at_fault(op)), None)
        place = _place(span) if span else Location(file, 1)
        raise IRError(f"the module does not verify: {error}", place) from error
    return module


def _use_of_undefined(parser: Parser, text: str, file: str) -> Location | None:
    """Where the first value is used that is never defined: xDSL notices it at the end of the text."""
    if parser._current_token.kind != MLIRTokenKind.EOF or not parser.forward_ssa_references:
        return None
    found = re.search(rf"%{re.escape(next(iter(parser.forward_ssa_references)))}\b", text)
    return _place(Span(found.start(), found.end(), Input(text, file))) if found else None


def _is_at_fault(op: Operation) -> bool:
    """Whether an op does not verify, whatever is in it."""
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException:
        return True
    return False


def _place(span: Span) -> Location:
    before = span.input.content[: span.start]
    return Location(span.input.name, before.count("\n") + 1, len(before) - before.rfind("\n"))

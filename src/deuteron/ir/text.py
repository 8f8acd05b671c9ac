"""Tile IR as text, which Triton's parser reads too: printed as Triton prints it, or in MLIR's generic form.

    #linear = #ttg.linear<{register = [[0, 1], ...], lane = ..., warp = ..., block = []}>
    module { ... %x = tt.load %p : tensor<64x64x!tt.ptr<f16>, #linear> loc(#loc3) ... }
    #loc3 = loc("k.py":7:9)

Printed with locations, a module's text carries everything, so that the text of any stage can be an input. Layouts have
names: written out, they are nine tenths of the text of ttgir.
"""

from __future__ import annotations

import re
from io import StringIO

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import OpDef, OptPropertyDef, VarIRConstruct
from xdsl.irdl.constraints import VerificationContext
from xdsl.irdl.operations import verify_variadic_size
from xdsl.parser import AttrParser, Parser
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind, StringLiteral

from deuteron.errors import IRError, Location
from deuteron.ir.arith import Arith, Math
from deuteron.ir.generic_printer import GenericPrinter
from deuteron.ir.location import is_unknown, to_attribute
from deuteron.ir.loop_hints import LLVM_HINTS
from deuteron.ir.pretty.parser import PrettyParser
from deuteron.ir.pretty.printer import PrettyPrinter
from deuteron.ir.region_rules import check_regions
from deuteron.ir.tt import TT
from deuteron.ir.ttg import TTG
from deuteron.ir.ttng import TTNG
from deuteron.ir.types import byte_width_of, check_type, is_float

DIALECTS = (Builtin, Arith, Math, scf.Scf, TT, TTG, TTNG, LLVM_HINTS)


def make_context() -> Context:
    """A context that knows every dialect of tile IR."""
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    return context


def print_module(module: ModuleOp, locations: bool = True, generic: bool = False) -> str:
    """The module after the layouts that it names, as Triton prints it or in MLIR's generic form."""
    stream = StringIO()
    kind = GenericPrinter if generic else PrettyPrinter
    printer = kind(stream, print_generic_format=True, print_debuginfo=locations)
    printer.print_op(module)
    return f"{printer.definitions()}{stream.getvalue()}\n{printer.locations()}"


class _HexLiteral(AttrParser._TensorLiteralElement):
    """An element of a dense literal in hexadecimal: for a float type it is the bit pattern (infinities, NaN)."""

    def to_type(self, parser: AttrParser, type: Attribute):
        if not is_float(type):
            return super().to_type(parser, type)
        bits = self.value.to_bytes(byte_width_of(type), "little")
        return type.unpack(bits, 1)[0]


class _Lexer(MLIRLexer):
    """xDSL's lexer (0.74), which takes exponential time for a string that does not end."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')


class _Parser(PrettyParser):
    """xDSL's parser (0.74), which takes hexadecimal floats in dense literals for integers, and strings of more than
    ASCII for bytes, and leaves locations unknown.

    Here an op, or an argument of a block, without a location in the text has its place in the text.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self._parser_state = ParserState(_Lexer(self.lexer.input))
        self.spans: dict[Operation, Span] = {}

    def parse_operation(self) -> Operation:
        span = self._current_token.span
        op = super().parse_operation()
        self.spans[op] = span
        definition = op.get_irdl_definition()
        if definition.regions or definition.successors:
            self._check_parts(op, definition, span)
        if is_unknown(op.location):
            op.location = to_attribute(_place(span))
        _place_contents(op)
        return op

    def _check_parts(self, op: Operation, definition: OpDef, span: Span) -> None:
        """That an op which is looked into before all is verified has as many of everything as its class says, and the
        properties.
        """
        try:
            for part in (VarIRConstruct.OPERAND, VarIRConstruct.REGION, VarIRConstruct.SUCCESSOR):
                verify_variadic_size(op, definition, part)
            for name, declared in definition.properties.items():
                if name in op.properties:
                    declared.constr.verify(op.properties[name], VerificationContext())
                elif not isinstance(declared, OptPropertyDef):
                    raise VerifyException(f"{op.name} has a property '{name}'")
        except VerifyException as error:
            self.raise_error(str(error), span.start, span.end)

    def parse_optional_str_literal(self) -> str | None:
        if self._current_token.kind != MLIRTokenKind.BYTES_LIT:
            return super().parse_optional_str_literal()
        try:
            text = StringLiteral.from_span(self._current_token.span).string_contents
        except UnicodeDecodeError:
            return None
        self._consume_token()
        return text

    def _parse_builtin_dense_attr(self) -> Attribute:
        """With a place where an element is out of the range of its type."""
        place = self.pos
        try:
            return super()._parse_builtin_dense_attr()
        except ValueError as error:
            self.raise_error(str(error), place)

    def _parse_dense_literal_type(self) -> Attribute:
        """Looked at first: xDSL makes a list of as many elements as it has."""
        place = self.pos
        type = super()._parse_dense_literal_type()
        try:
            check_type(type)
        except VerifyException as error:
            self.raise_error(str(error), place)
        return type

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        is_hexadecimal = self._current_token.text[:2] in ("0x", "0X")
        element = super()._parse_tensor_literal_element()
        return _HexLiteral(**vars(element)) if is_hexadecimal else element


def _forget_empty_names(module: ModuleOp) -> None:
    """Of `%_0` xDSL keeps the name before the number, which is empty, and refuses that when the value is erased."""
    for op in module.walk():
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            value.name_hint = value.name_hint or None


def parse_module(text: str, file: str = "<ttir>") -> ModuleOp:
    """Parse and verify the text of a module; raises IRError with the place in `file`."""
    from xdsl.dialects import cf  # deferred: most compiles read no text

    from deuteron.ir.foreign import make_native
    from deuteron.ir.polls import AtomicPollOp

    if not text.strip():
        raise IRError("the text of a module is expected, and there is none", Location(file, 1))
    context = make_context()
    context.load_dialect(cf.Cf)
    context.load_op(AtomicPollOp)
    try:
        parser = _Parser(context, text, file)
    except ParseError as error:  # of the first token
        raise IRError(error.msg, _place(error.span)) from error
    try:
        module = parser.parse_module()
        _forget_empty_names(module)
        make_native(module)
    except RecursionError as error:
        raise IRError("regions are too deep in each other", _place(parser._current_token.span)) from error
    except ParseError as error:
        raise IRError(_said(parser, error), _use_of_undefined(parser, text, file) or _place(error.span)) from error
    except VerifyException as error:
        raise IRError(str(error), _place(parser._current_token.span)) from error
    try:
        for op in module.walk():
            _check_operation(op)  # first: xDSL's own operations take for granted what this says
        module.verify()
    except VerifyException as error:
        span = next((span for op, span in parser.spans.items() if _is_at_fault(op)), None)
        place = _place(span) if span else Location(file, 1)
        raise IRError(f"the module does not verify: {error}", place) from error
    return module


def _said(parser: Parser, error: ParseError) -> str:
    """Of a token that it does not expect xDSL may say no more than where that is."""
    unexpected = f"'{parser._current_token.text}'" if parser._current_token.text else "the end of the text"
    return f"{unexpected} is not expected{error.msg}" if error.msg.startswith(" ") else error.msg


def _place_contents(op: Operation) -> None:
    """Give arguments, and terminators that are not written, the place of the op that they are in."""
    for region in op.regions:
        for block in region.blocks:
            for inner in (*block.args, *filter(None, [block.last_op])):
                if is_unknown(inner.location):
                    inner.location = op.location


def _use_of_undefined(parser: Parser, text: str, file: str) -> Location | None:
    """Where the first value is used that is never defined: xDSL notices it at the end of the text."""
    if parser._current_token.kind != MLIRTokenKind.EOF or not parser.forward_ssa_references:
        return None
    found = re.search(rf"%{re.escape(next(iter(parser.forward_ssa_references)))}\b", text)
    return _place(Span(found.start(), found.end(), Input(text, file))) if found else None


def _check_operation(op: Operation) -> None:
    """That its regions take and yield what they have to, and its operands are defined, where it can see them."""
    if any(isinstance(operand, ForwardDeclaredValue) for operand in op.operands):
        raise VerifyException(f"{op.name} uses a value that is not defined in the regions which it is in")
    check_regions(op)


def _is_at_fault(op: Operation) -> bool:
    """Whether an op does not verify, whatever is in it."""
    try:
        _check_operation(op)
        op.verify(verify_nested_ops=False)
    except VerifyException:
        return True
    return False


def _place(span: Span) -> Location:
    before = span.input.content[: span.start]
    return Location(span.input.name, before.count("\n") + 1, len(before) - before.rfind("\n"))

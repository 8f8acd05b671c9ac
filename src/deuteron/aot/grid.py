"""Grid expressions, as given to `deuteron compile -g`: parsed into a tree, never pasted.

    grid = parse_grid("cdiv(M, BLOCK_M) * num_sms, max(heads, 1), 1", grid_scope(signature))
    grid[0]      Operation("*", Operation("cdiv", Name("M"), Number(128)), Name("num_sms"))

One to three parts, of whole numbers and the kernel's whole parameters, with + - * // / % in Python's or C's
precedence (which agree), parentheses, cdiv(a, b), min(a, b) and max(a, b). Constexprs are folded. `/` rounds to zero,
as in C; `//` and `%` round down, as in Python; where nothing is negative that is the same. What else is written is an
error that points at it. `grid_code` evaluates a tree in Python and makes C of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import NamedTuple

from deuteron.aot.option_text import OptionText
from deuteron.aot.signature import Argument, Signature
from deuteron.language.signature import DESCRIPTOR, descriptor_arguments, parse_type

FUNCTIONS = ("cdiv", "min", "max")
DIVISIONS = ("/", "//", "%", "cdiv")
MAX_DEPTH = 100
MAX_OPERATIONS = 250
MAX_DIGITS = 100
INT64_MAX = 2**63 - 1
ALLOWED = "a grid has whole numbers, the kernel's parameters, + - * / // % ( ), cdiv(a, b), min(a, b) and max(a, b)"

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+(?!\w)|[0-9]+(?![\w.]))|(?P<name>[^\W\d]\w*)|"
    r"(?P<other>//|\*\*|<<|>>|[=<>!]=|&&|\|\||[0-9][\w.]*|'[^']*'?|\"[^\"]*\"?|\S))"
)


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Name:
    """An argument of the compiled function."""

    name: str


@dataclass(frozen=True)
class Operation:
    """`+ - * / // %` or one of FUNCTIONS, of two operands."""

    kind: str
    left: Node
    right: Node


Node = Number | Name | Operation
Grid = tuple[Node, Node, Node]


@dataclass
class Scope:
    """What names mean in a grid: arguments, constants, and parameters that cannot be used, with the reason."""

    arguments: set[str] = field(default_factory=set)
    constants: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def names(self) -> list[str]:
        return [*self.arguments, *self.constants]


def grid_scope(signature: Signature, host_parameters: Iterable[str] = ()) -> Scope:
    """The names that the grid of a kernel with this signature may use, those of host parameters among them."""
    scope = Scope(set(host_parameters))
    for arg in signature.arguments:
        if not arg.is_folded and arg.type.startswith(DESCRIPTOR):
            scope.arguments.update(_sizes(arg))
        elif not arg.is_folded and arg.type[0] in "iu":
            scope.arguments.add(arg.name)
        elif _is_whole(arg) and abs(arg.value) <= INT64_MAX:
            scope.constants[arg.name] = int(arg.value)
        else:
            scope.refused[arg.name] = _refusal(arg)
    return scope


def _sizes(arg: Argument) -> list[str]:
    """The sizes and strides of a descriptor: `a_shape_0`, `a_shape_1`, `a_stride_0`."""
    return [part.name for part in descriptor_arguments(arg.name, parse_type(arg.type))[1:]]


def _is_whole(arg: Argument) -> bool:
    return arg.is_folded and isinstance(arg.value, int)


def _refusal(arg: Argument) -> str:
    if _is_whole(arg):
        return f"'{arg.name}' is {arg.value}, which does not fit into 64 bits"
    what = f"{arg.value!r}" if arg.is_folded else f"of type {arg.type}"
    return f"'{arg.name}' is {what}, and a grid is made of whole numbers"


def parse_grid(text: str, scope: Scope) -> Grid:
    """The grid that a text means, missing parts being 1; raises UsageError that points into the text."""
    parser = _Parser(OptionText("--grid", text), scope)
    parts = parser.parts()
    return (*parts, Number(1), Number(1))[:3]


class _Token(NamedTuple):
    kind: str  # number, name, other or end
    text: str
    offset: int


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        found.append(_Token(kind, match[kind], match.start(kind)))
    return [*found, _Token("end", "", len(text.rstrip()))]


class _Parser:
    """Recursive descent over the tokens of one grid."""

    def __init__(self, source: OptionText, scope: Scope):
        self.source, self.scope = source, scope
        self.tokens, self.position = _tokens(source.text), 0
        self.depth, self.num_operations = 0, 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def error(self, message: str, token: _Token) -> Exception:
        return self.source.error(message, token.offset, len(token.text))

    def take(self, *texts: str) -> _Token | None:
        """The next token, if it is one of these signs."""
        token = self.token
        if token.kind != "other" or token.text not in texts:
            return None
        self.position += 1
        return token

    def expect(self, text: str) -> None:
        if self.take(text):
            return
        if self.token.kind == "end":
            raise self.error(f"the grid ends where '{text}' was expected", self.token)
        raise self.unexpected(self.token)

    def unexpected(self, token: _Token) -> Exception:
        if token.kind == "end":
            return self.error("the grid ends where a value was expected", token)
        return self.error(f"'{token.text}' is not expected here: {ALLOWED}", token)

    def parts(self) -> list[Node]:
        parts = [self.sum()]
        while comma := self.take(","):
            if len(parts) == 3:
                raise self.error("a grid has one to three parts, and here a fourth begins", comma)
            parts.append(self.sum())
        if self.token.kind != "end":
            raise self.unexpected(self.token)
        return parts

    def sum(self) -> Node:
        node = self.product()
        while sign := self.take("+", "-"):
            node = self.operation(sign, node, self.product())
        return node

    def product(self) -> Node:
        node = self.signed()
        while sign := self.take("*", "/", "//", "%"):
            node = self.operation(sign, node, self.signed())
        return node

    def operation(self, sign: _Token, left: Node, right: Node) -> Node:
        self.num_operations += 1
        if self.num_operations > MAX_OPERATIONS:
            raise self.error(f"the grid has more than {MAX_OPERATIONS} operations", sign)
        if sign.text in DIVISIONS and right == Number(0):
            raise self.error(f"'{sign.text}' divides by zero", sign)
        return Operation(sign.text, left, right)

    def signed(self) -> Node:
        if sign := self.take("+", "-"):
            self.enter(sign)
            node = self.signed()
            self.depth -= 1
            return Operation("-", Number(0), node) if sign.text == "-" else node
        return self.primary()

    def primary(self) -> Node:
        token = self.token
        if self.take("("):
            self.enter(token)
            node = self.sum()
            self.expect(")")
            self.depth -= 1
            return node
        if token.kind not in ("number", "name"):
            raise self.unexpected(token)
        self.position += 1
        return self.number(token) if token.kind == "number" else self.name(token)

    def enter(self, token: _Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"the grid is nested deeper than {MAX_DEPTH} levels", token)

    def number(self, token: _Token) -> Node:
        is_hexadecimal = token.text[:2].lower() == "0x"
        is_long = len(token.text) > MAX_DIGITS
        value = 0 if is_long else int(token.text, 16 if is_hexadecimal else 10)
        if is_long or value > INT64_MAX:
            raise self.error(f"{token.text} does not fit into 64 bits", token)
        return Number(value)

    def name(self, token: _Token) -> Node:
        if self.take("("):
            return self.call(token)
        if token.text in self.scope.constants:
            return Number(self.scope.constants[token.text])
        if token.text in self.scope.arguments:
            return Name(token.text)
        if token.text in self.scope.refused:
            raise self.error(self.scope.refused[token.text], token)
        if self.token.text == "." or iskeyword(token.text):  # triton.cdiv(n, BLOCK), lambda meta: ...
            raise self.unexpected(token)
        known = ", ".join(sorted(self.scope.names())) or "there are none"
        raise self.error(f"unknown name '{token.text}': the kernel's whole parameters are {known}", token)

    def call(self, function: _Token) -> Node:
        if function.text not in FUNCTIONS:
            raise self.error(f"'{function.text}' cannot be called in a grid: {ALLOWED}", function)
        self.enter(function)
        operands = [self.sum()]
        while self.take(","):
            operands.append(self.sum())
        self.expect(")")
        self.depth -= 1
        if len(operands) != 2:
            raise self.error(f"{function.text} takes two values, got {len(operands)}", function)
        return self.operation(function, *operands)

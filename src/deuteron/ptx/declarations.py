"""Declarations of variables and parameters.

.visible .global .align 4 .b8 msg[12] = {104, 105};    Variable("msg", "global", "b8", 4, (12,), (104, 105))
.param .u64 .ptr .global .align 16 add_param_0         Variable("add_param_0", "param", "u64", 8)
"""

from __future__ import annotations

from deuteron.ptx.syntax import TYPE_BYTES, Immediate, Symbol, Variable
from deuteron.ptx.tokens import Tokens, is_number, parse_number

SPACES = ("global", "shared", "const", "local", "param", "reg")
LINKAGE = (".visible", ".extern", ".weak", ".common", ".internal")


def parse_variable(tokens: Tokens, is_extern: bool = False) -> Variable:
    """From the state space up to the name, dimensions and initial value; the `;` or `,` after it is left."""
    space, type, alignment, vector_size = "", "", 0, 1
    while tokens.peek.startswith("."):
        word = tokens.next()[1:]
        if word in SPACES and not space:
            space = word
        elif word == "align":
            alignment = int(tokens.next())
        elif word in TYPE_BYTES:
            type = word
        elif word in ("v2", "v4"):
            vector_size = int(word[1:])
        elif word == "ptr":
            _skip_pointer_attributes(tokens)
        elif word == "attribute":
            while tokens.next() != ")":
                pass
    name = tokens.next()
    dims = _parse_dims(tokens)
    initial = _parse_initial(tokens) if tokens.accept("=") else ()
    alignment = alignment or TYPE_BYTES[type] * vector_size
    dims = (*dims, vector_size) if vector_size > 1 else dims
    return Variable(name, space, type, alignment, dims, initial, is_extern)


def _skip_pointer_attributes(tokens: Tokens) -> None:
    while tokens.peek.startswith("."):
        if tokens.next() == ".align":
            tokens.next()


def _parse_dims(tokens: Tokens) -> tuple[int, ...]:
    dims = []
    while tokens.accept("["):
        dims.append(0 if tokens.peek == "]" else int(tokens.next()))
        tokens.expect("]")
    return tuple(dims)


def _parse_initial(tokens: Tokens) -> tuple[Immediate | Symbol, ...]:
    if not tokens.accept("{"):
        return (_parse_initial_value(tokens),)
    values: list[Immediate | Symbol] = []
    while not tokens.accept("}"):
        if tokens.peek == "{":
            values.extend(_parse_initial(tokens))
        else:
            values.append(_parse_initial_value(tokens))
        tokens.accept(",")
    return tuple(values)


def _parse_initial_value(tokens: Tokens) -> Immediate | Symbol:
    if tokens.accept("-"):
        return Immediate(-parse_number(tokens.next())[0])
    if is_number(tokens.peek):
        return Immediate(*parse_number(tokens.next()))
    name = tokens.next()
    if name == "generic":
        tokens.expect("(")
        name = tokens.next()
        tokens.expect(")")
    offset = parse_number(tokens.next())[0] if tokens.accept("+") else 0
    return Symbol(name, offset)

"""Operands of instructions.

%r1   5   0f3F800000   %tid.x   smem+16   [%rd1+8]   [%rd2, {%r1, %r2}]   {%r1, _}   %r1|%p2   !%p1   (a, b)
"""

from __future__ import annotations

from collections.abc import Mapping

from deuteron.ptx.syntax import Immediate, Memory, Negated, Operand, Pair, Register, Special, Symbol, Vector
from deuteron.ptx.tokens import Tokens, is_number, parse_number


def parse_operand(tokens: Tokens, names: Mapping[str, Register]) -> Operand:
    first = _parse_simple(tokens, names)
    return Pair(first, _parse_simple(tokens, names)) if tokens.accept("|") else first


def _parse_simple(tokens: Tokens, names: Mapping[str, Register]) -> Operand:
    word = tokens.next()
    if word in names:
        return names[word]
    if word == "{":
        return _parse_list(tokens, names, "}")
    if word == "(":
        return _parse_list(tokens, names, ")")
    if word == "[":
        return _parse_memory(tokens, names)
    if word == "!":
        return Negated(_parse_simple(tokens, names))
    if word == "-":
        return Immediate(-parse_number(tokens.next())[0])
    if is_number(word):
        return Immediate(*parse_number(word))
    if word == "_":
        return None
    if word.startswith("%"):
        return Special(word)
    if word[0].isalpha() or word[0] in "_$":
        return Symbol(word, _parse_offset(tokens))
    raise tokens.error(f"expected an operand, found '{word}'")


def _parse_list(tokens: Tokens, names: Mapping[str, Register], end: str) -> Vector:
    elements = []
    while not tokens.accept(end):
        elements.append(parse_operand(tokens, names))
        tokens.accept(",")
    return Vector(tuple(elements))


def _parse_memory(tokens: Tokens, names: Mapping[str, Register]) -> Memory:
    base = _parse_simple(tokens, names)
    offset = _parse_offset(tokens)
    if isinstance(base, Symbol):
        base, offset = Symbol(base.name), base.offset + offset
    coordinates = _parse_simple(tokens, names) if tokens.accept(",") else None
    tokens.expect("]")
    return Memory(base, offset, coordinates)


def _parse_offset(tokens: Tokens) -> int:
    """`+8`, `+-8`, `-8` or nothing."""
    sign = 1
    if tokens.accept("+"):
        sign = -1 if tokens.accept("-") else 1
    elif tokens.accept("-"):
        sign = -1
    else:
        return 0
    return sign * parse_number(tokens.next())[0]

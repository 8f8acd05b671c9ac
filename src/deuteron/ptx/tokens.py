"""Cuts PTX text into tokens: words, numbers, strings and single characters of punctuation, each with its line.

    ld.global.b32 %r2, [%rd4+8];   ->   "ld.global.b32" "%r2" "," "[" "%rd4" "+" "8" "]" ";"

An opcode is one word, dots and `::` included. Comments and white space are dropped.
"""

from __future__ import annotations

import re
import struct

from deuteron.errors import IRError

WORD = r"\.?[A-Za-z_%$][\w$]*(?:(?:\.|::)[\w$]+)*"
NUMBER = r"0[fFdD][0-9a-fA-F]+|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\d+U?"
_PATTERN = re.compile(rf'//[^\n]*|/\*.*?\*/|(\n)|[ \t\r]+|({NUMBER}|{WORD}|"[^"]*"|[^\s])', re.DOTALL)


class Tokens:
    """A cursor over the tokens of a text."""

    def __init__(self, text: str):
        self.texts: list[str] = []
        self.lines: list[int] = []
        line = 1
        for match in _PATTERN.finditer(text):
            newline, token = match.groups()
            if token is not None:
                self.texts.append(token)
                self.lines.append(line)
            elif newline is not None:
                line += 1
            elif match[0].startswith("/*"):
                line += match[0].count("\n")
        self.texts.append("")
        self.lines.append(line)
        self.index = 0

    @property
    def peek(self) -> str:
        """The next token; empty at the end."""
        return self.texts[self.index]

    @property
    def line(self) -> int:
        return self.lines[self.index]

    def next(self) -> str:
        if not self.peek:
            raise self.error("unexpected end of the text")
        self.index += 1
        return self.texts[self.index - 1]

    def accept(self, text: str) -> bool:
        if self.texts[self.index] != text:
            return False
        self.index += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected '{text}', found '{self.peek}'")

    def skip_line(self, line: int) -> list[str]:
        """The tokens that are left on this line."""
        start = self.index
        while self.line == line and self.peek:
            self.index += 1
        return self.texts[start : self.index]

    def skip_braces(self) -> None:
        """Pass over `{ ... }`."""
        self.expect("{")
        depth = 1
        while depth:
            if not self.peek:
                raise self.error("unbalanced '{'")
            depth += {"{": 1, "}": -1}.get(self.next(), 0)

    def error(self, message: str) -> IRError:
        return IRError(f"PTX line {self.line}: {message}")


def is_number(token: str) -> bool:
    return token[:1].isdigit()


def parse_number(token: str) -> tuple[int, str | None]:
    """The value as an integer, and `f32` or `f64` where the integer is the bit pattern of a float."""
    if token[:2] in ("0f", "0F"):
        return int(token[2:], 16), "f32"
    if token[:2] in ("0d", "0D"):
        return int(token[2:], 16), "f64"
    if "." in token:
        return struct.unpack("<Q", struct.pack("<d", float(token)))[0], "f64"
    return int(token.rstrip("U"), 0), None

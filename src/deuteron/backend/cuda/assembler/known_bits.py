"""Which bits of the registers of a PTX text an assembler may know without running it.

    ld.param.b32  %r1, [x];        known_bits(text, names)["%r1"]     NOTHING
    or.b32        %r2, %r1, 1;                              "%r2"     Known(ones=1, zeros=0)
    shl.b32       %r3, %r2, 1;                              "%r3"     Known(ones=2, zeros=1)
    popc.b32      %r4, %r1;                                 "%r4"     ANYTHING

What is loaded is not known. Of what has one of several values, a select or a register that several instructions write,
all may be known that is known of any: which one it is may be known as well. Bits that may be known to be one, and to be
zero, count as both; so does every bit of an instruction without a rule here.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

_Instruction = tuple[str, str, str]  # what it does, what it writes, what it reads
_WORD = (1 << 64) - 1
_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+(\{[^}]*\}|%\w+(?:\|%\w+)?),\s*([^;]*);", re.MULTILINE)
_REGISTER = re.compile(r"%(?:r|rs|rd)\d+")
_SPECIAL_REGISTER = re.compile(r"%(?!(?:r|rs|rd)\d)[a-z_.]+\w*")
_NUMBER = re.compile(r"-?\d+")
_SUFFIX_BITS = re.compile(r"\.[busf](8|16|32|64)\b")


@dataclass(frozen=True)
class Known:
    """Bits of a register that may be known to be one, and those that may be known to be zero."""

    ones: int = 0
    zeros: int = 0

    @property
    def num_low(self) -> int:
        """How many of the lowest bits may be known, one after the other."""
        unknown = ~(self.ones | self.zeros) & _WORD
        return (unknown & -unknown).bit_length() - 1 if unknown else 64

    @property
    def lowest_one(self) -> int | None:
        """The place of the lowest bit that may be one, where that and all below may be known."""
        return (self.ones & -self.ones).bit_length() - 1 if self.ones & ((1 << self.num_low) - 1) else None

    def is_clear(self, num_bits: int) -> bool:
        """Whether none of the lowest bits counts as one and as zero."""
        return not self.ones & self.zeros & ((1 << num_bits) - 1)

    def joined(self, other: Known) -> Known:
        return Known(self.ones | other.ones, self.zeros | other.zeros)


NOTHING = Known()
ANYTHING = Known(_WORD, _WORD)


def constant(value: int) -> Known:
    return Known(value & _WORD, ~value & _WORD)


def _low(value: int, num_bits: int) -> Known:
    """The lowest bits are those of a number."""
    mask = (1 << num_bits) - 1
    return Known(value & mask, ~value & mask)


def _and(a: Known, b: Known) -> Known:
    return Known(a.ones & b.ones, a.zeros | b.zeros)


def _or(a: Known, b: Known) -> Known:
    return Known(a.ones | b.ones, a.zeros & b.zeros)


def _xor(a: Known, b: Known) -> Known:
    return Known(a.ones & b.zeros | a.zeros & b.ones, a.ones & b.ones | a.zeros & b.zeros)


def _not(a: Known) -> Known:
    return Known(a.zeros, a.ones)


def _low_of(compute: Callable[[int, int], int], a: Known, b: Known, num_bits: int) -> Known:
    """Low bits of a result that depend on as many low bits of the operands."""
    if a.is_clear(num_bits) and b.is_clear(num_bits):
        return _low(compute(a.ones, b.ones), num_bits)
    return Known((1 << num_bits) - 1, (1 << num_bits) - 1)


def _add(a: Known, b: Known) -> Known:
    return _low_of(operator.add, a, b, min(a.num_low, b.num_low))


def _subtract(a: Known, b: Known) -> Known:
    return _low_of(operator.sub, a, b, min(a.num_low, b.num_low))


def _multiply(a: Known, b: Known) -> Known:
    """As many low bits as of the factor that has fewer, and one more for each factor 2 of the other."""
    return _low_of(operator.mul, a, b, min(a.num_low + _num_twos(b), b.num_low + _num_twos(a), 64))


def _num_twos(known: Known) -> int:
    return known.num_low if known.lowest_one is None else known.lowest_one


def _multiply_add(a: Known, b: Known, c: Known) -> Known:
    return _add(_multiply(a, b), c)


def _shift_left(a: Known, count: Known) -> Known:
    if count.num_low < 32 or not count.is_clear(32):
        return ANYTHING
    places = min(count.ones & 0xFFFFFFFF, 64)
    return Known(a.ones << places & _WORD, (a.zeros << places | (1 << places) - 1) & _WORD)


def _shift_right(a: Known, count: Known) -> Known:
    """What comes in from above is not taken to be known."""
    if count.num_low < 32 or not count.is_clear(32):
        return ANYTHING
    places = min(count.ones & 0xFFFFFFFF, 64)
    return Known(a.ones >> places, a.zeros >> places)


def _either(a: Known, b: Known, *_: Known) -> Known:
    return a.joined(b)


def _same(a: Known, *_: Known) -> Known:
    """Of a shuffle as well: another thread's value is one of the same register."""
    return a


def _nothing(*_: Known) -> Known:
    return NOTHING


def _quotient(a: Known, b: Known) -> Known:
    """Also a remainder."""
    return NOTHING if NOTHING in (a, b) else ANYTHING


RULES: dict[str, Callable[..., Known]] = {
    "mov": _same,
    "cvt": _same,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "neg": lambda a: _subtract(constant(0), a),
    "add": _add,
    "sub": _subtract,
    "shl": _shift_left,
    "shr": _shift_right,
    "selp": _either,
    "min": _either,
    "max": _either,
    "div": _quotient,
    "rem": _quotient,
    "shfl": _same,
    "ld": _nothing,
    "atom": _nothing,
    "mul": _multiply,
    "mad": _multiply_add,
}
# The forms that the rules are for.
_TAKEN = re.compile(
    r"mov\.[bus](16|32|64)|cvt\.[us]\d+\.[us]\d+|(and|or|xor|not|shl)\.b\d+|shr\.[us]\d+|selp\.b\d+"
    r"|(neg|add|sub|min|max|div|rem)\.[us]\d+|(mul|mad)\.(lo|wide)\.[us]\d+"
    r"|shfl\.sync\.\w+\.b32|ld\.(param|global|shared)\b.*|atom\..*"
)


@dataclass(frozen=True)
class _Definition:
    """One instruction that writes a register: the rule for its bits, and what it reads."""

    rule: Callable[..., Known] | None
    operands: tuple[str, ...] = ()
    num_bits: int = 64

    def bits(self, known: dict[str, Known]) -> Known:
        if self.rule is None:
            return ANYTHING
        found = self.rule(*(_operand(text, known) for text in self.operands))
        mask = (1 << self.num_bits) - 1
        return Known(found.ones & mask, found.zeros & mask)


def _operand(text: str, known: dict[str, Known]) -> Known:
    if _NUMBER.fullmatch(text):
        return constant(int(text))
    return known.get(text, NOTHING if _SPECIAL_REGISTER.fullmatch(text) else ANYTHING)


def known_bits(ptx: str, wanted: Iterable[str]) -> dict[str, Known]:
    """What may be known of these registers, and of those that they are computed from.

    All start with nothing; what more is known of one goes on to those that read it, until nothing is added.
    """
    definitions = _slice(_writers(ptx), wanted)
    readers = _readers(definitions)
    known = dict.fromkeys(definitions, NOTHING)
    waiting = dict.fromkeys(definitions)
    while waiting:
        name = next(iter(waiting))
        del waiting[name]
        bits = reduce(Known.joined, (one.bits(known) for one in definitions[name]), known[name])
        if bits != known[name]:
            known[name] = bits
            waiting.update(dict.fromkeys(readers.get(name, ())))
    return known


def _slice(writers: dict[str, list[_Instruction]], wanted: Iterable[str]) -> dict[str, list[_Definition]]:
    """The definitions that these registers depend on, operands first where there is no loop."""
    found: dict[str, list[_Definition]] = {}
    left = list(wanted)
    while left:
        name = left.pop()
        if name in writers and name not in found:
            found[name] = [_definition(*writer) for writer in writers[name]]
            left.extend(operand for one in found[name] for operand in one.operands)
    return dict(reversed(found.items()))


def _writers(ptx: str) -> dict[str, list[_Instruction]]:
    """The instructions that write each register; few of them are looked into."""
    found: dict[str, list[_Instruction]] = {}
    for instruction in _INSTRUCTION.findall(ptx):
        for name in _REGISTER.findall(instruction[1]):
            found.setdefault(name, []).append(instruction)
    return found


def _definition(opcode: str, destination: str, sources: str) -> _Definition:
    is_packed = opcode.startswith("mov") and "{" in destination + sources
    if is_packed or not _TAKEN.fullmatch(opcode):
        return _Definition(None)
    operands = tuple(part.strip() for part in sources.split(","))
    return _Definition(RULES[opcode.partition(".")[0]], operands, _num_bits(opcode))


def _num_bits(opcode: str) -> int:
    """How many bits of the result are those that the rule gives: the type's, or of a conversion the narrower's."""
    sizes = [int(size) for size in _SUFFIX_BITS.findall(opcode)]
    return 2 * sizes[0] if ".wide." in opcode else min(sizes, default=64)


def _readers(definitions: dict[str, list[_Definition]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, written in definitions.items():
        for definition in written:
            for operand in definition.operands:
                found.setdefault(operand, []).append(name)
    return found

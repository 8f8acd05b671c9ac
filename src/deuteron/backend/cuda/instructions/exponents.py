"""Narrow integers as floating-point numbers without conversions, which take four or eight times as long as arithmetic.

The bits of an integer are put below the exponent of a number of which the last of them counts 1; the number without
them is subtracted:

    two of 4 bits of a byte, as f16         x = prmt(0x5464, word, ...) & 0x54f0640f            (1024 + u, 64 + v)
                                            x - (1024, 64)
    two of 8 bits with a sign as bf16,      x = prmt(0x43, word, ...)
    which has 7 bits below the exponent     (x & 0xff7fff7f) - (x & 0xff80ff80)                 128 + 7 bits, 128 or 256
    one of 8 bits as f32                    prmt(0x4b000000, word ^ 0x80808080, ...) - (2 ** 23 + 128)

The highest bit is inverted where it is the sign's, which adds half of the range. Every step is exact. Integers are
taken from the words of which they are fields (`fields.py`): shifts, masks and added constants cost nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deuteron.backend.cuda.instructions.differences import differences_below_exponents
from deuteron.backend.llvm.builder import Builder, Touches
from deuteron.backend.llvm.fields import Field, number_of
from deuteron.backend.llvm.types import Value, bit_width, const, vector, vector_const

WORD_BITS, HALF_BITS, BYTE_BITS = 32, 16, 8
_ONES = (1 << WORD_BITS) - 1
_AND_XOR = 0xF0 & 0xCC ^ 0xAA  # the table of a & b ^ c that `lop3` takes


@dataclass(frozen=True)
class _Format:
    """A floating-point type: how many bits are below its exponent, the bits of that, and the exponent of 1."""

    digits: int
    exponent_bits: int
    bias: int

    def has_exponent(self, power: int) -> bool:
        return power + self.bias < (1 << self.exponent_bits) - 1

    def power_of_two(self, power: int) -> int:
        """Its bits."""
        return power + self.bias << self.digits


_FORMATS = {"half": _Format(10, 5, 15), "bfloat": _Format(7, 8, 127), "float": _Format(23, 8, 127)}


def convert(b: Builder, values: Sequence[Value], type: str, is_signed: bool) -> dict[Value, Value]:
    """What some of these scalar integers become; the others need an instruction that converts."""
    if type not in _FORMATS:
        return {}
    exponents = _Exponents(b, type)
    numbers = {value: number_of(b, value, is_signed) for value in values if not value.is_constant}
    fitting = [value for value, number in numbers.items() if exponents.fits(number)]
    if type == "float":
        return {value: exponents.single(numbers[value]) for value in fitting} if len(fitting) > 1 else {}
    results = differences_below_exponents(b, values, type, is_signed)  # of none of the others
    bytes = [value for value, number in numbers.items() if exponents.is_byte(number)]
    signed, unsigned = ([v for v in bytes if numbers[v].is_signed == has_sign] for has_sign in (True, False))
    kinds = (exponents.pair, fitting), (exponents.pair_of_bytes, signed), (exponents.pair_of_bytes, unsigned)
    for make, taken in kinds:
        for pair in zip(taken[::2], taken[1::2], strict=False):
            made = make([numbers[value] for value in pair])
            results.update((value, b.extractelement(made, index)) for index, value in enumerate(pair))
    return results


class _Exponents:
    """Emits into a builder; what several numbers need of a word is computed once."""

    def __init__(self, b: Builder, type: str):
        self._b = b
        self._type = type
        self._format = _FORMATS[type]
        self._words: dict[tuple[str, Value, int], Value] = {}

    def fits(self, number: Field) -> bool:
        """Whether all bits have room below an exponent, and what is added is exact as well."""
        format = self._format
        if not _is_in_one_word(number) or number.width > format.digits:
            return False
        if number.offset:
            return not number.up and abs(number.offset) <= 1 << format.digits - 1
        return format.has_exponent(format.digits + number.up)

    def is_byte(self, number: Field) -> bool:
        """Whether these are eight bits, and there is room for seven."""
        is_plain = _is_in_one_word(number) and not number.up and not number.offset
        return is_plain and number.width == BYTE_BITS == self._format.digits + 1

    def pair(self, numbers: Sequence[Field]) -> Value:
        """Two as f16 or bf16."""
        numbers = [self._placed(number, self._format.digits) for number in numbers]
        lows = [number.shift % BYTE_BITS for number in numbers]
        masks = [(1 << number.width) - 1 << low for number, low in zip(numbers, lows, strict=True)]
        powers = [self._format.digits - low + number.up for number, low in zip(numbers, lows, strict=True)]
        if _are_in_bytes_of_a_word(numbers) and not any(self._exponent(power) & 0xFF for power in powers):
            words = [replace(number, word=self._without_signs(number)) for number in numbers]
            pair = self._masked(self._with_exponents(words, powers), masks)
        else:
            signs = [_sign(number) << low for number, low in zip(numbers, lows, strict=True)]
            pair = self._below_exponents(self._gathered(numbers), masks, signs, powers)
        zeros = [_zero(number, power) for number, power in zip(numbers, powers, strict=True)]
        return self._b.fadd(pair, vector_const(self._type, zeros), flags="")

    def pair_of_bytes(self, numbers: Sequence[Field]) -> Value:
        """Two of eight bits as bf16: the highest is the difference of two exponents."""
        numbers = [self._placed(number, BYTE_BITS) for number in numbers]
        power, masks = self._format.digits, (0x7F, 0x80)
        if _are_in_bytes_of_a_word(numbers):
            bits = self._with_exponents(numbers, [power] * 2)
            low, high = (self._masked(bits, [mask] * 2) for mask in masks)
        else:
            bits = self._gathered(numbers)
            low, high = (self._below_exponents(bits, [mask] * 2, [0] * 2, [power] * 2) for mask in masks)
        if numbers[0].is_signed:
            return self._b.fsub(low, high, flags="")
        less = self._b.fadd(low, const(low.type, -2 << power), flags="")
        return self._b.fadd(less, high, flags="")

    def single(self, number: Field) -> Value:
        """One as f32."""
        number = self._in_word(number)
        if _is_bytes(number):
            power, first = self._format.digits + number.up, 4 + number.shift // BYTE_BITS
            second = 0 if number.width == BYTE_BITS else first + 1
            bits = self._permuted(self._exponent(power), self._without_signs(number), (first, second, 2, 3))
        else:
            number = self._moved(number, HALF_BITS if number.shift >= HALF_BITS else number.shift, self._format.digits)
            power = self._format.digits - number.shift + number.up
            mask = (1 << number.width) - 1 << number.shift
            bits = self._replaced(number.word, mask, self._exponent(power) ^ _sign(number) << number.shift)
        return self._b.fadd(self._b.bitcast(bits, "float"), const("float", _zero(number, power)), flags="")

    # -- where the bits are ---

    def _in_word(self, number: Field) -> Field:
        """In a word of 32 bits."""
        word, part = number.word, number.shift // WORD_BITS * WORD_BITS
        if bit_width(word.type) > WORD_BITS:
            word = self._b.trunc(self._once("lshr", word, part), "i32")
        return replace(number, word=self._wide(word), shift=number.shift - part)

    def _wide(self, word: Value) -> Value:
        key = "zext", word, WORD_BITS
        if key not in self._words:
            self._words[key] = self._b.zext(word, "i32")
        return self._words[key]

    def _placed(self, number: Field, room: int) -> Field:
        """In a word of 32 bits in which the bits have room, counted from the byte in which they begin."""
        number = self._in_word(number)
        low = number.shift % BYTE_BITS
        return self._moved(number, low, number.shift - low + room)

    def _moved(self, number: Field, count: int, end: int) -> Field:
        """So many bits further down, if they end after that one."""
        if number.shift + number.width <= end:
            return number
        return replace(number, word=self._once("lshr", number.word, count), shift=number.shift - count)

    def _gathered(self, numbers: Sequence[Field]) -> Value:
        """The bytes in which two numbers are, each pair a half of a word; what else is in them is still there."""
        first, second = numbers
        low, high = (number.shift // BYTE_BITS for number in numbers)
        apart = 0 if first.word == second.word else 4
        places = (low, min(low + 1, 3), high + apart, min(high + 1, 3) + apart)
        return self._b.call("i32", "llvm.nvvm.prmt", first.word, second.word, const("i32", _selector(places)))

    def _permuted(self, constant: int, word: Value, bytes: Sequence[int]) -> Value:
        """Bytes of a constant, and from number 4 on of a word. (ptxas keeps a constant that comes first in a register,
        and would keep the selectors there otherwise.)
        """
        return self._b.call("i32", "llvm.nvvm.prmt", const("i32", constant), word, const("i32", _selector(bytes)))

    def _with_exponents(self, numbers: Sequence[Field], powers: Sequence[int]) -> Value:
        """The bytes of one word in which two numbers are, each below an exponent."""
        constant = sum(self._exponent(power) >> BYTE_BITS << BYTE_BITS * at for at, power in enumerate(powers))
        first, second = (4 + number.shift // BYTE_BITS for number in numbers)
        return self._permuted(constant, numbers[0].word, (first, 0, second, 1))

    def _without_signs(self, number: Field) -> Value:
        """The word with the highest bits of all its fields of that width inverted, if they are signs."""
        ones = sum(_sign(number) << at for at in range(number.shift % number.width, WORD_BITS, number.width))
        return self._once("xor", number.word, ones & _ONES)

    def _once(self, opcode: str, word: Value, operand: int) -> Value:
        if not operand:
            return word
        key = opcode, word, operand
        if key not in self._words:
            emit = self._b.xor if opcode == "xor" else self._b.lshr
            self._words[key] = emit(word, const(word.type, operand))
        return self._words[key]

    # -- numbers of bits ---

    def _exponent(self, power: int) -> int:
        return self._format.power_of_two(power)

    def _masked(self, bits: Value, masks: Sequence[int]) -> Value:
        """What masks of bytes leave of each half besides the exponent."""
        low, high = (mask | 0xFF00 for mask in masks)
        mask = low | high << HALF_BITS
        kept = bits if mask == _ONES else self._b.and_(bits, const("i32", mask))
        return self._b.bitcast(kept, vector(self._type, 2))

    def _below_exponents(self, bits: Value, masks: Sequence[int], signs: Sequence[int], powers: Sequence[int]) -> Value:
        """What masks leave of each half, below an exponent, the signs inverted."""
        flipped = [self._exponent(power) ^ sign for power, sign in zip(powers, signs, strict=True)]
        mask, ones = (low | high << HALF_BITS for low, high in (masks, flipped))
        return self._b.bitcast(self._replaced(bits, mask, ones), vector(self._type, 2))

    def _replaced(self, bits: Value, mask: int, ones: int) -> Value:
        """bits & mask ^ ones. (ptxas makes one instruction of the two as well, of which one constant is in a register,
        but puts it there again for each; of one that is written as such the register stays.)
        """
        text = f"lop3.b32 $0, $1, {mask:#x}, {ones:#x}, {_AND_XOR:#x};"
        return self._b.assembly(Touches.NOTHING, "i32", text, "=r,r", bits)


def _is_in_one_word(number: Field) -> bool:
    """Of 32 bits, which is no condition."""
    is_together = number.shift % WORD_BITS + number.width <= WORD_BITS
    return is_together and bit_width(number.word.type) >= BYTE_BITS


def _is_bytes(number: Field) -> bool:
    return number.shift % BYTE_BITS == 0 and number.width in (BYTE_BITS, HALF_BITS)


def _are_in_bytes_of_a_word(numbers: Sequence[Field]) -> bool:
    """Whether one word has both, each within a byte, and signs of both can be inverted at once."""
    first, second = numbers
    are_within = all(number.shift % BYTE_BITS + number.width <= BYTE_BITS for number in numbers)
    return are_within and first.word == second.word and _signs(first) == _signs(second)


def _signs(number: Field) -> tuple[bool, int, int]:
    return number.is_signed, number.width, number.shift % number.width


def _sign(number: Field) -> int:
    """The bit of the sign, of those of the number."""
    return number.is_signed << number.width - 1


def _zero(number: Field, power: int) -> int:
    """What the bits are added to, negative: the power of two, and half of the range of a number with a sign."""
    return number.offset - (1 << power) - (_sign(number) << number.up)


def _selector(bytes: Sequence[int]) -> int:
    """Of `prmt`: which byte of two words goes where."""
    return sum(byte << 4 * index for index, byte in enumerate(bytes))

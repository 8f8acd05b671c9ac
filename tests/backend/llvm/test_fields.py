"""Fields of words: what they say of an integer is what its instructions compute."""

from hypothesis import given, settings
from hypothesis import strategies as st

from deuteron.backend.llvm.fields import Field, field_of, number_of
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import bit_width, const

SIZES = (8, 16, 32, 64)


def _builder():
    return Module("fields").function("f", "void", [("i32", "word"), ("i8", "byte")])


def _signed(bits, size):
    return bits - (bits >> size - 1 << size)


def _step(b, value, bits, opcode, number):
    """An instruction on a value, and the bits that it gives."""
    size = bit_width(value.type)
    if opcode in SIZES:
        target = f"i{opcode}"
        if opcode < size:
            return b.trunc(value, target), bits & (1 << opcode) - 1
        if number % 2:
            return b.sext(value, target), _signed(bits, size) & (1 << opcode) - 1
        return b.zext(value, target), bits
    amount = number % size if opcode in ("shl", "lshr", "ashr") else number & (1 << size) - 1
    x = _signed(bits, size) if opcode == "ashr" else bits
    made = getattr(b, opcode)(value, const(value.type, amount))
    computed = {
        "and_": x & amount,
        "shl": x << amount,
        "lshr": x >> amount,
        "ashr": x >> amount,
        "add": x + amount,
        "sub": x - amount,
    }[opcode]
    return made, computed & (1 << size) - 1


def _read(field: Field, words):
    bits = words[field.word] >> field.shift & (1 << field.width) - 1
    return (_signed(bits, field.width) if field.is_signed else bits) * (1 << field.up) + field.offset


NUMBERS = st.one_of(st.integers(0, 63), st.sampled_from([1, 7, 15, 0xF0, 0xFF, 0x7F, 0x3FC]), st.integers(0, 2**32 - 1))
STEPS = st.tuples(st.sampled_from(["and_", "shl", "lshr", "ashr", "add", "sub", *SIZES]), NUMBERS)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(STEPS, max_size=6), st.booleans())
def test_a_field_is_what_is_computed(word, steps, is_signed):
    b = _builder()
    value, bits = b.parameters[0], word
    words = {value: bits}
    for opcode, number in steps:
        value, bits = _step(b, value, bits, opcode, number)
        words[value] = bits
    expected = _signed(bits, bit_width(value.type)) if is_signed else bits
    assert _read(number_of(b, value, is_signed), words) == expected


def test_of_bytes_nibbles_are_found():
    b = _builder()
    word = b.parameters[0]
    byte = b.trunc(b.lshr(word, const("i32", 16)), "i8")
    low = b.ashr(b.shl(byte, const("i8", 4)), const("i8", 4))
    assert number_of(b, low, True) == Field(word, 16, 4, 8, True)
    assert number_of(b, b.ashr(byte, const("i8", 4)), True) == Field(word, 20, 4, 8, True)
    moved = b.sub(b.and_(word, const("i32", 15)), const("i32", 8))
    assert number_of(b, moved, True) == Field(word, 0, 4, 32, offset=-8)


def test_what_wraps_is_no_field():
    b = _builder()
    byte = b.parameters[1]
    moved = b.add(byte, const("i8", 100))
    assert field_of(b, moved).offset == 100
    assert number_of(b, moved, True) == Field(moved, 0, 8, 8, True)

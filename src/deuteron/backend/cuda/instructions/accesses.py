"""Loads and stores of vectors of elements (as bits) at one address, in global or shared memory.

    load(b, "i16", address, 8)                           ld.global.v4.b32
    load(b, "i16", address, 8, mask, other)              @p ld.global.v4.b32 into registers that hold `other`
    store(b, elements, address, mask)                    @p st.shared.v2.b32

Without mask, modifiers and order they are LLVM's own; else assembly, since LLVM has no predicated access. Modifiers, as
PTX writes them, come between `ld.global` and the type: `.cg`, `.L1::evict_first.L2::cache_hint`, of which the L2 has
its policy as the last operand; the order comes before `.global`: `.volatile`, `.acquire.gpu`.

A constant `other` is written into the registers by the assembly itself. Given as an operand LLVM has one register of it
for all loads, which becomes the first of the last one's, and copies that at the end of a loop: which waits for it.

Less than 32 bits are loaded by it into a register of 32, of which the rest is 0, as LLVM is told: it would clear that
again after a load into 16, and ptxas moves 16 bits about.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.backend.gpu.elements import SHARED
from deuteron.backend.gpu.words import (
    CONSTRAINTS,
    join,
    pack,
    split,
    struct_members,
    struct_type,
    unpack,
    word_type,
)
from deuteron.backend.llvm.builder import Builder, Touches
from deuteron.backend.llvm.types import Value, bit_width, const, integer_of, vector

VOLATILE = ".volatile"
NARROW, WIDE = "i16", "i32"
NEXT_LINE = r"\0A\09"


def load(
    b: Builder,
    type: str,
    address: Value,
    count: int,
    mask: Value | None = None,
    other: Sequence[Value] = (),
    modifiers: str = "",
    order: str = "",
    policy: Value | None = None,
) -> list[Value]:
    """`count` elements of an integer type; where the mask is off, `other` or 0."""
    if mask is None and not modifiers and not order:
        return _plain_load(b, type, address, count)
    word, size = word_type(type, count), _num_words(type, count)
    held = WIDE if word == NARROW else word
    words = _words_where_off(b, mask, other, held, size)
    results = [f"${index}" for index in range(size)]
    guard, hint, given = _guard_and_policy(size + 1, mask, policy)
    moves = [_move(result, one) for result, one in zip(results, words, strict=False) if one.is_constant]
    access = f"{guard}ld{_instruction(address, modifiers, order, type, count)} {_operands(results)}, [${size}]{hint};"
    tied = {str(index): one for index, one in enumerate(words) if not one.is_constant}
    inputs = [address, *given, *tied.values()]
    constraints = [f"={'&' if moves else ''}{CONSTRAINTS[held]}"] * size + [_address(address)]
    constraints += [*map(_constraint, given), *tied]
    text = NEXT_LINE.join([*moves, access])
    touches = Touches.MEMORY if order else Touches.READS
    flags = f"range({held} 0, {1 << bit_width(type) * count})" if held != word else ""
    result = b.assembly(touches, struct_type(held, size), text, ",".join(constraints), *inputs, flags=flags)
    loaded = struct_members(b, result, held, size)
    return unpack(b, loaded if held == word else [b.trunc(loaded[0], word)], type, count)


def _words_where_off(b: Builder, mask: Value | None, other: Sequence[Value], held: str, size: int) -> list[Value]:
    """What the registers of a load hold before it; none without a mask."""
    if mask is None:
        return []
    if not other:
        return [const(held, 0)] * size
    numbers = [integer_of(value) for value in other]
    if None in numbers:
        return [_widened(b, one, held) for one in pack(b, other)]
    per_word = len(other) // size
    words = (numbers[first : first + per_word] for first in range(0, len(numbers), per_word))
    return [const(held, _joined(word, bit_width(other[0].type))) for word in words]


def _joined(numbers: Sequence[int], bits: int) -> int:
    return sum(number % (1 << bits) << bits * place for place, number in enumerate(numbers))


def _move(result: str, word: Value) -> str:
    return f"mov.b{bit_width(word.type)} {result}, {word.text};"


def _plain_load(b: Builder, type: str, address: Value, count: int) -> list[Value]:
    word, size = word_type(type, count), _num_words(type, count)
    whole = f"i{bit_width(type) * count}" if size == 1 else vector(word, size)
    loaded = b.load(whole, address, align=_bytes(type, count))
    return unpack(b, [b.zext(loaded, word)] if size == 1 else split(b, loaded, size), type, count)


def _num_words(type: str, count: int) -> int:
    return max(bit_width(type) * count // bit_width(word_type(type, count)), 1)


def _widened(b: Builder, word: Value, held: str) -> Value:
    return word if word.type == held else b.zext(word, held)


def store(
    b: Builder,
    elements: Sequence[Value],
    address: Value,
    mask: Value | None = None,
    modifiers: str = "",
    order: str = "",
    policy: Value | None = None,
) -> None:
    """Store elements of an integer type, where the mask is on."""
    type, count = elements[0].type, len(elements)
    words = pack(b, elements)
    if mask is None and not modifiers and not order:
        whole = b.trunc(words[0], f"i{bit_width(type) * count}") if len(words) == 1 else join(b, words)
        b.store(whole, address, align=_bytes(type, count))
        return
    sources = [f"${index + 1}" for index in range(len(words))]
    guard, hint, given = _guard_and_policy(len(words) + 1, mask, policy)
    text = f"{guard}st{_instruction(address, modifiers, order, type, count)} [$0], {_operands(sources)}{hint};"
    constraints = [_address(address), *(CONSTRAINTS[word.type] for word in words), *map(_constraint, given)]
    b.assembly(Touches.MEMORY, "void", text, ",".join(constraints), address, *words, *given)


def _guard_and_policy(first: int, mask: Value | None, policy: Value | None) -> tuple[str, str, list[Value]]:
    """What comes before and after an access, and the operands, from number `first` on, that they name."""
    given = [value for value in (mask, policy) if value is not None]
    guard = f"@${first} " if mask is not None else ""
    return guard, f", ${first + len(given) - 1}" if policy is not None else "", given


def _constraint(operand: Value) -> str:
    return "b" if operand.type == "i1" else "l"


def _instruction(address: Value, modifiers: str, order: str, type: str, count: int) -> str:
    """What follows `ld` or `st`: `.global.v4.b32`."""
    total = bit_width(type) * count
    bits = bit_width(type) if bit_width(type) >= 32 else min(total, 32)
    vector_size = f".v{total // bits}" if total > bits else ""
    return f"{order}{_space(address)}{modifiers}{vector_size}.b{bits}"


def _space(address: Value) -> str:
    return ".shared" if address.type == SHARED else ".global"


def _address(address: Value) -> str:
    return "r" if address.type == SHARED else "l"


def _operands(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _bytes(type: str, count: int) -> int:
    return bit_width(type) * count // 8

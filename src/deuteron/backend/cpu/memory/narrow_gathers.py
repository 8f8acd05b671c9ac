"""Gathers elements of 8 and 16 bits through the words of 32 bits that hold them, for which there is an instruction.

    address   ...6 (16 bits)        the word at ...4, shifted by 16

An aligned word lies in one page, so that no more pages are touched; what it holds beside the element is shifted out or
cut off. Lanes that are off read nothing. Of more lanes than a register has words a function is called, which all
accesses of a type share: there, lanes are seldom accessed one by one.
"""

from __future__ import annotations

from deuteron.backend.cpu.memory.lane_loops import lane_function
from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, const, vector, width

_WORD = "i32"
_WORD_BYTES = 4
_WORDS = 16  # of a register
_BYTE_BITS_LOG2 = 3


def gather_narrow(b: Builder, pointers: Value, mask: Value, type: str) -> Value:
    """The elements that the pointers of the lanes that are on point to; 0 in the others."""
    lanes = width(pointers.type)
    if lanes <= _WORDS:
        return _gathered(b, pointers, mask, type)
    result = vector(type, lanes)
    name = f"gather_words.{mangle(result)}"
    if not b.module.has_function(name):
        own, given = lane_function(b, name, result, [pointers.type, mask.type])
        own.ret(_gathered_in_parts(own, *given, type))
    return b.call(result, name, pointers, mask)


def _gathered_in_parts(b: Builder, pointers: Value, mask: Value, type: str) -> Value:
    places = [range(first, first + _WORDS) for first in range(0, width(mask.type), _WORDS)]
    parts = [_gathered(b, *(b.shufflevector(each, each, part) for each in (pointers, mask)), type) for part in places]
    while len(parts) > 1:
        parts = [_joined(b, *parts[number : number + 2]) for number in range(0, len(parts), 2)]
    return parts[0]


def _joined(b: Builder, first: Value, second: Value) -> Value:
    return b.shufflevector(first, second, range(2 * width(first.type)))


def _gathered(b: Builder, pointers: Value, mask: Value, type: str) -> Value:
    lanes = width(pointers.type)
    addresses, words = vector("i64", lanes), vector(_WORD, lanes)
    to_word = const(addresses, -_WORD_BYTES)
    holders = b.intrinsic("llvm.ptrmask", pointers.type, pointers, to_word, overloads=[pointers.type, addresses])
    found = b.masked_gather(words, holders, _WORD_BYTES, mask)
    places = b.and_(b.trunc(b.ptrtoint(pointers, addresses), words), const(words, _WORD_BYTES - 1))
    shifted = b.lshr(found, b.shl(places, const(words, _BYTE_BITS_LOG2)))
    return b.trunc(shifted, vector(type, lanes))

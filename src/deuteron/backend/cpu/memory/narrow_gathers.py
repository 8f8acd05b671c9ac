"""Gathers elements of 8 and 16 bits through the words of 32 bits that hold them, for which there is an instruction.

    address   ...6 (16 bits)        the word at ...4, shifted by 16
              ...7                  the word at ...5: the one at ...4 ends within the element

An aligned word lies in one page, and so do the three bytes before the last one of an element, if that is the first of a
word: no more pages are touched. What a word holds beside the element is shifted out or cut off. Lanes that are off read
nothing. Of more lanes than a register has words a function is called, which all
accesses of a type share: there, lanes are seldom accessed one by one. Mostly they lie in two runs of neighbours, as
those of columns that wrap around (`columns % N`), which are loaded under two masks:

    address   6, 8, 10, 12, 0, 2, 4, 6        four from 6 on, and four from 0 on
"""

from __future__ import annotations

from deuteron.backend.cpu.memory.lane_loops import as_word, lane_function, mask_bits, put_in_memory
from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, byte_width, const, vector, vector_const, width, zero
from deuteron.backend.math.vectors import any_lane

_WORD = "i32"
_WORD_BYTES = 4
_WORDS = 16  # of a register
_BYTE_BITS_LOG2 = 3


def gather_narrow(b: Builder, pointers: Value, mask: Value, type: str, has_masked_moves: bool) -> Value:
    """The elements that the pointers of the lanes that are on point to; 0 in the others. `has_masked_moves`: of those
    elements.
    """
    lanes = width(pointers.type)
    if lanes <= _WORDS:
        return _gathered(b, pointers, mask, type)
    result = vector(type, lanes)
    name = f"gather_words.{mangle(result)}"
    if not b.module.has_function(name):
        own, given = lane_function(b, name, result, [pointers.type, mask.type])
        gathered = _gathered_in_runs if has_masked_moves else _gathered_in_parts
        own.ret(gathered(own, *given, type))
    return b.call(result, name, pointers, mask)


def _gathered_in_runs(b: Builder, pointers: Value, mask: Value, type: str) -> Value:
    """Of neighbours from the first lane on, and others from the first one on that is not among those, if these are all
    that are on; else by words.
    """
    lanes, num_bytes, result = width(mask.type), byte_width(type), vector(type, width(mask.type))
    offsets = vector_const("i64", [lane * num_bytes for lane in range(lanes)])
    first = b.extractelement(pointers, 0)
    in_first = b.icmp("eq", pointers, b.gep("i8", first, offsets))
    others = b.and_(mask, b.xor(in_first, const(mask.type, True)))
    bits = mask_bits(b, others)
    number = as_word(b, b.intrinsic("llvm.cttz", bits.type, bits, const("i1", False)))
    lane = b.umin(number, const("i64", lanes - 1))
    start = b.load("ptr", b.gep("ptr", put_in_memory(b, pointers), lane))
    second = b.gep("i8", start, b.mul(lane, const("i64", -num_bytes)))
    in_second = b.icmp("eq", pointers, b.gep("i8", second, offsets))
    are_runs = b.xor(any_lane(b, b.and_(others, b.xor(in_second, const(mask.type, True)))), const("i1", True))
    with b.if_(are_runs, "runs") as branch:
        found = b.masked_load(result, first, num_bytes, b.and_(mask, in_first))
        branch.yield_(b.masked_load(result, second, num_bytes, others, found))
        branch.otherwise()
        branch.yield_(_gathered_in_parts(b, pointers, mask, type))
    return branch.results[0]


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
    within = b.and_(b.ptrtoint(pointers, addresses), const(addresses, _WORD_BYTES - 1))
    places = b.umin(within, const(addresses, _WORD_BYTES - byte_width(type)))
    holders = b.gep("i8", pointers, b.sub(zero(addresses), places))
    found = b.masked_gather(words, holders, 1, mask)
    shifted = b.lshr(found, b.shl(b.trunc(places, words), const(words, _BYTE_BITS_LOG2)))
    return b.trunc(shifted, vector(type, lanes))

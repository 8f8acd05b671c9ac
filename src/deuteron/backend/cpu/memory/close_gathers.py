"""Gathers elements that lie close together: two vectors that hold all of them, and a shuffle.

    addresses   ..00, ..00, ..04, ..04, ..08, ..08      of an image that is enlarged: numbers 0, 0, 1, 1, 2, 2 of what
                                                        two vectors from ..00 on hold

An instruction that gathers takes some 40 cycles for 16 lanes on a Zen 4, and less than looking on processors that are
known to gather fast (`gathers_fast`). What the vectors hold beside the elements is
read as well, but only where it lies in one page of memory with an element that is asked for, so that there is such
memory. Whether elements are that close is looked at each time.
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.intrinsics import VPERMI2PD, VPERMI2PS
from deuteron.backend.llvm.types import Value, byte_width, const, vector, width, zero
from deuteron.backend.math.vectors import all_lanes

_PAGE_BYTES = 4096  # of the smallest pages
_REGISTER_BYTES = 64


def has_shuffles(access: Access) -> bool:
    """Whether there is an instruction that takes any elements of two vectors; narrow ones are widened for it."""
    return access.ctx.target.vector_bits >= 512 and access.lanes == _REGISTER_BYTES // max(4, access.num_bytes)


def gather_close(b: Builder, pointers: Value, mask: Value, type: str, others: Callable[[], Value]) -> Value:
    """The elements that pointers point to, 0 in lanes that are off; `others`: emits what gathers those far apart."""
    lanes, num_bytes = width(pointers.type), byte_width(type)
    addresses = b.ptrtoint(pointers, vector("i64", lanes))
    first, last = b.extractelement(addresses, 0), b.extractelement(addresses, lanes - 1)
    start = b.select(b.extractelement(mask, lanes - 1), b.umin(first, last), first)
    numbers = _numbers(b, b.sub(addresses, b.splat(start, lanes)), num_bytes)
    with b.if_(_are_close(b, numbers, mask, start, num_bytes), "close") as branch:
        found = _taken(b, b.inttoptr(start, "ptr"), numbers, type)
        branch.yield_(b.select(mask, found, zero(found.type)))
        branch.otherwise()
        branch.yield_(others())
    return branch.results[0]


def _numbers(b: Builder, distances: Value, num_bytes: int) -> Value:
    """How many elements apart lanes are; more than any vector holds where that is no whole number."""
    shift = const(distances.type, num_bytes.bit_length() - 1)
    return b.intrinsic("llvm.fshr", distances.type, distances, distances, shift)


def _are_close(b: Builder, numbers: Value, mask: Value, start: Value, num_bytes: int) -> Value:
    """Whether the elements of all lanes that are on, of which the first is one, are in two vectors, which are in one
    page.
    """
    lanes = width(numbers.type)
    are_off = b.xor(mask, const(mask.type, True))
    are_near = all_lanes(b, b.or_(b.icmp("ult", numbers, const(numbers.type, 2 * lanes)), are_off))
    place = b.and_(start, const("i64", _PAGE_BYTES - 1))
    is_in_page = b.icmp("ule", place, const("i64", _PAGE_BYTES - 2 * lanes * num_bytes))
    return b.and_(b.and_(are_near, is_in_page), b.extractelement(mask, 0))


def _taken(b: Builder, start: Value, numbers: Value, type: str) -> Value:
    """Those of the elements of two vectors from an address on that have these numbers."""
    lanes, num_bytes = width(numbers.type), byte_width(type)
    memory, word = vector(f"i{8 * num_bytes}", lanes), f"i{max(32, 8 * num_bytes)}"
    words, floats = vector(word, lanes), vector("float" if word == "i32" else "double", lanes)
    places = [b.gep("i8", start, const("i64", half * lanes * num_bytes)) for half in (0, 1)]
    low, high = (b.bitcast(b.zext(b.load(memory, place, num_bytes), words), floats) for place in places)
    shuffle = VPERMI2PS if word == "i32" else VPERMI2PD
    found = b.call(floats, shuffle, low, b.trunc(numbers, words), high)
    return b.bitcast(b.trunc(b.bitcast(found, words), memory), vector(type, lanes))

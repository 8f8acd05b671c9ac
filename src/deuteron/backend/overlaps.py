"""Whether the arrays that a launch passes are apart where its kernel relies on it (`KernelMetadata.apart`).

    overlap_of(metadata, [a.ctypes.data, b.ctypes.data], [a, b])       None, or the pair of parameters that overlap
    pair.in_words("add")            "arguments 'x' and 'out' of kernel 'add' overlap"

An array is from its lowest to its highest byte. Of an object that only tells an address, and of an address given as a
number, nobody knows where it ends: it overlaps with whatever it has to be apart from, but the null pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deuteron.backend.metadata import Apart, KernelMetadata
from deuteron.backend.spans import EVERYTHING, Span, span_of


def overlap_of(metadata: KernelMetadata, values: Sequence[Any], given: Sequence[Any]) -> Apart | None:
    """The first pair that is not apart, of what is passed for the runtime parameters, and the objects it comes from."""
    if not metadata.apart:
        return None
    numbers = {param.name: number for number, param in enumerate(metadata.runtime_params)}
    spans: dict[int, Span] = {}

    def span(number: int) -> Span:
        if number not in spans:
            spans[number] = _span(values[number], given[number])
        return spans[number]

    for pair in metadata.apart:
        first, second = numbers[pair.first], numbers[pair.second]
        is_same = pair.or_equal and values[first] == values[second]
        if not is_same and _meet(span(first), span(second)):
            return pair
    return None


def _span(address: Any, given: Any) -> Span:
    if not address:
        return Span(0, 0)
    return span_of(given) or EVERYTHING


def _meet(first: Span, second: Span) -> bool:
    if not first.num_bytes or not second.num_bytes:
        return False
    return first.address < second.address + second.num_bytes and second.address < first.address + first.num_bytes

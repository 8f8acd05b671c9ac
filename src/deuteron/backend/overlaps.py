"""Whether the arrays that a launch passes are apart where its kernel relies on it (`KernelMetadata.apart`).

    overlap_of(metadata, [a.ctypes.data, b.ctypes.data], [a, b])       None, or the pair of parameters that overlap
    pair.in_words("add")            "arguments 'x' and 'out' of kernel 'add' overlap"

An array is its elements, not what lies between them. Arrays are apart where they are so from the lowest to the highest
byte, or where their elements take turns:

    x[:, :4], x[:, 4:]        rows of 12 elements        aaaabbbbbbbb aaaabbbbbbbb aaaabbbbbbbb
    x[::2], x[1::2]           a period of 2              ab ab ab ab ab

There is a period, a step of an axis, such that each array touches the same places of all periods, and they are others
than those of the other one. The axes whose steps are multiples of the period make no difference then; along the others
an array is taken from its lowest to its highest byte. Whatever is not found to be apart overlaps.

Of an object that only tells an address, and of an address given as a number, nobody knows where it ends: it overlaps
with whatever it has to be apart from, but the null pointer. Machine code does the same (`launcher/apart.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deuteron.backend.metadata import Apart, KernelMetadata, TileStep
from deuteron.backend.spans import Span, View, view_of

NOTHING = View(0, 0, ((0, 0),))


def overlap_of(metadata: KernelMetadata, values: Sequence[Any], given: Sequence[Any]) -> Apart | None:
    """The first pair that is not apart, of what is passed for the runtime parameters, and the objects it comes from."""
    if not metadata.apart:
        return None
    numbers = {param.name: number for number, param in enumerate(metadata.runtime_params)}
    views: dict[int, View | None] = {}

    def view(number: int) -> View | None:
        if number not in views:
            views[number] = view_of(given[number]) if values[number] else NOTHING
        return views[number]

    given_numbers = dict(zip(numbers, values, strict=False))
    for pair in metadata.apart:
        first, second = numbers[pair.first], numbers[pair.second]
        is_same = pair.or_equal and values[first] == values[second] and _provides(pair, given_numbers)
        if not is_same and not are_apart(view(first), view(second)):
            return pair
    return None


def _provides(pair: Apart, numbers: Mapping[str, Any]) -> bool:
    """Whether the numbers of a launch are such that two arrays may begin at one place."""
    return all(numbers[a] == numbers[b] for a, b in pair.equal) and _are_injective(pair.tiles, numbers)


def _are_injective(tiles: Sequence[Sequence[TileStep]], numbers: Mapping[str, Any]) -> bool:
    if not tiles:
        return True
    from deuteron.layout.steps import are_injective  # deferred: start-up time, and few kernels have tiles

    return all(are_injective([(step.extent, step.value(numbers)) for step in tile]) for tile in tiles)


def are_apart(first: View | None, second: View | None) -> bool:
    """Whether no byte is in an element of both; False where that is not known."""
    if first is None or second is None:
        return _is_empty(first) or _is_empty(second)
    return _spans_are_apart(first, second) or any(
        _are_apart_modulo(period, first, second) for period in (*_periods(first), *_periods(second))
    )


def _is_empty(view: View | None) -> bool:
    return view is not None and not view.span.num_bytes


def _spans_are_apart(first: View, second: View) -> bool:
    a, b = first.span, second.span
    if not a.num_bytes or not b.num_bytes:
        return True
    return a.address + a.num_bytes <= b.address or b.address + b.num_bytes <= a.address


def _periods(view: View) -> list[int]:
    return [abs(step) for extent, step in view.axes if extent > 1 and step]


def _are_apart_modulo(period: int, first: View, second: View) -> bool:
    a, b = _within(period, first), _within(period, second)
    distance = (b.address - a.address) % period
    return a.num_bytes <= distance and distance + b.num_bytes <= period


def _within(period: int, view: View) -> Span:
    """The span of what an array touches, the axes left out that go on by whole periods."""
    return view._replace(axes=tuple((extent, step) for extent, step in view.axes if extent > 1 and step % period)).span

"""Pairs of arguments of a kernel that are relied on to be apart, and how a text has them (analysis/aliasing/apart.py).

    tt.func @k(%a, %b) attributes {tt.apart = #tt.pairs<[0, 1, 0, 0, 0]>}       a, b: disjoint

Three numbers of each pair, how many pairs of equal arguments follow, and these; then how many tiles, of each the number
of its dimensions, and of these extent, factor and argument, -1 for none. A kernel with a hundred arguments has
thousands of pairs, which are noted one after the other: so they are kept as they are, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Dimensions = tuple[tuple[int, int, int], ...]


class Pair(NamedTuple):
    """Two arguments of a function by number, the lower first."""

    first: int
    second: int
    or_equal: bool
    equal: tuple[tuple[int, int], ...] = ()
    tiles: tuple[Dimensions, ...] = ()

    @property
    def arguments(self) -> set[int]:
        steps = chain.from_iterable(self.tiles)
        return {*self[:2], *chain(*self.equal), *(number for _, _, number in steps if number != -1)}


@irdl_attr_definition
class PairsAttr(Data[tuple[Pair, ...]]):
    """Of each two arguments one pair, in order."""

    name = "tt.pairs"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Pair, ...]:
        with parser.in_angle_brackets():
            begin = parser.pos
            words = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            try:
                return tuple(sorted(_pairs_in(words)))
            except EOFError:
                parser.raise_error("these numbers do not describe pairs of arguments", begin, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        words = chain.from_iterable(map(_words, self.data))
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(map(str, words))}]")


def _words(pair: Pair) -> list[int]:
    tiles = chain.from_iterable([len(tile), *chain(*tile)] for tile in pair.tiles)
    return [*map(int, pair[:3]), len(pair.equal), *chain(*pair.equal), len(pair.tiles), *tiles]


def _pairs_in(words: Sequence[int]) -> Iterator[Pair]:
    """The pairs of `_words`; raises EOFError where the words end within one."""
    left = iter(words)
    for first in left:
        second, or_equal = _several(left, 2)
        equal = _tuples_of(left, 2)
        tiles = tuple(_tuples_of(left, 3) for _ in range(*_several(left, 1)))
        yield Pair(first, second, bool(or_equal), equal, tiles)


def _tuples_of(left: Iterator[int], size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(_several(left, size) for _ in range(*_several(left, 1)))


def _several(left: Iterator[int], size: int) -> tuple[int, ...]:
    taken = tuple(islice(left, size))
    if len(taken) < size:
        raise EOFError
    return taken


ATTRIBUTES = [PairsAttr]

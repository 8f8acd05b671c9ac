"""Which arguments of a kernel are taken not to overlap, and where it is written down that something relies on it.

    load a[...]                  take_apart(points_to(a), points_to(b))
    store b[...]                   True: the load may move over the store, and the function says what that relies on:
                                   tt.func @k(%a, %b) attributes {tt.apart = array<i64: 0, 1, 0, 0>}
    the same argument            False
    tt.func {tt.may_alias}       False: it is compiled for arguments that overlap

Arguments may be views of one array. A launch looks at the pairs that its kernel relies on, and takes one that is
compiled with `tt.may_alias` where two of them overlap. So whoever makes use of it asks `take_apart`, or `is_apart`
of written_arguments.py, last, when nothing else stands against what it does; `can_be_apart` only foretells the answer.

A pair is of arguments that have to be disjoint, or, `or_equal`, that may also begin at the same place, if the numbers
`equal` that the kernel is given are equal, strides of rows, and of each tile of `tiles` no two elements are at one
place, as with strides of 0. What relies on that alone is a pair of an argument with itself. `tt.apart` has three
numbers of each pair, how many pairs of equal ones follow, and these; then how many tiles, of each the number of its
dimensions, and of these extent, factor and argument, -1 for none (`Step` of overlap.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i64
from xdsl.ir import BlockArgument

from deuteron.analysis.points_to import Targets
from deuteron.analysis.same_offsets import Alike
from deuteron.analysis.steps import Steps
from deuteron.errors import IRError
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.function import FuncOp

APART, MAY_ALIAS = "tt.apart", "tt.may_alias"
Dimensions = tuple[tuple[int, int, int], ...]
Tiles = frozenset[Steps]


class Pair(NamedTuple):
    """Two arguments of a function by number, the lower first."""

    first: int
    second: int
    or_equal: bool
    equal: tuple[tuple[int, int], ...] = ()
    tiles: tuple[Dimensions, ...] = ()


def take_apart(
    first: Targets, second: Targets, or_equal: bool = False, equal: Alike = frozenset(), tiles: Tiles = frozenset()
) -> bool:
    """Whether nothing is in both, if the arguments of the kernel are apart, on which the caller then relies."""
    if not can_be_apart(first, second):
        return False
    if first and second:
        func = _function_of(first)
        pairs = product(_numbers(first), _numbers(second))
        numbers = tuple(sorted((a.index, b.index) for a, b in equal))
        provided = (numbers, _dimensions_of(tiles)) if or_equal else ()
        _note(func, [Pair(min(pair), max(pair), or_equal, *provided) for pair in pairs])
    return True


def take_injective(targets: Targets, tiles: Tiles) -> bool:
    """Whether no two elements of these tiles, which are accessed through one argument, are at one place, on which the
    caller then relies, if that depends on numbers that the kernel is given.
    """
    if not tiles:
        return True
    if not targets.is_known or not targets or MAY_ALIAS in _function_of(targets).attributes:
        return False
    _note(_function_of(targets), [Pair(n, n, True, (), _dimensions_of(tiles)) for n in _numbers(targets)])
    return True


def can_be_apart(first: Targets, second: Targets) -> bool:
    """Whether `take_apart` says yes."""
    if not first or not second:
        return True
    return not first.shares(second) and MAY_ALIAS not in _function_of(first).attributes


def pairs_apart(func: FuncOp) -> list[Pair]:
    """What has been relied on so far; of each two arguments once. Raises IRError where a text has something else."""
    noted = func.attributes.get(APART)
    if noted is None:
        return []
    pairs = list(_pairs_in(noted.get_values())) if isinstance(noted, DenseArrayBase) else None
    if pairs is None or None in pairs or not all(map(set(range(len(func.args))).issuperset, map(_arguments_of, pairs))):
        raise IRError(f"{APART} does not describe pairs of arguments: {noted}", *from_attribute(func.location))
    return pairs


def _arguments_of(pair: Pair) -> set[int]:
    steps = chain.from_iterable(pair.tiles)
    return {*pair[:2], *chain(*pair.equal), *(number for _, _, number in steps if number != -1)}


def mark_may_alias(func: FuncOp) -> None:
    """Let nothing be relied on in a function."""
    func.attributes[MAY_ALIAS] = UnitAttr()


def _note(func: FuncOp, pairs: Iterable[Pair]) -> None:
    """Of two arguments all holds that has been relied on."""
    noted = pairs_apart(func)
    known = {pair[:2]: pair for pair in noted}
    for pair in pairs:
        known[pair[:2]] = _both(known.get(pair[:2], pair), pair)
    found = [pair for _, pair in sorted(known.items())]
    if found != noted:
        func.attributes[APART] = DenseArrayBase.from_list(i64, [word for pair in found for word in _words(pair)])


def _both(first: Pair, second: Pair) -> Pair:
    if not (first.or_equal and second.or_equal):
        return Pair(first.first, first.second, False)
    equal, tiles = ({*one, *other} for one, other in zip(first[3:], second[3:], strict=True))
    return first._replace(equal=tuple(sorted(equal)), tiles=tuple(sorted(tiles)))


def _dimensions_of(tiles: Tiles) -> tuple[Dimensions, ...]:
    found = {tuple((s.extent, s.factor, -1 if s.argument is None else s.argument) for s in tile) for tile in tiles}
    return tuple(sorted(found))


def _words(pair: Pair) -> list[int]:
    tiles = chain.from_iterable([len(tile), *chain(*tile)] for tile in pair.tiles)
    return [*map(int, pair[:3]), len(pair.equal), *chain(*pair.equal), len(pair.tiles), *tiles]


def _pairs_in(words: Sequence[int]) -> Iterator[Pair | None]:
    """The pairs of `_words`; None behind the last where the words end within one."""
    left = iter(words)
    try:
        for first in left:
            second, or_equal = _several(left, 2)
            equal = _tuples_of(left, 2)
            tiles = tuple(_tuples_of(left, 3) for _ in range(*_several(left, 1)))
            yield Pair(first, second, bool(or_equal), equal, tiles)
    except EOFError:
        yield None


def _tuples_of(left: Iterator[int], size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(_several(left, size) for _ in range(*_several(left, 1)))


def _several(left: Iterator[int], size: int) -> tuple[int, ...]:
    taken = tuple(islice(left, size))
    if len(taken) < size:
        raise EOFError
    return taken


def _function_of(targets: Targets) -> FuncOp:
    return next(iter(targets.arguments)).block.parent_op()


def _numbers(targets: Targets) -> list[int]:
    return [argument.index for argument in targets.arguments if isinstance(argument, BlockArgument)]

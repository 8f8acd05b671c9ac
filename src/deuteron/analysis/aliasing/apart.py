"""Which arguments of a kernel are taken not to overlap, and where it is written down that something relies on it.

    load a[...]                  take_apart(points_to(a), points_to(b))
    store b[...]                   True: the load may move over the store, and the function says what that relies on:
                                   tt.func @k(%a, %b) attributes {tt.apart = #tt.pairs<[0, 1, 0, 0, 0]>}
    the same argument            False
    tt.func {tt.may_alias}       False: it is compiled for arguments that overlap

Arguments may be views of one array. A launch looks at the pairs that its kernel relies on, and takes one that is
compiled with `tt.may_alias` where two of them overlap. So whoever makes use of it asks `take_apart`, or `is_apart`
of written_arguments.py, last, when nothing else stands against what it does; `can_be_apart` only foretells the answer.

A pair is of arguments that have to be disjoint, or, `or_equal`, that may also begin at the same place, if the numbers
`equal` that the kernel is given are equal, strides of rows, and of each tile of `tiles` no two elements are at one
place, as with strides of 0. What relies on that alone is a pair of an argument with itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import product

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import BlockArgument

from deuteron.analysis.addresses.steps import Steps
from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.same_offsets import Alike
from deuteron.errors import IRError
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.apart import Dimensions, Pair, PairsAttr
from deuteron.ir.tt.function import FuncOp

APART, MAY_ALIAS = "tt.apart", "tt.may_alias"
Tiles = frozenset[Steps]


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
    noted = _noted(func)
    if not all(map(set(range(len(func.args))).issuperset, (pair.arguments for pair in noted))):
        raise _no_pairs(func)
    return list(noted)


def _noted(func: FuncOp) -> tuple[Pair, ...]:
    noted = func.attributes.get(APART)
    if noted is None:
        return ()
    if not isinstance(noted, PairsAttr):
        raise _no_pairs(func)
    return noted.data


def _no_pairs(func: FuncOp) -> IRError:
    message = f"{APART} does not describe pairs of arguments: {func.attributes[APART]}"
    return IRError(message, *from_attribute(func.location))


def mark_may_alias(func: FuncOp) -> None:
    """Let nothing be relied on in a function."""
    func.attributes[MAY_ALIAS] = UnitAttr()


def _note(func: FuncOp, pairs: Iterable[Pair]) -> None:
    """Of two arguments all holds that has been relied on."""
    noted = _noted(func)
    found = list(noted)
    for pair in pairs:
        place = bisect_left(found, pair[:2])
        is_known = place < len(found) and found[place][:2] == pair[:2]
        found[place : place + is_known] = [_both(found[place], pair) if is_known else pair]
    if found != list(noted):
        func.attributes[APART] = PairsAttr(tuple(found))


def _both(first: Pair, second: Pair) -> Pair:
    if not (first.or_equal and second.or_equal):
        return Pair(first.first, first.second, False)
    equal, tiles = ({*one, *other} for one, other in zip(first[3:], second[3:], strict=True))
    return first._replace(equal=tuple(sorted(equal)), tiles=tuple(sorted(tiles)))


def _dimensions_of(tiles: Tiles) -> tuple[Dimensions, ...]:
    found = {tuple((s.extent, s.factor, -1 if s.argument is None else s.argument) for s in tile) for tile in tiles}
    return tuple(sorted(found))


def _function_of(targets: Targets) -> FuncOp:
    return next(iter(targets.arguments)).block.parent_op()


def _numbers(targets: Targets) -> list[int]:
    return [argument.index for argument in targets.arguments if isinstance(argument, BlockArgument)]

"""Which arguments of a kernel are taken not to overlap, and where it is written down that something relies on it.

    load a[...]                  take_apart(points_to(a), points_to(b))
    store b[...]                   True: the load may move over the store, and the function says what that relies on:
                                   tt.func @k(%a, %b) attributes {tt.apart = array<i64: 0, 1, 0>}
    the same argument            False
    tt.func {tt.may_alias}       False: it is compiled for arguments that overlap

Arguments may be views of one array. A launch looks at the pairs that its kernel relies on, and takes one that is
compiled with `tt.may_alias` where two of them overlap. So whoever makes use of it asks `take_apart`, or `is_apart`
of written_arguments.py, last, when nothing else stands against what it does; `can_be_apart` only foretells the answer.

A pair is of arguments that have to be disjoint, or, `or_equal`, that may also begin at the same place: three numbers of
`tt.apart`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i64
from xdsl.ir import BlockArgument

from deuteron.analysis.points_to import Targets
from deuteron.ir.tt.function import FuncOp

APART, MAY_ALIAS = "tt.apart", "tt.may_alias"


class Pair(NamedTuple):
    """Two arguments of a function by number, the lower first."""

    first: int
    second: int
    or_equal: bool


def take_apart(first: Targets, second: Targets, or_equal: bool = False) -> bool:
    """Whether nothing is in both, if the arguments of the kernel are apart, on which the caller then relies."""
    if not can_be_apart(first, second):
        return False
    if first and second:
        func = _function_of(first)
        pairs = product(_numbers(first), _numbers(second))
        _note(func, [Pair(min(pair), max(pair), or_equal) for pair in pairs])
    return True


def can_be_apart(first: Targets, second: Targets) -> bool:
    """Whether `take_apart` says yes."""
    if not first or not second:
        return True
    return not first.shares(second) and MAY_ALIAS not in _function_of(first).attributes


def pairs_apart(func: FuncOp) -> list[Pair]:
    """What has been relied on so far; of each two arguments once."""
    found = _noted(func)
    strict = {pair[:2] for pair in found if not pair.or_equal}
    return [pair for pair in found if not (pair.or_equal and pair[:2] in strict)]


def mark_may_alias(func: FuncOp) -> None:
    """Let nothing be relied on in a function."""
    func.attributes[MAY_ALIAS] = UnitAttr()


def _note(func: FuncOp, pairs: Iterable[Pair]) -> None:
    noted = _noted(func)
    known = {*noted, *pairs}
    if len(known) > len(noted):
        func.attributes[APART] = DenseArrayBase.from_list(i64, [int(word) for pair in sorted(known) for word in pair])


def _noted(func: FuncOp) -> list[Pair]:
    noted = func.attributes.get(APART)
    words = noted.get_values() if noted else ()
    return [Pair(*pair, bool(or_equal)) for *pair, or_equal in zip(words[::3], words[1::3], words[2::3], strict=True)]


def _function_of(targets: Targets) -> FuncOp:
    return next(iter(targets.arguments)).block.parent_op()


def _numbers(targets: Targets) -> list[int]:
    return [argument.index for argument in targets.arguments if isinstance(argument, BlockArgument)]

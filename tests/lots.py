"""Which cases of a test `make test` runs where all would take too long: by lot, for each commit others.

    @pytest.mark.share(3)          a third of the cases of this test, from all of its values
    pytest.mark.lot(k, n)          of cases that differ in the GPU alone, one of n
    pytest.mark.always             cases that cost little: of a grid, too, each
    for cpu in drawn(item, CPUS)   of CPUs that a test compiles for, one

Of a grid, the product of what several `parametrize` or fixtures give, half of the cases run in folders where a case
compiles and runs a kernel, or as many as it takes to have each value in one. The row of a `parametrize` of several
names is one value: what has no other parameter runs with all of its cases.

A share has as many values of every parameter as it can have, then as many pairs of values: what a value or two bring
about is found at once, what only one case shows by one of the next commits. A test that is named (`file.py::test`)
runs with all cases, and all do in `make test-all`. The lot is that of the commit that is checked out, or of
DEUTERON_TEST_LOT, which processes that run tests beside one another have to agree on.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

import pytest

VARIABLE = "DEUTERON_TEST_LOT"
GRIDS = ("tests/backend/", "tests/kernels/", "tests/passes/", "tests/run/")
"""Where of a grid of cases half are run."""
HALF = 2
Trait = frozenset[tuple[tuple[str, ...], tuple[int, ...]]]
Way = TypeVar("Way")


def draw_lot(commit: str | None) -> None:
    """Say it to the processes that run the tests, too. With changes of one's own it stays the same."""
    os.environ.setdefault(VARIABLE, (commit or "").strip())


def left_out(items: Iterable[pytest.Item], named: Iterable[str]) -> Iterator[pytest.Item]:
    """The cases that are left to `make test-all`; none of tests that are `named`, as on the command line."""
    named = tuple(named)
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not _is_named(item, named):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        chosen = set(_run(cases))
        yield from (case for case in cases if case not in chosen)


def _run(cases: list[pytest.Item]) -> Iterable[pytest.Item]:
    """Of a test's cases those that `make test` runs."""
    share = cases[0].get_closest_marker("share")
    if share:
        return chosen_of(_all_traits(cases), *share.args)
    cases = [case for case in cases if not _is_for_another_gpu(case)]
    if not cases or not cases[0].nodeid.startswith(GRIDS):
        return cases
    costly = [case for case in cases if not any(map(case.get_closest_marker, ("always", "long")))]
    return {*cases} - {*costly} | {*chosen_of(_all_traits(costly), HALF, each_value=True)}


def drawn(item: pytest.Item, ways: Sequence[Way]) -> Sequence[Way]:
    """Of the ways to run a test one; all of them where the test is named, or where tests that are `long` run."""
    if _is_named(item, item.config.args) or item.config.option.markexpr.startswith("long"):
        return ways
    return [ways[_number(item.nodeid) % len(ways)]]


def _is_named(item: pytest.Item, named: Iterable[str]) -> bool:
    asked = tuple(name.partition("[")[0] for name in named if "::" in name)
    return item.nodeid.startswith(asked) if asked else False


def chosen_of(traits: dict[pytest.Item, set[Trait]], divisor: int, each_value: bool = False) -> Iterator[pytest.Item]:
    """One of `divisor` cases, each time one that has the most values, and of these pairs, that none had before.

    With `each_value` they go on until no value is left.
    """
    left, had, num_left = dict(traits), set(), len(traits) - math.ceil(len(traits) / divisor)
    while left:
        case = max(left, key=lambda case: _worth(left[case] - had))
        num_new_values, _ = _worth(left[case] - had)
        if len(left) <= num_left and not (each_value and num_new_values):
            return
        had |= left.pop(case)
        yield case


def _worth(traits: set[Trait]) -> tuple[int, int]:
    return sum(len(trait) == 1 for trait in traits), len(traits)


def _all_traits(cases: list[pytest.Item]) -> dict[pytest.Item, set[Trait]]:
    return {case: _traits(case) for case in _in_random_order(cases)}


def _traits(case: pytest.Item) -> set[Trait]:
    """The values of a case, and the pairs of them; cases share the objects that `parametrize` was given."""
    params = case.callspec.params if hasattr(case, "callspec") else {}
    values = [(names, tuple(id(params[name]) for name in names)) for names in _parameters(case, params)]
    return {frozenset(found) for size in (1, 2) for found in combinations(values, size)}


def _parameters(case: pytest.Item, params: Iterable[str]) -> list[tuple[str, ...]]:
    """The names that each `parametrize` and each fixture gives values to."""
    rows = [_names(mark.args[0]) for mark in case.iter_markers("parametrize")]
    in_rows = {name for names in rows for name in names}
    return [*rows, *((name,) for name in params if name not in in_rows)]


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)


def _in_random_order(cases: list[pytest.Item]) -> list[pytest.Item]:
    return sorted(cases, key=lambda case: _number(case.nodeid))


def _is_for_another_gpu(item: pytest.Item) -> bool:
    lot = item.get_closest_marker("lot")
    if lot is None or item.get_closest_marker("each_gpu"):
        return False
    number, count = lot.args
    return _number(re.sub(r"cuda:\d+", "cuda", item.nodeid)) % count != number


def _number(name: str) -> int:
    return zlib.crc32(f"{os.environ.get(VARIABLE, '')} {name}".encode())

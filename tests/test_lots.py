"""A share of cases has every value, and in time every case."""

from __future__ import annotations

import itertools
import math
import os

import pytest
from lots import VARIABLE, draw_lot, drawn, left_out

pytest_plugins = ("pytester",)

TEST = """
import pytest

@pytest.mark.share(4)
@pytest.mark.parametrize("a", [0, 1, 2])
@pytest.mark.parametrize("b", ["x", "y", "z", "w"])
@pytest.mark.parametrize("c", [False, True])
def test_shared(a, b, c):
    pass

GPUS = [pytest.param(f"cuda:{gpu}", marks=pytest.mark.lot(n, 2)) for n, gpu in enumerate((80, 90))]

@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("gpu", GPUS)
def test_either(gpu, number):
    pass

@pytest.mark.each_gpu
@pytest.mark.parametrize("gpu", GPUS)
def test_each(gpu):
    pass

@pytest.mark.share(3)
def test_one():
    pass
"""

GRID = """
import pytest

GPUS = [pytest.param(f"cuda:{gpu}", marks=pytest.mark.lot(n, 2)) for n, gpu in enumerate((80, 90))]
INTERPRETER = pytest.param("interpreter", marks=pytest.mark.always)

@pytest.fixture(params=[INTERPRETER, "cpu", *GPUS], autouse=True)
def executor(request):
    return request.param

@pytest.mark.parametrize("a, b", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_grid(a, b, dtype):
    pass

@pytest.mark.parametrize("a", range(20))
def test_row(a):
    pass

@pytest.mark.always
@pytest.mark.parametrize("a", range(20))
def test_cheap(a):
    pass
"""
"""In a folder of which half of each grid is run."""


@pytest.fixture
def items(pytester: pytest.Pytester) -> list[pytest.Item]:
    pytester.makeini("[pytest]\nmarkers =\n    share\n    lot\n    each_gpu\n    always")
    return pytester.getitems(TEST)


@pytest.fixture
def grids(items, pytester: pytest.Pytester) -> list[pytest.Item]:
    folder = pytester.mkdir("tests") / "run"
    folder.mkdir()
    (folder / "test_grids.py").write_text(GRID)
    return pytester.inline_genitems("tests")[0]


@pytest.fixture
def run_of(items, monkeypatch):
    """run_of(lot, *named): the cases that `make test` runs."""

    def run(lot: str, *named: str, items: list[pytest.Item] = items) -> list[pytest.Item]:
        monkeypatch.setenv(VARIABLE, lot)
        out = set(left_out(items, named))
        return [item for item in items if item not in out]

    return run


def values(items: list[pytest.Item], test: str) -> list[dict]:
    return [item.callspec.params for item in items if item.name.startswith(f"{test}[")]


@pytest.mark.parametrize("lot", ["", "one", "another"])
def test_a_share_has_every_value_and_as_many_pairs_as_it_can(run_of, lot):
    found = values(run_of(lot), "test_shared")
    assert len(found) == math.ceil(24 / 4)
    assert {case["a"] for case in found} == {0, 1, 2}
    assert {case["b"] for case in found} == {"x", "y", "z", "w"}
    assert {(case["a"], case["c"]) for case in found} == {(a, c) for a in range(3) for c in (False, True)}


def test_in_time_every_case_is_run(run_of):
    found = [str(case) for lot in range(40) for case in values(run_of(str(lot)), "test_shared")]
    assert len(set(found)) == 24


def test_a_lot_gives_the_same_cases_wherever_it_is_drawn(run_of):
    assert run_of("a") == run_of("a") != run_of("b")


def test_each_number_is_for_one_gpu(run_of):
    found = values(run_of("a"), "test_either")
    assert sorted(case["number"] for case in found) == list(range(20))
    assert {case["gpu"] for case in found} == {"cuda:80", "cuda:90"}
    assert len(values(run_of("a"), "test_each")) == 2


def test_a_test_without_parameters_is_run(run_of):
    assert "test_one" in [item.name for item in run_of("a")]


def test_a_test_that_is_named_has_all_of_its_cases(run_of, items):
    file = items[0].nodeid.partition("::")[0]
    found = run_of("a", f"{file}::test_shared[False-x-0]")
    assert len(values(found, "test_shared")) == 24
    assert len(values(found, "test_either")) == 20
    assert len(values(run_of("a", file), "test_shared")) == 6


@pytest.mark.parametrize("lot", ["one", "another"])
def test_half_of_a_grid_has_each_row_on_some_executor(run_of, grids, lot):
    found = values(run_of(lot, items=grids), "test_grid")
    assert sum(case["executor"] == "interpreter" for case in found) == 15
    compiled = [case for case in found if case["executor"] != "interpreter"]
    assert len(compiled) == 15  # of the 30 that are for the CPU, or for the GPU of the case
    assert {(case["a"], case["b"]) for case in compiled} == {(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)}
    assert {(case["executor"] == "cpu", case["dtype"]) for case in compiled} == set(
        itertools.product((False, True), ("float16", "float32", "int8"))
    )


def test_half_of_a_grid_has_more_cases_where_they_have_more_values(run_of, grids):
    found = [case for case in values(run_of("one", items=grids), "test_row") if case["executor"] != "interpreter"]
    assert sorted(case["a"] for case in found) == list(range(20))
    assert 0 < sum(case["executor"] == "cpu" for case in found) < 20


def test_cases_that_are_always_run(run_of, grids):
    found = values(run_of("one", items=grids), "test_cheap")
    assert len(found) == 20 * 3


def test_a_case_of_a_grid_is_run_in_time(run_of, grids):
    found = [str(case) for lot in range(40) for case in values(run_of(str(lot), items=grids), "test_grid")]
    assert len(set(found)) == 5 * 3 * 4


def test_of_the_ways_to_run_a_test_one_is_drawn(items, monkeypatch):
    ways, config = ["a", "b", "c"], items[0].config
    found = {drawn(item, ways)[0] for item in items}
    assert found == set(ways) and all(len(drawn(item, ways)) == 1 for item in items)
    monkeypatch.setattr(config.option, "markexpr", "long or not long")
    assert drawn(items[0], ways) == ways
    monkeypatch.setattr(config.option, "markexpr", "not long")
    monkeypatch.setattr(config, "args", [items[0].nodeid])
    assert drawn(items[0], ways) == ways and len(drawn(items[-1], ways)) == 1


def test_a_lot_that_is_given_stays(monkeypatch):
    monkeypatch.setenv(VARIABLE, "given")
    draw_lot("abc\n")
    assert os.environ[VARIABLE] == "given"

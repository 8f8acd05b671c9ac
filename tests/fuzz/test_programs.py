"""A fixed share of the fuzzer's programs, on the CPU and on the emulator. `make fuzz` runs many more."""

from functools import partial

import pytest

from tests.fuzz.any_costs import COSTS, CPU_COSTS, owner_of
from tests.fuzz.campaign import Campaign, run
from tests.fuzz.generator import generate

PROGRAMS = 6
FIRST_SEEDS = (100, 200, 300)


@pytest.mark.parametrize("seed", FIRST_SEEDS)
def test_no_difference(seed, tmp_path):
    campaign = Campaign(
        seed, PROGRAMS, ("cpu", "cuda:80", "cuda:90", "claims"), folder=tmp_path, timeout=120, shrink_seconds=20
    )
    report = run(campaign)
    assert not report.signatures, report.table()
    assert report.tally["interpreter", "ok"] == PROGRAMS, report.table()


def test_no_difference_by_any_costs(tmp_path):
    make = partial(generate, families=("rounds",))
    campaign = Campaign(
        120, 3, ("cuda:90/costs", "cpu/costs"), folder=tmp_path, timeout=240, shrink_seconds=20, make=make
    )
    report = run(campaign)
    assert not report.signatures, report.table()


def test_no_difference_on_pages(tmp_path):
    make = partial(generate, families=("needed rows",), lengths=(2, 3, 5))
    campaign = Campaign(600, 3, ("cpu/pages",), folder=tmp_path, timeout=120, shrink_seconds=20, make=make)
    report = run(campaign)
    assert not report.signatures, report.table()
    assert report.tally["cpu/pages", "ok"] == 3, report.table()


def test_no_difference_by_launches(tmp_path):
    make = partial(generate, lengths=(2, 3, 5))
    report = run(Campaign(400, 3, ("jit",), folder=tmp_path, timeout=240, shrink_seconds=20, make=make))
    assert not report.signatures, report.table()
    assert report.tally["jit", "ok"] == 3, report.table()


def test_costs_have_the_names_that_passes_give_them():
    for place, names, _ in (*COSTS, *CPU_COSTS):
        assert all(hasattr(owner_of(place), name) for name in names.split(", ")), (place, names)


def test_a_seed_gives_one_program():
    assert generate(5) == generate(5)
    assert generate(5).source != generate(6).source

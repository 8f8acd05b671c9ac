"""Mutants of real kernels, on the CPU and on the emulator; by lot some of the seeds. `make fuzz` runs many more."""

import random

import pytest

from tests.fuzz.campaign import Campaign, run
from tests.fuzz.case import Argument, Case
from tests.fuzz.mutator import SERIES, mutate
from tests.fuzz.mutator.launches import EXAMPLES, benchmark_cases, of_benchmark
from tests.fuzz.mutator.mutant import EDITS, Mutant, Unfit
from tests.fuzz.mutator.originals import original, program_of
from tests.fuzz.validity import lowered, valid, written

SEEDS = range(500, 524, 2)


@pytest.mark.share(6)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_difference(seed, tmp_path):
    campaign = Campaign(
        seed, 2, ("cpu", "cuda:80", "cuda:90"), folder=tmp_path, timeout=120, shrink_seconds=20, make=mutate
    )
    report = run(campaign)
    assert not report.signatures, report.table()


def test_a_seed_gives_one_mutant():
    assert mutate(3) == mutate(3)
    assert mutate(3).source != mutate(3 + SERIES).source


def test_an_original_is_one_program_of_all_it_calls():
    cases = [original(random.Random(seed)) for seed in range(3)]  # of any kernel, whose arrays may be too small for it
    assert all("def kernel(" in case.source for case in cases)
    assert any(valid(case, lowered(case)) for case in cases)
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("name", ["add rms norm 37x200", "cholesky 2 of 32x32", "selective scan 2x13x20"])
def test_a_kernel_of_the_benchmark(name):
    """Its arrays have room for it, and numbers by which it stays in bounds."""
    rng, [found] = random.Random(0), [case for case in benchmark_cases() if case.name == name]
    case = program_of(of_benchmark(found, rng), rng)
    assert valid(case, lowered(case)) == case


@pytest.mark.parametrize("edit", ["by_block_pointer", "by_descriptor"])
def test_an_access_whose_places_are_computed_where_they_are_used(edit):
    line = "x = tl.load(in_ptr + (tl.arange(0, 16) // 2)[:, None] * 32 + tl.arange(0, 32)[None, :])"
    source = f"@triton.jit\ndef kernel(in_ptr):\n    {line}\n"
    case = Case(1, source, (Argument("in_ptr", "float32", 512, "ones"),), (1,))
    mutant = Mutant(case, random.Random(0))
    next(e for e in EDITS["accesses"] if e.__name__ == edit)(mutant)
    assert "(tl.arange(0, 16) // 2).shape[0]" in mutant.case().source


def _program(*lines: str, size: int = 64, grid: int = 1) -> Case:
    body = "\n    ".join(lines)
    arguments = Argument("x", "int32", size, "ones"), Argument("out", "int32", size, "zeros")
    return Case(1, f"@triton.jit\ndef kernel(x, out):\n    {body}\n", arguments, (grid,))


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("tl.store(out + tl.program_id(0), tl.load(x))", 2),
        ("tl.store(out, tl.program_id(0))", 1),
        ("tl.store(out + tl.program_id(0), tl.load(out + 1))", 1),
        ("tl.atomic_add(out, 1)", 2),
        ("tl.store(x, tl.atomic_add(out, 1))", 1),
    ],
)
def test_programs_that_race_become_one(line, programs):
    case = _program(line, grid=2)
    assert valid(case, lowered(case)).grid == (programs,)


def test_what_has_no_meaning():
    out_of_bounds, without_end = (
        _program("tl.store(out + 64, 1)"),
        _program("while tl.load(x) > 0:", "    tl.store(out, 1)"),
    )
    several = _program("tl.store(out + tl.arange(0, 32) // 2, tl.arange(0, 32))")
    for case in (out_of_bounds, without_end, several):
        assert valid(case, lowered(case)) is None
    assert lowered(_program("tl.store(out, nothing)")) is None
    case = _program("tl.store(out, tl.load(x))")
    assert written(case, lowered(case)) == {"out"}


@pytest.mark.parametrize("family", EDITS)
def test_edits_leave_syntax(family):
    """Of each family some fit, and what they make can be written down."""
    rng, made = random.Random(1), 0
    for _ in range(12):
        mutant = Mutant(original(rng), rng)
        try:
            rng.choice(EDITS[family])(mutant)
        except Unfit:
            continue
        made += mutant.case().source != ""
    assert made


def test_what_a_scan_combines_by_stays():
    combine = "@triton.jit\ndef add(a, b):\n    return a + b\n\n\n"
    case = _program("tl.store(out, tl.sum(tl.associative_scan(tl.load(x + tl.arange(0, 8)), 0, add)))")
    mutant = Mutant(case.with_(source=combine + case.source), random.Random(0))
    assert {place.function.name for place in mutant.places()} == {"kernel"}

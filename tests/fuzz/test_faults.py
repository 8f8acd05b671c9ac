"""Faults that are put into the compiler are found, and the programs that show them become small."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from deuteron.analysis.axis.axis_rules import RULES
from deuteron.backend.cpu.rules import table
from deuteron.ir.casts import ExtUIOp
from deuteron.passes.gpu.memory.place_barriers import PlaceBarriers
from deuteron.passes.tile.fold import FOLDS
from deuteron.runtime import fast_launch, kernel_caches, specialise
from tests.fuzz import campaign
from tests.fuzz.case import Argument, Case
from tests.fuzz.executors import Outcome, run_case
from tests.fuzz.generator import generate
from tests.fuzz.mutator import mutate
from tests.fuzz.shrink import shrink


class HereAndNow:
    """Runs cases in this process, where the fault is, and where threads of a campaign change syntax."""

    def __enter__(self) -> HereAndNow:
        return self

    def __exit__(self, *unused: object) -> None:
        pass

    def run(self, case: Case, executors: Sequence[str], timeout: float = 0, runs: int = 5) -> list[Outcome]:
        with campaign.SYNTAX:
            return list(run_case(case, executors, lambda place: None, runs))

    def call(self, function: Callable[..., Any], *arguments: Any, timeout: float = 0) -> Any:
        with campaign.SYNTAX:
            return function(*arguments)


short_program = partial(generate, lengths=(3, 6))


def hunt(
    monkeypatch: pytest.MonkeyPatch,
    executor: str,
    shrink_seconds: float = 0,
    make: Callable[[int], Case] = short_program,
) -> campaign.Report:
    """Until something is found; the seeds are some that soon meet the faults of this file."""
    monkeypatch.setattr(campaign, "Worker", HereAndNow)
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    found = campaign.Campaign(7008, 40, (executor,), shrink_seconds=shrink_seconds, most=1, make=make)
    return campaign.run(found)


def lines(case: Case) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(case.source)))


@pytest.mark.long
def test_a_wrong_rule_of_the_cpu(monkeypatch):
    """Floats are added where they are to be subtracted."""
    monkeypatch.setitem(table.RULES, "arith.subf", table.RULES["arith.addf"])
    report = hunt(monkeypatch, "cpu", shrink_seconds=60)
    assert report.findings, report.table()
    small = report.findings[0].case
    assert lines(small) <= 20, small.source


def test_a_wrong_fold(monkeypatch):
    """x + y is taken to be x, where they are floats."""
    monkeypatch.setitem(FOLDS, "arith.addf", lambda op: [op.lhs])
    report = hunt(monkeypatch, "cpu")
    assert report.findings, report.table()


def test_a_wrong_fold_in_a_mutant(monkeypatch):
    """x + y is taken to be x, where they are floats, in a real kernel."""
    monkeypatch.setitem(FOLDS, "arith.addf", lambda op: [op.lhs])
    report = hunt(monkeypatch, "cpu", make=mutate)
    assert report.findings, report.table()


def test_a_missing_barrier(monkeypatch):
    """No barriers before reads of shared memory."""
    monkeypatch.setattr(PlaceBarriers, "apply", lambda self, ctx, op: None)
    report = hunt(monkeypatch, "cuda:80")
    assert any("race" in finding.signature for finding in report.findings), report.table()


PADDED = """@triton.jit
def kernel(x, out, n):
    i = tl.arange(0, 16)
    places = (i - n).to(tl.uint32).to(tl.uint64)
    tl.store(out + i, tl.load(x + places, mask=places < 16, other=0))
"""


def test_a_claim_that_does_not_hold(monkeypatch):
    """Numbers without a sign that are widened are taken to count up, whatever they were."""
    arrays = [Argument(name, "int32", 16, fill) for name, fill in (("x", "small"), ("out", "poison"))]
    case = Case(1, PADDED, (*arrays, Argument("n", "int32", None, 3)), (1,), {})
    assert [outcome.kind for outcome in HereAndNow().run(case, ["claims"])] == ["ok", "ok"]
    monkeypatch.setitem(RULES, ExtUIOp, lambda op, operands: operands[0])
    *_, found = HereAndNow().run(case, ["claims"])
    assert (found.kind, found.message.partition(" of %")[0]) == ("wrong", "contiguity 16")


MIRRORED = """@triton.jit
def kernel(x, y, out, io, n, m):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i) + n * m)
    tl.store(io + i, tl.load(x + 63 - i) + tl.load(y + i, mask=i < n, other=0))
"""
ARRAYS = tuple(
    Argument(name, "int32", 64, fill)
    for name, fill in (("x", "normal"), ("y", "small"), ("out", "poison"), ("io", "normal"))
)


def launched(seeds: range) -> Outcome | None:
    """What is wrong with launches of a kernel, if anything."""
    numbers = Argument("n", "int32", None, 32), Argument("m", "int64", None, 5)
    cases = (Case(seed, MIRRORED, (*ARRAYS, *numbers), (1,), {}) for seed in seeds)
    outcomes = (outcome for case in cases for outcome in HereAndNow().run(case, ["jit"]))
    return next((outcome for outcome in outcomes if outcome.kind != "ok"), None)


def test_a_kernel_that_is_launched_for_other_numbers(monkeypatch):
    """16 is taken to be 1."""
    found = specialise._integer
    monkeypatch.setitem(specialise._SPECIALISERS, int, lambda x: ("i32:1", x) if x == 16 else found(x))
    assert launched(range(2)).kind == "wrong"


def test_a_kernel_that_is_launched_for_arrays_that_overlap(monkeypatch):
    monkeypatch.setattr(kernel_caches, "overlap_of", lambda *unused: None)
    assert launched(range(3)).kind == "wrong"


def test_machine_code_that_passes_too_few_bits(monkeypatch):
    """Launches in Python pass all of them."""
    monkeypatch.setitem(fast_launch._INTEGER_BITS, "i32", 4)
    assert launched(range(2)).kind == "wrong"


def test_a_candidate_that_is_no_python_is_passed_over():
    """A constant takes the place of a name that a comprehension assigns to."""
    source = "def kernel(out0):\n    v1 = sum([2 for v2 in range(3)])\n    v3 = 5\n    tl.store(out0, v1)\n"
    arguments = (Argument(name="out0", dtype="int32", size=4, fill="poison", seed=1, bound=0),)
    small = shrink(Case(1, source, arguments, (1,), {}), lambda case: "for v2 in" in case.source, 20)
    assert "v3" not in small.source

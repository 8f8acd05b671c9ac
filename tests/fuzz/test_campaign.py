"""Threads of a campaign: each has a worker, and what they share changes for one of them at a time."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import campaign
from tests.fuzz.case import Argument, Case
from tests.fuzz.executors import Outcome
from tests.fuzz.mutator import mutate
from tests.fuzz.test_faults import HereAndNow
from tests.fuzz.worker import Lost, Worker

OUT = Argument("out", "float32", 8, "poison")


class Failing(HereAndNow):
    """Every program fails there alike, at once."""

    def run(self, case: Case, executors: Sequence[str], timeout: float = 0, runs: int = 5) -> list[Outcome]:
        return [Outcome(executor, "error", "a fault") for executor in executors]


def long_program(seed: int) -> Case:
    lines = [f"v{i} = (tl.program_id(0) + {i}) * (v{i - 1} - {seed})" for i in range(1, 40)]
    body = "\n    ".join(["v0 = 1", *lines, "tl.store(out, v39)"])
    return Case(seed, f"@triton.jit\ndef kernel(out):\n    {body}\n", (OUT,), (1,))


def test_programs_shrink_at_once(monkeypatch):
    """Collections of garbage let other threads run in the middle of `ast.parse`."""
    monkeypatch.setattr(campaign, "Worker", Failing)
    given = campaign.Campaign(0, 16, ("cpu",), jobs=4, shrink_seconds=1, make=long_program)
    threshold = gc.get_threshold()
    gc.callbacks.append(_lets_others_run)
    gc.set_threshold(20)
    try:
        report = campaign.run(given, lambda text: None)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(_lets_others_run)
    assert report.signatures["cpu error a fault"] == 16


def _lets_others_run(phase: str, info: dict[str, int]) -> None:
    time.sleep(1e-4)


def _ends(seed: int) -> Case:
    raise SystemExit(f"no program of {seed}")


def test_a_process_that_cannot_make_a_program():
    with Worker() as worker:
        with pytest.raises(Lost) as lost:
            worker.call(_ends, 5, timeout=60)
        assert lost.value.outcome.kind == "abort"
        assert worker.call(long_program, 5, timeout=60) == long_program(5)


@pytest.mark.long
def test_mutants_are_the_same_by_any_number_of_jobs(tmp_path: Path):
    def made(jobs: int) -> list[Case]:
        cases = []

        class Telling(Worker):
            def run(self, case: Case, *more: Any) -> list[Outcome]:
                cases.append(case)
                return []

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(campaign, "Worker", Telling)
            campaign.run(campaign.Campaign(0, 24, ("cpu",), jobs=jobs, make=mutate))
        return sorted(cases, key=lambda case: case.seed)

    assert made(1) == made(3)

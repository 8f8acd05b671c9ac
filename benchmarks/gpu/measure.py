"""One case: check every configuration of both, time them briefly, then the best of each beside the vendor's function.

    row = measure(case, configs, timer, failures, effort)
    row.sides["deuteron"].rate, row.vendor_rate      713.2, 702.9

A configuration counts only if it writes every element of a poisoned output with a relative error within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.gpu.case import Case, Config, Problem, relative_error
from benchmarks.gpu.peers import Failures, describe, load_peer
from benchmarks.gpu.timing import Timer


@dataclass(frozen=True)
class Effort:
    """Milliseconds to choose a configuration by, and of all that take turns in the end."""

    screen: float
    turns: float


FULL = Effort(60.0, 2400.0)
QUICK = Effort(15.0, 480.0)


@dataclass
class Side:
    """What came of a compiler: its best configuration with its error and rate, and those that dropped out.

    `notes` are spills and warnings of the assembler, by the label of the configuration.
    """

    best: Config | None = None
    error: float = float("nan")
    rate: float = float("nan")
    notes: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    screened: dict[str, float] = field(default_factory=dict)


@dataclass
class Row:
    """The measured case; rates are in the case's unit."""

    case: Case
    sides: dict[str, Side]
    vendor: str
    vendor_rate: float


def measure(
    case: Case, configs: tuple[Config, ...], peers: tuple[str, ...], timer: Timer, failures: Failures, effort: Effort
) -> Row:
    problem = case.make()
    sides, runs = {}, []
    for peer in peers:
        sides[peer], run = _choose(peer, case, configs, problem, timer, failures, effort)
        runs += [run] if run else []
    medians = timer.alternate([*runs, problem.vendor.run], effort.turns)
    chosen = [side for side in sides.values() if side.best]
    for side, median in zip(chosen, medians, strict=False):
        side.rate = case.amount / median * 1e3
    return Row(case, sides, problem.vendor.name, problem.vendor.amount / medians[-1] * 1e3)


def _choose(
    peer: str,
    case: Case,
    configs: tuple[Config, ...],
    problem: Problem,
    timer: Timer,
    failures: Failures,
    effort: Effort,
) -> tuple[Side, Callable[[], Any] | None]:
    side, best = Side(), None
    for config in configs:
        reason = failures.get((peer, case.name, config.label))
        run, kernel, error = (None, None, reason) if reason else _launch_poisoned(peer, case, config, problem)
        if notes := _notes(kernel):
            side.notes[config.label] = notes
        if isinstance(error, str):
            side.skipped.append(f"{config.label}: {error}")
        elif not error <= case.tolerance:
            side.wrong.append(f"{config.label}: relative error {error:.1e}")
        else:
            rate = side.screened[config.label] = case.amount / timer.screen(run, effort.screen) * 1e3
            if rate >= max(side.screened.values()):
                side.best, side.error, best = config, error, run
    return side, best


def _launch_poisoned(peer: str, case: Case, config: Config, problem: Problem) -> tuple[Any, Any, float | str]:
    """The launch, what it returned, and the relative error, or why it could not be launched."""
    problem.out.fill_(float("nan"))
    try:
        run = load_peer(peer).launcher(case, config, problem)
        kernel = run()
    except Exception as error:  # noqa: BLE001  whatever a compiler raises, the others are still to be measured
        return None, None, describe(error)
    torch.cuda.synchronize()  # a fault on the GPU ends the benchmark: no later result could be trusted
    return run, kernel, relative_error(problem.out, problem.expected)


def _notes(kernel: Any) -> str:
    """Spills and warnings of the assembler, for whichever compiler tells."""
    resources = getattr(getattr(kernel, "metadata", None), "resources", {})
    spills = resources.get("spill_bytes", 0) or getattr(kernel, "n_spills", 0) or 0
    return "; ".join([*([f"{spills} bytes spilled"] if spills else []), *resources.get("warnings", ())])

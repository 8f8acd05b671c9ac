"""One case: check every configuration of both, time them briefly, then the best of each beside the vendor's function.

    row = measure(case, configs, peers, timer, failures, effort)
    row.sides["deuteron"].rate, row.vendor_rate      713.2, 702.9

A configuration counts only if it writes every element of poisoned outputs with relative errors within the tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.gpu.case import Case, Config, Problem, Vendor
from benchmarks.gpu.peers import Failures, describe, load_peer
from benchmarks.gpu.timing import Launch, Timer

NAN = float("nan")


@dataclass(frozen=True)
class Effort:
    """Milliseconds for each configuration to choose by, and of all that take turns in the end."""

    screen: float
    turns: float


FULL = Effort(60.0, 2400.0)
QUICK = Effort(15.0, 480.0)
EVERYDAY = Effort(10.0, 200.0)


@dataclass
class Side:
    """What came of a compiler: its best configuration with its error and rate, and those that dropped out.

    `notes` are spills and warnings of the assembler, by the label of the configuration.
    """

    best: Config | None = None
    error: float = NAN
    rate: float = NAN
    notes: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    screened: dict[str, float] = field(default_factory=dict)


@dataclass
class Row:
    """What was measured of a case; rates are in its unit. `failure`: why it, or the vendor's function, was not."""

    sides: dict[str, Side]
    vendor: str = "-"
    vendor_rate: float = NAN
    failure: str = ""
    vendor_failure: str = ""


@dataclass(frozen=True)
class Candidate:
    """A configuration of a side that wrote the right numbers."""

    peer: str
    side: Side
    config: Config
    error: float
    launch: Launch


def measure(
    case: Case,
    configs: tuple[Config, ...],
    peers: tuple[str, ...],
    timer: Timer,
    failures: Failures,
    effort: Effort,
    tell: Callable[[str, str], None] = lambda peer, label: None,
) -> Row:
    """`tell` is called with a peer and a configuration before its kernel is launched for the first time."""
    with torch.device("cuda"):
        problem = case.make()
    row = Row({peer: Side() for peer in peers})
    candidates = []
    for peer, side in row.sides.items():
        for config in configs:
            tell(peer, config.label)
            if (candidate := _check(peer, side, case, config, problem, failures)) is not None:
                candidates.append(candidate)
    tell("", "")
    _time(row, candidates, case, problem, timer, effort)
    return row


def _time(row: Row, candidates: list[Candidate], case: Case, problem: Problem, timer: Timer, effort: Effort) -> None:
    chosen = _choose(candidates, case, timer, effort)
    vendor = _runnable(problem.vendor, row)
    launches = [*(one.launch for one in chosen), *([Launch(vendor.run)] if vendor else [])]
    medians = timer.alternate(launches, effort.turns) if launches else []
    for one, median in zip(chosen, medians, strict=False):
        one.side.best, one.side.error, one.side.rate = one.config, one.error, case.amount / median * 1e3
    if vendor:
        row.vendor, row.vendor_rate = vendor.name, (vendor.amount or case.amount) / medians[-1] * 1e3


def _runnable(vendor: Vendor | None, row: Row) -> Vendor | None:
    """The vendor's function, if it takes the inputs: releases of torch differ in what they take."""
    try:
        if vendor:
            vendor.run()
    except (RuntimeError, ValueError, NotImplementedError) as error:
        row.vendor_failure = describe(error)
        return None
    return vendor


def _check(peer: str, side: Side, case: Case, config: Config, problem: Problem, failures: Failures) -> Candidate | None:
    reason = failures.get((peer, case.name, config.label))
    run, kernel, reason = (None, None, reason) if reason else _launch_poisoned(peer, case, config, problem)
    if notes := _notes(kernel):
        side.notes[config.label] = notes
    if run is None:
        side.skipped.append(f"{config.label}: {reason}")
        return None
    error, is_right = case.error(problem)
    if not is_right:
        side.wrong.append(f"{config.label}: relative error {error:.1e}")
        return None
    return Candidate(peer, side, config, error, Launch(run, problem.prepare))


def _choose(candidates: list[Candidate], case: Case, timer: Timer, effort: Effort) -> list[Candidate]:
    """The fastest of each side, of launches of all in turns: one after the other, the first would have a cool GPU."""
    if not candidates:
        return []
    medians = timer.alternate([one.launch for one in candidates], effort.screen * len(candidates))
    fastest: dict[str, Candidate] = {}
    for median, one in sorted(zip(medians, candidates, strict=True), key=lambda pair: pair[0]):
        one.side.screened[one.config.label] = case.amount / median * 1e3
        fastest.setdefault(one.peer, one)
    return list(fastest.values())


def _launch_poisoned(
    peer: str, case: Case, config: Config, problem: Problem
) -> tuple[Callable[[], Any] | None, Any, str | None]:
    """The launch and what it returned, or why it could not be launched."""
    problem.poison()
    problem.prepare()
    try:
        run = load_peer(peer).launcher(case, config, problem)
        kernel = run()
    except Exception as error:  # noqa: BLE001  whatever a compiler raises, the others are still to be measured
        return None, None, describe(error)
    torch.cuda.synchronize()  # after a fault on the GPU no later result of this process could be trusted
    return run, kernel, None


def _notes(kernel: Any) -> str:
    """Spills and warnings of the assembler, for whichever compiler tells."""
    resources = getattr(getattr(kernel, "metadata", None), "resources", {})
    spills = resources.get("spill_bytes", 0) or getattr(kernel, "n_spills", 0) or 0
    return "; ".join([*([f"{spills} bytes spilled"] if spills else []), *resources.get("warnings", ())])

"""Many programs: each run, what fails shrunk, deduplicated and written down as a program of its own.

report = run(Campaign(first_seed=0, count=1000, executors=("cpu",), jobs=2, folder=Path("build/fuzz")))
print(report.table())
"""

from __future__ import annotations

import ast
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.case import Case
from tests.fuzz.executors import ORIGINAL, Outcome, run_case
from tests.fuzz.generator import generate
from tests.fuzz.shrink import shrink
from tests.fuzz.validity import is_valid
from tests.fuzz.worker import Lost, Worker

CONFIRMING_RUNS = 100
"""Perturbed runs of a program whose result is wrong: what is merely not determined is seen by one of so many."""

SHRINKING_RUNS = 15
TOLD_EVERY = 200
LOT = 8
"""Seeds that one worker takes in a row: mutants of one kernel, each made of the one before."""

SYNTAX = threading.Lock()
"""Held by the thread that changes syntax. CPython 3.11 counts the depth of trees for all threads together: where a
collection of garbage lets another one parse, `ast.parse` ends with a SystemError."""


@dataclass(frozen=True)
class Campaign:
    """What is run. `shrunk_alike`: how many programs of one signature are shrunk; the rest is counted. `most`: it ends
    with so many findings."""

    first_seed: int
    count: int
    executors: tuple[str, ...]
    jobs: int = 1
    folder: Path | None = None
    timeout: float = 60.0
    shrink_seconds: float = 60.0
    shrunk_alike: int = 8
    minutes: float | None = None
    most: int | None = None
    make: Callable[[int], Case] = generate


@dataclass
class Finding:
    signature: str
    case: Case
    outcome: Outcome


@dataclass
class Report:
    tally: Counter = field(default_factory=Counter)
    refusals: Counter = field(default_factory=Counter)
    refused_first: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    signatures: Counter = field(default_factory=Counter)
    shares: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def table(self) -> str:
        executors = list(dict.fromkeys(executor for executor, _ in self.tally))
        kinds = ("ok", "refused", "invalid", "wrong", "error", "slow", "abort", "timeout")
        lines = [f"{'executor':14}" + "".join(f"{kind:>9}" for kind in kinds)]
        lines += [f"{e:14}" + "".join(f"{self.tally[e, kind]:9}" for kind in kinds) for e in executors]
        if self.shares:
            lines.append(
                f"determined: {sum(self.shares) / len(self.shares):.1%} of what is stored; {self.seconds:.0f} s"
            )
        lines += [
            f"refused {count:5}  {message} (seed {self.refused_first[message]})"
            for message, count in self.refusals.most_common(25)
        ]
        lines += [f"FOUND {count:5}  {signature}" for signature, count in self.signatures.most_common()]
        return "\n".join(lines)


def run(campaign: Campaign, tell: Callable[[str], None] = print) -> Report:
    report, lock, begin = Report(), threading.Lock(), time.monotonic()
    end = campaign.first_seed + campaign.count
    lots = iter([range(first, min(first + LOT, end)) for first in range(campaign.first_seed, end, LOT)])

    def is_over() -> bool:
        is_late = campaign.minutes and time.monotonic() - begin > 60 * campaign.minutes
        return bool(is_late) or len(report.findings) == campaign.most

    def seeds() -> Iterator[int]:
        """Of one thread."""
        while True:
            with lock:
                lot = next(lots, ())
            yield from lot
            if not lot:
                return

    def work() -> None:
        with Worker() as worker:
            for seed in seeds():
                if is_over():
                    return
                if seed > campaign.first_seed and seed % TOLD_EVERY == 0:
                    tell(f"seed {seed}, {time.monotonic() - begin:.0f} s, {len(report.findings)} findings")
                _one(campaign, seed, worker, report, lock, tell)

    with ThreadPoolExecutor(campaign.jobs) as pool:
        for future in [pool.submit(work) for _ in range(campaign.jobs)]:
            future.result()
    report.seconds = time.monotonic() - begin
    return report


def _one(campaign: Campaign, seed: int, worker: Worker, report: Report, lock, tell) -> None:
    try:
        case = worker.call(campaign.make, seed, timeout=campaign.timeout)
    except Lost as lost:
        with lock:
            report.tally[lost.outcome.executor, lost.outcome.kind] += 1
            report.signatures[lost.outcome.signature] += 1
        tell(f"--- no program of seed {seed}: {lost.outcome.kind}\n{lost.outcome.message}")
        return
    outcomes = worker.run(case, campaign.executors, campaign.timeout)
    for outcome in outcomes:
        if outcome.kind == "wrong" and not _confirmed(case, outcome, worker, campaign.timeout):
            outcome = Outcome(outcome.executor, "ok")
        with lock:
            report.tally[outcome.executor, outcome.kind] += 1
            if outcome.executor == "interpreter" and outcome.kind == "ok":
                report.shares.append(float(outcome.message))
            if outcome.kind in ("refused", "invalid"):
                report.refusals[outcome.signature] += 1
                report.refused_first.setdefault(outcome.signature, case.seed)
            if outcome.is_finding:
                report.signatures[outcome.signature] += 1
            is_new = outcome.is_finding and report.signatures[outcome.signature] <= campaign.shrunk_alike
        if is_new:
            _take_down(campaign, case, outcome, worker, report, lock, tell)


def _confirmed(case: Case, outcome: Outcome, worker: Worker, timeout: float) -> bool:
    again = worker.run(case, [outcome.executor], timeout, CONFIRMING_RUNS)
    return any(o.signature == outcome.signature for o in again)


def _take_down(campaign: Campaign, case: Case, outcome: Outcome, worker: Worker, report: Report, lock, tell) -> None:
    """Shrink it, tell, and write it to the folder, unless there is one like it. What is valid stays so."""
    executors = [outcome.executor] if outcome.executor in campaign.executors else []
    has_meaning = _is_valid(case, worker, campaign.timeout)

    def found(candidate: Case) -> Outcome | None:
        if has_meaning and not _is_valid(candidate, worker, campaign.timeout):
            return None
        outcomes = worker.run(candidate, executors, campaign.timeout, SHRINKING_RUNS)
        return next((o for o in outcomes if o.signature == outcome.signature), None)

    def fails(candidate: Case) -> bool:
        with _released(SYNTAX):
            return found(candidate) is not None

    small = case
    if campaign.shrink_seconds and outcome.kind != "timeout" and outcome.executor != ORIGINAL:
        with SYNTAX:
            small = shrink(case, fails, campaign.shrink_seconds)
    seen = found(small) or outcome
    with SYNTAX:
        of_words = f" {' '.join(words(small.source))}" if outcome.kind == "wrong" else ""
    signature = f"{outcome.signature}{of_words}"
    with lock:
        if any(finding.signature == signature for finding in report.findings):
            return
        report.findings.append(Finding(signature, small, seen))
    text = f"{seen.executor}: {seen.kind} (seed {case.seed})\n{seen.message[:1500]}"
    tell(f"--- {text}\n{small.source}{small.options} grid {small.grid} {_sizes(small)}")
    if campaign.folder:
        campaign.folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "_", f"{seen.executor}_{seen.kind}")
        file = campaign.folder / f"{name}_{zlib.crc32(signature.encode()):08x}.py"
        file.write_text(small.text(text))
        tell(f"--- written to {file}")


def _is_valid(case: Case, worker: Worker, timeout: float) -> bool:
    try:
        return worker.call(is_valid, case, timeout=timeout)
    except Lost:
        return True


@contextmanager
def _released(lock: threading.Lock) -> Iterator[None]:
    lock.release()
    try:
        yield
    finally:
        lock.acquire()


def _sizes(case: Case) -> str:
    return ", ".join(
        f"{a.name}: {a.dtype}[{a.size}] {a.fill}" if a.size else f"{a.name}: {a.dtype} {a.fill}" for a in case.arguments
    )


def words(source: str) -> list[str]:
    """What of the language a program uses, which tells defects apart."""
    names = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    names |= {
        type(node).__name__.lower()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.For | ast.While | ast.If)
    }
    return sorted(names - {"jit", "arange", "program_id", "debug_barrier"})


def show(case: Case, executors: Sequence[str]) -> None:
    """What a reproducer does: run the case, and print what each executor makes of it."""
    for outcome in run_case(
        case, executors or ["cpu", "cuda:80", "cuda:90"], announce=lambda place: None, runs=CONFIRMING_RUNS
    ):
        print(f"{outcome.executor}: {outcome.kind} {outcome.message}")

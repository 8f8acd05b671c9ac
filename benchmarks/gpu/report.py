"""The table of a run, and a file of it in benchmarks/results.

report = Report(("deuteron", "triton"), copy_rate=4100.0)
report.add(case, row)                            a line, as soon as it is known
report.summary()                                 geometric means of Triton, rows that fall short
report.write("baseline", duration)               benchmarks/results/2026-11-20-baseline.md
"""

from __future__ import annotations

import datetime
import math
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import torch
import triton

import deuteron
from benchmarks.gpu.case import Case
from benchmarks.gpu.measure import Row, Side

RESULTS = Path(__file__).resolve().parents[1] / "results"
# The commit, in an archive that git made; what it is made of, in a repository.
ARCHIVED_COMMIT = Path(__file__).with_name("archived_commit.txt")
OURS = "deuteron"
WIDTHS = {"case": 36, "unit": 8, "vendor": 16, "our best": 24}
SHORT_WIDTH = 10
FALLS_SHORT = 0.98


@dataclass
class Report:
    """`peers` are the columns, ours first; `copy_rate` in GB/s."""

    peers: tuple[str, ...]
    copy_rate: float = math.nan
    rows: list[tuple[Case, Row]] = field(default_factory=list)

    def print_header(self) -> None:
        self._print(self._header())

    def add(self, case: Case, row: Row) -> None:
        self.rows.append((case, row))
        self._print(self._cells(case, row))
        for line in _remarks(row):
            print(f"    {line}", flush=True)

    def summary(self) -> Iterator[str]:
        """Of each peer: the geometric mean, that of each family, and what is slower than it or not right."""
        for peer in self.peers:
            if peer == OURS:
                continue
            ratios = {case.name: (case.family, self._ratio(row, peer)) for case, row in self.rows}
            known = {name: one for name, one in ratios.items() if not math.isnan(one[1])}
            families = dict.fromkeys(family for family, _ in known.values())
            means = [f"{name} {_mean(one for family, one in known.values() if family == name)}" for name in families]
            slower = sorted((one, name) for name, (_, one) in known.items() if one < FALLS_SHORT)
            whole = _mean(one for _, one in known.values())
            yield f"of {_title(peer)}: {whole} in {len(known)} rows; {', '.join(means)}"
            yield f"below {FALLS_SHORT} of it: {', '.join(f'{name} {one:.2f}' for one, name in slower) or 'none'}"
        failed = [case.name for case, row in self.rows if row.sides[OURS].best is None]
        yield f"without a right result of ours: {', '.join(failed) or 'none'}"

    def write(self, name: str, seconds: float) -> Path:
        """The table with date and versions; what dropped out, and every configuration's first rate, come after it."""
        today = datetime.date.today().isoformat()
        path = RESULTS / f"{today}-{name}.md"
        path.parent.mkdir(exist_ok=True)
        command = " ".join(["python -m benchmarks.gpu", *sys.argv[1:]])
        lines = [f"# {name}, {today}", "", f"`{command}`, {seconds:.0f} s. {_versions()}"]
        lines += [f"A copy: {self.copy_rate:.0f} GB/s.", "", *(f"- {line}" for line in self.summary()), ""]
        header = self._header()
        lines += [_markdown(header), _markdown(("---",) * len(header))]
        lines += [_markdown(self._cells(case, row)) for case, row in self.rows]
        lines += ["", *(f"- {case.name}: {line}" for case, row in self.rows for line in _remarks(row))]
        lines += ["", "Every configuration, when the best was chosen:", ""]
        lines += [
            f"- {case.name}, {_title(peer)}: {_screened(side)}"
            for case, row in self.rows
            for peer, side in row.sides.items()
        ]
        path.write_text("\n".join(lines) + "\n")
        return path

    def _header(self) -> tuple[str, ...]:
        titles = [_title(peer) for peer in self.peers]
        ratios = [f"of {title}" for title in titles[1:]]
        return ("case", "unit", *titles, "vendor", *ratios, "of vendor", "of limit", "our best", "error")

    def _cells(self, case: Case, row: Row) -> tuple[str, ...]:
        ours = row.sides[OURS]
        return (
            case.name,
            case.unit,
            *(_number(row.sides[peer].rate, 4) for peer in self.peers),
            f"{_number(row.vendor_rate, 4)} {row.vendor}",
            *(_number(self._ratio(row, peer), 2) for peer in self.peers[1:]),
            _number(ours.rate / row.vendor_rate, 2),
            _number(ours.rate / case.limit(self.copy_rate), 2),
            _label(ours),
            f"{ours.error:.1e}",
        )

    @staticmethod
    def _ratio(row: Row, peer: str) -> float:
        return row.sides[OURS].rate / row.sides[peer].rate

    def _print(self, cells: tuple[str, ...]) -> None:
        widths = (WIDTHS.get(name, SHORT_WIDTH) for name in self._header())
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip(), flush=True)


def _title(peer: str) -> str:
    return {"deuteron": "ours", "triton": "Triton"}.get(peer, Path(peer).name)


def _number(value: float, digits: int) -> str:
    """With so many digits: a rate with those that count, a ratio with those after the point."""
    if math.isnan(value):
        return "-"
    return f"{value:.2f}" if digits == 2 or value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _mean(ratios: Iterator[float]) -> str:
    """The geometric one."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return f"{math.exp(sum(logarithms) / len(logarithms)):.3f}" if logarithms else "-"


def _label(side: Side) -> str:
    """The best configuration, with a mark where its code spills or has warnings."""
    if side.best is None:
        return "-"
    return side.best.label + (" !" if side.best.label in side.notes else "")


def _remarks(row: Row) -> Iterator[str]:
    """What a reader must know of a row besides its rates."""
    if row.failure:
        yield f"not measured: {row.failure}"
    if row.vendor_failure:
        yield f"vendor: {row.vendor_failure}"
    for peer, side in row.sides.items():
        if side.wrong:
            yield f"{_title(peer)}: WRONG: {'; '.join(side.wrong)}"
        if side.skipped:
            yield f"{_title(peer)}: {len(side.skipped)} skipped, first {side.skipped[0]}"
        for label, notes in side.notes.items():
            yield f"{_title(peer)}: {label}: {notes}"


def _screened(side: Side) -> str:
    return ", ".join(f"{label} {_number(rate, 4)}" for label, rate in side.screened.items()) or "none"


def _versions() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0]
    return (
        f"{gpu}, CUDA {torch.version.cuda}, torch {torch.__version__}, "
        f"Triton {triton.__version__}, Deuteron {deuteron.__version__} at {_commit()}, "
        f"llvmlite {metadata.version('llvmlite')}, Python {platform.python_version()}."
    )


def _commit() -> str:
    """The commit of the Deuteron that ran, where its sources are from a repository."""
    archived = ARCHIVED_COMMIT.read_text().strip()
    if not archived.startswith("$"):
        return archived
    query = ["git", "-C", str(Path(deuteron.__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip() or "an unknown commit"


def _markdown(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"

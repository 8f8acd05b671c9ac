"""The table of a run, and a file of it in benchmarks/results.

print_row(row)                          a line, as soon as it is known
write("baseline", rows, duration)       benchmarks/results/2026-11-20-baseline.md
"""

from __future__ import annotations

import datetime
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import torch
import triton

import deuteron
from benchmarks.gpu.measure import Row, Side

RESULTS = Path(__file__).resolve().parents[1] / "results"
# The commit, in an archive that git made; what it is made of, in a repository.
ARCHIVED_COMMIT = Path(__file__).with_name("archived_commit.txt")
HEADER = ("case", "unit", "ours", "Triton", "vendor", "of Triton", "of vendor", "our best", "Triton's best", "error")
WIDTHS = (31, 8, 7, 7, 14, 9, 9, 24, 24, 8)


def print_header() -> None:
    _print_cells(HEADER)


def print_row(row: Row) -> None:
    _print_cells(_cells(row))
    for line in _remarks(row):
        print(f"    {line}", flush=True)


def write(name: str, rows: list[Row], seconds: float) -> Path:
    """The table with date and versions; what dropped out, and every configuration's first rate, come after it."""
    today = datetime.date.today().isoformat()
    path = RESULTS / f"{today}-{name}.md"
    path.parent.mkdir(exist_ok=True)
    command = " ".join(["python -m benchmarks.gpu", *sys.argv[1:]])
    lines = [f"# {name}, {today}", "", f"`{command}`, {seconds:.0f} s. {_versions()}", ""]
    lines += [_markdown(HEADER), _markdown(("---",) * len(HEADER)), *(_markdown(_cells(row)) for row in rows)]
    lines += ["", *(f"- {row.case.name}: {line}" for row in rows for line in _remarks(row))]
    lines += ["", "Every configuration, when the best was chosen:", ""]
    lines += [f"- {row.case.name}, {peer}: {_screened(side)}" for row in rows for peer, side in row.sides.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def _cells(row: Row) -> tuple[str, ...]:
    ours, theirs = row.sides.get("deuteron", Side()), row.sides.get("triton", Side())
    return (
        row.case.name,
        row.case.unit,
        f"{ours.rate:.0f}",
        f"{theirs.rate:.0f}",
        f"{row.vendor_rate:.0f} {row.vendor}",
        f"{ours.rate / theirs.rate:.2f}",
        f"{ours.rate / row.vendor_rate:.2f}",
        _label(ours),
        _label(theirs),
        f"{ours.error:.1e}",
    )


def _label(side: Side) -> str:
    """The best configuration, with a mark where its code spills or has warnings."""
    if side.best is None:
        return "-"
    return side.best.label + (" !" if side.best.label in side.notes else "")


def _remarks(row: Row) -> Iterator[str]:
    """What a reader must know of a row besides its rates."""
    for peer, side in row.sides.items():
        if side.wrong:
            yield f"{peer}: WRONG: {'; '.join(side.wrong)}"
        if side.skipped:
            yield f"{peer}: {len(side.skipped)} skipped, first {side.skipped[0]}"
        for label, notes in side.notes.items():
            yield f"{peer}: {label}: {notes}"


def _screened(side: Side) -> str:
    return ", ".join(f"{label} {rate:.0f}" for label, rate in side.screened.items()) or "none"


def _versions() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0]
    return (
        f"{torch.cuda.get_device_name()}, driver {driver}, CUDA {torch.version.cuda}, torch {torch.__version__}, "
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


def _print_cells(cells: tuple[str, ...]) -> None:
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip(), flush=True)

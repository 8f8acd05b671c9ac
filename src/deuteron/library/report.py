"""What became of the kernels of a library: registers, spills, shared memory, sizes and times, as a table and as JSON.

rows = rows_of(manifest, seconds)
[row.name for row in rows]                  ["rms_norm_fp16 BLOCK = 1024, 4 warps, 3 stages", ...]
findings(manifest, {"spill", "wgmma"})      what `--werror` makes an error of
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deuteron.aot.dispatch import description_of
from deuteron.aot.metadata import KernelRecord
from deuteron.library.manifest import Manifest

# What may be made an error, and what it means.
CHECKS = {
    "spill": "a thread keeps registers in memory",
    "wgmma": "ptxas waits for every wgmma (C7510 to C7519)",
    "shared": "a block needs more than the 48 KB of shared memory that every GPU gives without asking",
}
_PLAIN_SHARED = 48 * 1024
_SERIALISED = re.compile(r"\(C751[0-9]\)")


@dataclass(frozen=True)
class Row:
    """What is known of a kernel; None where its target has no such thing. Sizes are in bytes."""

    function: str
    algorithm: str
    hints: str
    target: str
    registers: int | None
    spill_bytes: int | None
    shared_bytes: int | None
    scratch_bytes: int
    code_bytes: int
    warnings: tuple[str, ...]
    seconds: float | None


def rows_of(manifest: Manifest, seconds: Mapping[str, float]) -> list[Row]:
    """A row for each kernel; `seconds` has the compile time of those that were compiled now, by identity."""
    return [_row(entry.record, entry.code_bytes, seconds.get(entry.identity)) for entry in manifest.entries]


def _row(record: KernelRecord, code_bytes: int, seconds: float | None) -> Row:
    resources = record.resources
    return Row(
        function=record.out_name,
        algorithm=description_of([record]),
        hints=", ".join(f"{param.name}:{param.hint}" for param in record.c_params if param.hint),
        target=record.target,
        registers=resources.get("registers"),
        spill_bytes=resources.get("spill_bytes"),
        shared_bytes=record.shared if record.backend != "cpu" else None,
        scratch_bytes=record.scratch_bytes,
        code_bytes=code_bytes,
        warnings=tuple(resources.get("warnings", ())),
        seconds=None if seconds is None else round(seconds, 3),
    )


def findings(rows: Collection[Row], checks: Collection[str]) -> list[str]:
    """What the kernels have of that which is to be an error."""
    found = []
    for row in rows:
        where = f"{row.function} ({row.algorithm}) for {row.target}"
        if "spill" in checks and row.spill_bytes:
            found.append(f"{where} spills {row.spill_bytes} bytes a thread")
        if "wgmma" in checks and (said := [text for text in row.warnings if _SERIALISED.search(text)]):
            found.append(f"{where}: {said[0]}")
        if "shared" in checks and (row.shared_bytes or 0) > _PLAIN_SHARED:
            found.append(f"{where} needs {row.shared_bytes} bytes of shared memory")
    return found


def as_fields(rows: Collection[Row]) -> list[dict[str, Any]]:
    """As JSON has them."""
    return [asdict(row) for row in rows]


def table_of(rows: Collection[Row]) -> Any:
    """A table for rich."""
    from rich.table import Table  # deferred: where nothing is shown it is not needed

    table = Table("kernel", "algorithm", "hints", "target", box=None, pad_edge=False)
    for column in ("registers", "spills", "shared", "scratch", "code", "seconds"):
        table.add_column(column, justify="right")
    for row in rows:
        numbers = (row.registers, row.spill_bytes, row.shared_bytes, row.scratch_bytes, row.code_bytes, row.seconds)
        texts = (row.function, row.algorithm, row.hints, row.target)
        table.add_row(*texts, *("" if n is None else str(n) for n in numbers))
    return table

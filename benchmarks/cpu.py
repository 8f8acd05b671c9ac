"""Speed on the CPU beside NumPy's, and torch's where it is installed; results are checked before anything is timed.

Both sides have the same number of threads. NumPy runs elementwise work on one, so everything is measured on one thread;
matrix products and attention, which its BLAS spreads over threads, and all that torch does, on all cores as well. Both
sides write to arrays that are there already, and NumPy's side works in place where it can. A row shows the fastest of
several rounds that alternate between the two.

    python -m benchmarks.cpu                  # every thread count in a process of its own
    python -m benchmarks.cpu --threads 1      # one of them, as JSON
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

from deuteron.backend.llvm.targets import resolve_cpu

TABLE_WIDTH = 120
THREAD_VARIABLES = ("DEUTERON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(threads: int) -> list[dict[str, Any]]:
    """Rows for this process, whose libraries must not have been loaded with another number of threads."""
    os.environ.update({name: str(threads) for name in THREAD_VARIABLES})
    os.environ.update(_openblas())
    from benchmarks.cases import cases  # loads NumPy, which reads these variables

    found = [*cases()]
    if importlib.util.find_spec("torch"):
        from benchmarks.memory_cases import memory_cases  # deferred: as above, and they need torch
        from benchmarks.torch_cases import torch_cases

        found += [*torch_cases(threads), *memory_cases(threads)]
    return [case.measure() | {"threads": threads} for case in found if threads == 1 or case.threaded]


def _openblas() -> dict[str, str]:
    """Settings of NumPy's products: threads sleep after one, else they spin for a while on cores that the other side
    is measured on; and AVX-512 where it is there, which OpenBLAS does not use on processors that it does not know.
    """
    settings = {"OPENBLAS_THREAD_TIMEOUT": "4"}
    return settings | ({"OPENBLAS_CORETYPE": "SkylakeX"} if "+avx512f" in resolve_cpu("native").features else {})


def measure_in_new_process(threads: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.cpu", "--threads", str(threads)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console  # deferred: processes that measure print JSON
    from rich.table import Table

    title = "CPU, fastest calls; green where as fast as it should be"
    table = Table("program", "threads", "Deuteron", "beside", "rate", "speed", "at least", "rel. error", title=title)
    for row in rows:
        speed = row["peer_ms"] / row["ours_ms"]
        colour = "green" if speed >= row["required"] else "red"
        table.add_row(
            row["name"],
            str(row["threads"]),
            f"{row['ours_ms']:.2f} ms",
            f"{row['peer_ms']:.2f} ms",
            row["rate"],
            f"[{colour}]{speed:.2f} x {row['peer']}[/]",
            f"{row['required']:.1f} x",
            f"{row['error']:.0e}",
        )
    Console(width=TABLE_WIDTH).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="print the rows for this number of threads as JSON")
    threads = parser.parse_args().threads
    if threads:
        print(json.dumps(measure(threads)))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    show([row for count in sorted({1, cores}) for row in measure_in_new_process(count)])


if __name__ == "__main__":
    main()

"""How long `deuteron build` takes for a library of 63 kernels: all, what an edit changes, nothing; and how large it is.

    python -m benchmarks.library
    python -m benchmarks.library --processes 1 2 4
    python -m benchmarks.library --dask 1 2 4          on workers of a Dask cluster on this machine

Every full build has an empty cache. Times are those of the command, from its start to its end, and of the processors
with all that it starts, ptxas and the C compiler among them; of builds that do nothing the fastest of five.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
KERNELS = Path(__file__).parents[1] / "examples" / "cmake" / "kernels"
TOML = """
[library.layers]
targets = ["cpu", "cuda:80", "cuda:90"]
shared = true

[[library.layers.kernel]]
source = "kernels/norm.py"
name = "rms_norm"
grid = "rows"
host_parameters = { rows = "i32" }
options = { num_warps = 4 }
types = { x = ["*fp16:16", "*bf16:16", "*fp32:16"], weight = "same:x", out = "same:x", n = "i32:16", eps = "fp32" }
constexprs = { BLOCK = [512, 1024, 4096] }

[[library.layers.kernel]]
source = "kernels/swiglu.py"
name = "swiglu"
grid = "cdiv(n, BLOCK)"
options = { num_warps = [4, 8] }
types = { gate = ["*fp16:16", "*bf16:16", "*fp32:16"], up = "same:gate", out = "same:gate", n = "i32" }
constexprs = { BLOCK = 1024 }

[[library.layers.kernel]]
source = "kernels/attention.py"
name = "attention"
grid = "cdiv(rows, BLOCK), heads"
options = { num_warps = 4, num_stages = 2 }
constexprs = { D = [64, 128], BLOCK = 64 }
[library.layers.kernel.types]
q = ["*fp16:16", "*bf16:16", "*fp32:16"]
k = "same:q"
v = "same:q"
out = "same:q"
scale = "fp32"
rows = "i32"
heads = "i32"
"""


class Took(NamedTuple):
    what: str
    seconds: float
    processor_seconds: float
    said: str


def adopt_orphans() -> None:
    """From now on processes whose parent has ended are this one's children, so that what they took is known."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def processor_seconds() -> float:
    """What all processes took that were started here, once they have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Project:
    """The library's sources in a folder, with a cache of their own."""

    def __init__(self, folder: Path):
        self.folder, self.cache = folder, folder / "cache"
        shutil.copytree(KERNELS, folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "deuteron.toml").write_text(TOML)

    def build(self, what: str, processes: int) -> Took:
        before = processor_seconds()
        seconds, said = self._run("-j", str(processes))
        return Took(what, seconds, processor_seconds() - before, said)

    def _run(self, *options: str) -> tuple[float, str]:
        """How long the command takes, and what it says at its end."""
        command = [sys.executable, "-m", "deuteron", "build", *options]
        environment = {**os.environ, "DEUTERON_CACHE_DIR": str(self.cache)}
        start = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return time.perf_counter() - start, done.stderr.strip().splitlines()[-1]

    def clear(self) -> None:
        for folder in (self.cache, self.folder / "build"):
            shutil.rmtree(folder, ignore_errors=True)

    def full(self, processes: int) -> Took:
        self.clear()
        return self.build(f"all, {processes} process{'es' if processes > 1 else ''}", processes)

    def on_dask(self, workers: int) -> Took:
        """All kernels, C sources only, on workers that run already. What their processors take is not known."""
        from distributed import LocalCluster  # deferred: an extra

        self.clear()
        os.environ["DEUTERON_CACHE_DIR"] = str(self.cache)  # that of the workers
        given = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**given, local_directory=self.folder) as cluster:
            executor = cluster.scheduler_address.replace("tcp://", "dask://")
            took = self._run("--sources-only", "--executor", executor)
        return Took(f"on Dask, workers: {workers}", took[0], math.nan, took[1])

    def edited(self, name: str, processes: int) -> Took:
        """A kernel, or a function that kernels call, with another constant in it."""
        path = self.folder / "kernels" / name
        before, after = {"swiglu.py": ("* tl.load(up", "* 1.5 * tl.load(up"), "norm.py": ("+ eps", "+ 2.0 * eps")}[name]
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))
        return self.build(f"after an edit of {name}", processes)

    def nothing(self) -> Took:
        return min((self.build("nothing to do", 1) for _ in range(5)), key=lambda took: took.seconds)

    def sizes(self) -> Iterator[tuple[str, int]]:
        out = self.folder / "build" / "layers"
        yield "C sources", sum(path.stat().st_size for path in out.rglob("*.c"))
        for name in ("layers.h", "layers.hpp", "layers.json", "liblayers.a", "liblayers.so"):
            yield name, (out / name).stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="of the full builds")
    parser.add_argument("--dask", type=int, nargs="+", help="workers of a Dask cluster to spread full builds over")
    given = parser.parse_args()
    processes = given.processes
    if given.dask:
        with tempfile.TemporaryDirectory(prefix="deuteron-library-") as folder:
            project = Project(Path(folder))
            show([project.on_dask(workers) for workers in given.dask], [])
        return
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="deuteron-library-") as folder:
        project = Project(Path(folder))
        took = [project.full(count) for count in processes]
        took += [project.edited(name, processes[-1]) for name in ("swiglu.py", "norm.py")]
        took.append(project.nothing())
        sizes = list(project.sizes())
    show(took, sizes)


def show(took: list[Took], sizes: list[tuple[str, int]]) -> None:
    times, files = Table("build", "seconds", "of processors", "", box=None), Table("file", "KB", box=None)
    for one in took:
        of_processors = "" if math.isnan(one.processor_seconds) else f"{one.processor_seconds:.2f}"
        times.add_row(one.what, f"{one.seconds:.2f}", of_processors, one.said)
    for name, size in sizes:
        files.add_row(name, f"{size / 1024:.0f}")
    console = Console(width=120)
    console.print(times)
    console.print(files)
    console.print(f"processors {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

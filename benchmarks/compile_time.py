"""Cold compile times: every example for the CPU, in a process that has compiled another kernel, with the cache off.

Also the softmax of rows of 16,384 beside one of rows of 128: compile time must not grow with the tile.

    python -m benchmarks.compile_time
    python -m benchmarks.compile_time --triton     for cuda:90, beside Triton from PyPI in an environment of its own
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

os.environ["DEUTERON_ALWAYS_COMPILE"] = "1"

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import deuteron  # noqa: E402
from benchmarks.compile_peer import CASES  # noqa: E402
from benchmarks.programs import PROGRAMS, Program  # noqa: E402
from benchmarks.triton_environment import triton_python  # noqa: E402
from deuteron.backend import parse_target  # noqa: E402

LIMIT_SECONDS = 1.5
WIDE_LIMIT = 1.2
WIDE_REPEATS = 9
ROUNDS = 6
STAGES = ("ttir", "llir", "asm", "obj")


def compile_once(program: Program) -> tuple[float, dict[str, float]]:
    """The seconds of a compile, and those of its stages."""
    source = program.source()
    start = time.perf_counter()
    kernel = deuteron.compile(source, target=parse_target("cpu"))
    return time.perf_counter() - start, dict(kernel.metadata.stage_times)


def softmax_seconds(block: int) -> float:
    """The fastest of several compiles of rows of this width."""
    softmax = next(program for program in PROGRAMS if program.example == "softmax")
    program = dataclasses.replace(softmax, constexprs={"BLOCK": block})
    return min(compile_once(program)[0] for _ in range(WIDE_REPEATS))


class Cost(NamedTuple):
    """Of a compile. Processor time is what to compare on a machine that does other work too."""

    seconds: float
    processor_seconds: float


class Peer:
    """A process that compiles one case of CASES at a time, with Deuteron or with Triton."""

    def __init__(self, name: str, python: str | Path):
        command = [python, Path(__file__).with_name("compile_peer.py"), name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def compile(self, case: int) -> Cost:
        print(case, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the compile of '{CASES[case].name}' failed")
        return Cost(*map(float, answer.split()))

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def beside_triton() -> bool:
    """Compile times for cuda:90 of both; whether ours all keep to their limits."""
    rounds = [one_round() for _ in range(ROUNDS)]
    title = "Compile for cuda:90, no cache, fastest of several"
    table = Table("kernel", "Deuteron", "Triton", "ratio", "limit", "of processor time", title=title)
    kept = True
    for number, case in enumerate(CASES):
        ours, theirs = (fastest(costs[peer][number] for costs in rounds) for peer in range(2))
        ratio = ours.seconds / theirs.seconds
        kept &= ratio <= case.limit
        colour = "green" if ratio <= case.limit else "red"
        times = (f"{cost.seconds * 1e3:.0f} ms" for cost in (ours, theirs))
        used = f"{ours.processor_seconds / theirs.processor_seconds:.2f}"
        table.add_row(case.name, *times, f"[{colour}]{ratio:.2f}[/]", f"{case.limit}", used)
    Console().print(table)
    return kept


def fastest(costs: Iterable[Cost]) -> Cost:
    return Cost(*map(min, zip(*costs, strict=True)))


def one_round() -> tuple[list[Cost], list[Cost]]:
    """What each case costs us and Triton, in new processes that have compiled a kernel and take turns."""
    peers = Peer("deuteron", sys.executable), Peer("triton", triton_python())
    for peer in peers:
        peer.compile(0)
    turns = [[peer.compile(number) for peer in peers] for number in range(len(CASES))]
    for peer in peers:
        peer.end()
    ours, theirs = zip(*turns, strict=True)
    return list(ours), list(theirs)


def on_the_cpu() -> None:
    # Another kernel first: what is measured is a compiler that is loaded, on a kernel that it has not seen.
    compile_once(dataclasses.replace(PROGRAMS[0], constexprs={"BLOCK": 64}))
    table = Table("kernel", "seconds", *STAGES, "limit", title="First compile of each kernel for the CPU, warm process")
    for program in PROGRAMS:
        seconds, stages = compile_once(program)
        colour = "green" if seconds <= LIMIT_SECONDS else "red"
        in_stages = (f"{stages.get(stage, 0):.2f}" for stage in STAGES)
        table.add_row(program.kernel, f"[{colour}]{seconds:.2f}[/]", *in_stages, f"{LIMIT_SECONDS}")
    Console().print(table)

    narrow, wide = softmax_seconds(128), softmax_seconds(16_384)
    ratio = f"{wide / narrow:.2f} times as long (at most {WIDE_LIMIT})"
    print(f"softmax 16,384 wide: {wide * 1e3:.0f} ms, 128 wide: {narrow * 1e3:.0f} ms, {ratio}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Cold compile times.")
    parser.add_argument("--triton", action="store_true", help="for cuda:90, beside Triton's")
    if parser.parse_args().triton:
        return 0 if beside_triton() else 1
    on_the_cpu()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Cold compile times for the CPU: every example, in a process that has compiled another kernel, with the cache off.

Also the softmax of rows of 16,384 beside one of rows of 128: compile time must not grow with the tile.

    python benchmarks/compile_time.py
"""

from __future__ import annotations

import dataclasses
import os
import time

os.environ["DEUTERON_ALWAYS_COMPILE"] = "1"

from programs import PROGRAMS, Program  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import deuteron  # noqa: E402
from deuteron.options import parse_target  # noqa: E402

LIMIT_SECONDS = 1.5
WIDE_LIMIT = 1.2
WIDE_REPEATS = 9
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


def main() -> None:
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


if __name__ == "__main__":
    main()

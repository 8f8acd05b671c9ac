"""torch.compile on the CPU: Deuteron beside Inductor's C++ backend and eager mode, run time and compile time.

    python -m benchmarks.torch_compile                      1 and 2 threads, each in a process of its own
    python -m benchmarks.torch_compile --threads 1 softmax  some programs on one thread, as JSON

Times are of the processor, of all threads of the process and, for compiling, of the compilers that it runs: other work
on the machine does not count. Calls are measured in turns, eager, C++, Deuteron and again, and the fastest turn counts.
Compiling is the first call: Dynamo, Inductor and the backend, in one process, with nothing cached. `triton-deuteron`,
torch and a C++ compiler must be installed. torch is imported by the processes that measure, once their threads are
set.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

TURNS = 12
SECONDS_OF_A_TURN = 0.02
BACKENDS = {"C++": "cpp", "Deuteron": "triton"}


def measure(threads: int, names: list[str]) -> list[dict[str, Any]]:
    """Rows of this process, which must not have loaded torch with another number of threads."""
    os.environ.update(DEUTERON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    from benchmarks.torch_programs import PROGRAMS  # loads torch, which reads these variables

    _compile_each(lambda: (lambda x: x + 1, ()), warm=True)
    return [{"name": name, "threads": threads} | _measure(PROGRAMS[name]) for name in names or PROGRAMS]


def _measure(make: Callable) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    _, arguments = make()
    calls, row = _compile_each(make)
    expected = calls["eager"](*arguments)
    for name, call in calls.items():
        torch.testing.assert_close(call(*arguments), expected, rtol=2e-2, atol=2e-3, msg=lambda t, n=name: f"{n}: {t}")
    counts = {name: _calls_of_a_turn(call, arguments) for name, call in calls.items()}
    best = dict.fromkeys(calls, math.inf)
    for _ in range(TURNS):
        for name, call in calls.items():
            best[name] = min(best[name], _seconds_of(call, arguments, counts[name]))
    return row | {f"{name} ms": 1e3 * seconds for name, seconds in best.items()}


def _compile_each(make: Callable, warm: bool = False) -> tuple[dict[str, Callable], dict[str, float]]:
    """The program in eager mode and by each backend, and the seconds of each first call."""
    import torch
    from torch._inductor import config

    torch.manual_seed(0)
    function, arguments = make()
    arguments = (torch.randn(99),) if warm else arguments
    calls, row = {"eager": function}, {}
    for name, backend in BACKENDS.items():
        torch.manual_seed(0)
        function, _ = make()
        calls[name] = torch.compile(_with_own_code(function))
        start = _processor_seconds()
        with config.patch(cpu_backend=backend, compile_threads=1, force_disable_caches=True):
            calls[name](*arguments)
        row[f"{name} compile s"] = _processor_seconds() - start
    return calls, row


def _with_own_code(function: FunctionType) -> FunctionType:
    """The function with a code object of its own: what torch has compiled, it finds by that."""
    code, closure = function.__code__.replace(), function.__closure__
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)


def _processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _calls_of_a_turn(call: Callable, arguments: tuple) -> int:
    return max(1, round(SECONDS_OF_A_TURN / _seconds_of(call, arguments, 3)))


def _seconds_of(call: Callable, arguments: tuple, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call(*arguments)
    return (time.process_time() - start) / count


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, with the geometric means of what Deuteron gains."""
    head = [
        "program",
        "threads",
        "eager ms",
        "C++ ms",
        "Deuteron ms",
        "C++ / Deuteron",
        "C++ compile s",
        "Deuteron compile s",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for row in rows:
        speed = row["C++ ms"] / row["Deuteron ms"]
        numbers = [f"{row[key]:.3f}" for key in ("eager ms", "C++ ms", "Deuteron ms")]
        seconds = [f"{row[f'{name} compile s']:.2f}" for name in BACKENDS]
        lines.append(f"| {row['name']} | {row['threads']} | {' | '.join([*numbers, f'{speed:.2f}', *seconds])} |")
    for threads in sorted({row["threads"] for row in rows}):
        own = [row for row in rows if row["threads"] == threads]
        speed = _mean([row["C++ ms"] / row["Deuteron ms"] for row in own])
        eager = _mean([row["eager ms"] / row["Deuteron ms"] for row in own])
        compile = _mean([row["Deuteron compile s"] / row["C++ compile s"] for row in own])
        lines.append(
            f"\nOn {threads} threads, geometric means: {speed:.2f} of the speed of C++, {eager:.2f} of eager mode's, "
            f"{compile:.2f} of the time of C++ to compile."
        )
    return "\n".join(lines)


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--threads", type=int, help="measure in this process and print JSON")
    options = parser.parse_args()
    if options.threads:
        print(json.dumps(measure(options.threads, options.names)))
        return
    rows = []
    for threads in (1, 2):
        command = [sys.executable, "-m", "benchmarks.torch_compile", "--threads", str(threads), *options.names]
        rows += json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        )
    print(table(rows))


if __name__ == "__main__":
    main()

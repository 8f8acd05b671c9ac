"""torch.compile on this machine's GPU: Inductor with Deuteron beside Inductor with the Triton that is installed.

    python -m benchmarks.torch_gpu                          programs of the sizes of models, and those of the tests
    python -m benchmarks.torch_gpu --seconds 300 softmax    names that contain a word; no new program after so long

Each compiler has a process of its own, in which `import triton` is Deuteron or Triton. Both run every program, at the
same time: those of the tests are compared with eager mode in float64, the others with eager mode as it is, within
2e-2. Then they take turns in calling it, and the fastest turn counts. A call is from Python, so small programs show
what a launch costs. Compile times are of the first call with empty caches, of the programs that no test has.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COMPILERS = ("Deuteron", "Triton")
TURNS = 5
CALLS_OF_A_TURN = 100
Answer = dict[str, Any]


class Worker:
    """A process that compiles with one of the compilers; what it is asked and answers are lines of JSON."""

    def __init__(self, compiler: str, folder: str):
        own = [str(ROOT / "packages" / "triton-deuteron")] if compiler == "Deuteron" else []
        caches = {name: f"{folder}/{compiler}/{name}" for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        paths = [*own, str(ROOT / "src"), str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.torch_gpu", "--worker"],
            env={**os.environ, **caches, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, *question: Any) -> None:
        print(json.dumps(question), file=self._process.stdin, flush=True)

    def answer(self) -> Answer:
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self._process.wait()}"}


def measure(names: list[str], workers: list[Worker], seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each program: what each compiler answered, and the microseconds of a call."""
    end = time.monotonic() + seconds
    for name in names:
        if time.monotonic() > end:
            print(f"\nno time was left for {name} and what follows it", flush=True)
            return
        row: dict[str, Any] = {"name": name}
        for worker in workers:
            worker.send("check", name)
        row |= {compiler: worker.answer() for compiler, worker in zip(COMPILERS, workers, strict=True)}
        if not any("error" in row[compiler] for compiler in COMPILERS):
            row |= _timed(workers)
        yield row


def _timed(workers: list[Worker]) -> dict[str, Any]:
    """The fastest turn of each worker; nothing where the program is only compared."""
    turns = [[_ask(worker, "time") for worker in workers] for _ in range(TURNS)]
    if turns[0][0] is None:
        return {}
    return {"us": [1e6 * min(times) for times in zip(*turns, strict=True)]}


def _ask(worker: Worker, *question: Any) -> Any:
    worker.send(*question)
    return worker.answer()["value"]


def line(row: dict[str, Any]) -> str:
    """A row of the table in Markdown."""
    ours, theirs = row.get("us", (math.nan, math.nan))
    compiled = " | ".join(_first_call(row[name]) for name in COMPILERS)
    return f"| {row['name']} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f} | {compiled} |"


def _first_call(answer: Answer) -> str:
    """Its seconds, nothing where it was not timed by itself."""
    if "error" in answer:
        return "fails"
    return "" if answer["value"] is None else f"{answer['value']:.1f}"


def summary(rows: list[dict[str, Any]]) -> str:
    both = [row for row in rows if "us" in row]
    speed = _geometric_mean([row["us"][1] / row["us"][0] for row in both])
    timed = [row for row in both if row["Deuteron"]["value"] is not None]
    compile = _geometric_mean([row["Deuteron"]["value"] / row["Triton"]["value"] for row in timed])
    right = [sum("value" in row[name] for row in rows) for name in COMPILERS]
    return (
        f"{len(rows)} programs, right by Deuteron {right[0]}, by Triton {right[1]}; geometric means of {len(both)}: "
        f"{speed:.2f} of Triton's speed; of {len(timed)} {compile:.2f} of its time to compile"
    )


def _geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


# What a worker does.


def work() -> None:
    """Answer the questions of standard input, on what was standard output; what torch prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    programs = Programs()
    print(json.dumps({"value": list(programs.known), "triton": programs.triton}), file=answers, flush=True)
    for text in sys.stdin:
        kind, *arguments = json.loads(text)
        try:
            answer = {"value": getattr(programs, kind)(*arguments)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Programs:
    """The programs on the GPU. The last one that was checked is the one that is timed."""

    def __init__(self) -> None:
        import torch_compile.programs  # noqa: F401 declares them; deferred, as torch and triton: see above
        import triton
        from torch_compile.declaration import ALL

        from benchmarks.torch_programs import PROGRAMS

        self.triton = f"{triton.__version__}, {triton.__file__}"
        self.known: dict[str, Callable[[], float | None]] = {
            **{name: lambda make=make: self._check_made(make) for name, make in PROGRAMS.items()},
            **{f"test: {name}": lambda program=program: self._check_declared(program) for name, program in ALL.items()},
        }
        self._call: Callable[[], Any] | None = None

    def check(self, name: str) -> float | None:
        """Compare a program with eager mode; returns the seconds of the first call, if that was timed by itself."""
        import torch

        torch._dynamo.reset()
        self._call = None
        return self.known[name]()

    def time(self) -> float | None:
        """Seconds of a call; None for a program that is only compared."""
        import torch

        if self._call is None:
            return None
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS_OF_A_TURN):
            self._call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / CALLS_OF_A_TURN

    def _check_made(self, make: Callable[[], tuple[Callable, tuple]]) -> float:
        """One of `torch_programs`, compared with eager mode as it is."""
        import torch

        torch.manual_seed(0)
        with torch.device("cuda"):
            function, arguments = make()
        expected = function(*arguments)
        compiled = torch.compile(function)
        start = time.perf_counter()
        given = compiled(*arguments)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        torch.testing.assert_close(given, expected, rtol=2e-2, atol=2e-3)
        self._call = lambda: compiled(*arguments)
        return seconds

    def _check_declared(self, program: Any) -> None:
        """One of the tests. Its calls are timed where a call of it is a call of what was compiled."""
        import torch
        from torch_compile.running import check

        check(program, seed=7, device="cuda")
        with torch.device("cuda"):
            function = program.build()
        if not program.gradients and not hasattr(function, "compiled"):
            compiled = torch.compile(function, dynamic=program.dynamic)
            generator = torch.Generator().manual_seed(7)
            arguments = [make(generator).cuda() for make in program.inputs[0]]
            compiled(*arguments)
            self._call = lambda: compiled(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="what the names of programs contain; all by default")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no program after so many")
    parser.add_argument("--worker", action="store_true", help="answer questions; for this program itself")
    options = parser.parse_args()
    if options.worker:
        work()
        return
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(compiler, folder) for compiler in COMPILERS]
        ready = [worker.answer() for worker in workers]
        for compiler, answer in zip(COMPILERS, ready, strict=True):
            print(f"{compiler}: {answer.get('triton', answer.get('error'))}")
        names = [n for n in ready[0]["value"] if not options.words or any(word in n for word in options.words)]
        print("\n| program | Deuteron us | Triton us | speed | Deuteron compile s | Triton compile s |")
        print("|---|--:|--:|--:|--:|--:|")
        rows = []
        for row in measure(names, workers, options.seconds):
            rows.append(row)
            print(line(row), flush=True)
        print(f"\n{summary(rows)}")
        for row in rows:
            for compiler in COMPILERS:
                if "error" in row[compiler]:
                    print(f"{row['name']}, {compiler}: {_first_lines(row[compiler]['error'])}")


def _first_lines(text: str) -> str:
    return " ".join(text.split())[:200]


if __name__ == "__main__":
    main()

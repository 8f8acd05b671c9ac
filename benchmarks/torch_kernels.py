"""Times of the kernels that Inductor writes, on this machine's GPU: Deuteron beside the Triton that is installed.

    python -m benchmarks.torch_kernels                          the programs of benchmarks/torch_models
    python -m benchmarks.torch_kernels --processes 4 --seconds 300 softmax
                                                                names that contain a word; no new program after so long,
                                                                for each of the two parts

Each compiler has some processes, in which `import triton` is Deuteron or Triton; they share out the programs. First all
of them compile, at the same time, and compare with eager mode; configurations are measured one kernel at a time. Then
they take turns, one program at a time, and torch's profiler says how long each kernel ran: the fastest of some rounds.
Both write the same kernels, so names tell which to compare, unless they have chosen to fuse otherwise.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COMPILERS = ("Deuteron", "Triton")
ROUNDS = 3
CALLS_OF_A_ROUND = 5
MIN_US = 5.0
"""Kernels that take less are not told: what they take is the launch."""
Row = dict[str, Any]


# What asks.


def start(compiler: str, names: list[str], folder: str, seconds: float) -> subprocess.Popen:
    """A worker for some of the programs."""
    own = [str(ROOT / "packages" / "triton-deuteron")] if compiler == "Deuteron" else []
    caches = {name: f"{folder}/{compiler}/{name}" for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    paths = [*own, str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    options = ["--worker", f"{folder}/gpu.lock", "--seconds", str(seconds)]
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.torch_kernels", *options, *names],
        env={**os.environ, **caches, "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def measure(names: list[str], processes: int, seconds: float, folder: str) -> dict[str, dict[str, Row]]:
    """A row of each compiler for each program that it reached."""
    rows: dict[str, dict[str, Row]] = {compiler: {} for compiler in COMPILERS}
    workers = [
        (compiler, start(compiler, names[first::processes], folder, seconds))
        for compiler, first in itertools.product(COMPILERS, range(processes))
        if names[first::processes]
    ]
    for is_timed in (False, True):
        for _, worker in workers:
            print("time" if is_timed else "check", file=worker.stdin, flush=True)
        for compiler, worker in workers:
            for row in _answers(worker):
                rows[compiler].setdefault(row["name"], {}).update(row)
                print(compiler, json.dumps(row), file=sys.stderr, flush=True)
    for _, worker in workers:
        worker.stdin.close()
        worker.wait()
    return rows


def _answers(worker: subprocess.Popen) -> list[Row]:
    """The rows of one question; those so far of a worker that died."""
    lines = iter(worker.stdout.readline, "")
    return [json.loads(line) for line in itertools.takewhile(lambda line: line != "done\n", lines)]


def report(rows: dict[str, dict[str, Row]]) -> None:
    """The table, in Markdown, and what is slower, wrong or missing."""
    print("| program | Deuteron us | Triton us | speed | Deuteron error | Triton error |\n|---|--:|--:|--:|--:|--:|")
    speeds, kernels, others = [], [], []
    for name, ours in rows["Deuteron"].items():
        theirs = rows["Triton"].get(name, {"error": "not reached"})
        failed = [f"{name}, {c}: {r['error']}" for c, r in zip(COMPILERS, (ours, theirs), strict=True) if "error" in r]
        others += failed
        if failed or "kernels" not in ours or "kernels" not in theirs:
            continue
        own, other = (sum(us for us in row["kernels"].values()) for row in (ours, theirs))
        if not own or not other:
            continue
        speeds.append(other / own)
        print(f"| {name} | {own:.1f} | {other:.1f} | {other / own:.2f} | {ours['off']:.0e} | {theirs['off']:.0e} |")
        kernels += _pairs(name, ours["kernels"], theirs["kernels"])
    print(f"\n{_summary(speeds, kernels)}\n")
    for ratio, own, name, kernel in sorted(kernels):
        if ratio < 0.95:
            print(f"{ratio:.2f} {own:9.1f} us  {name}: {kernel}")
    print("\n".join(others))


def _pairs(name: str, ours: dict[str, float], theirs: dict[str, float]) -> list[tuple[float, float, str, str]]:
    both = [kernel for kernel in ours if kernel in theirs and max(ours[kernel], theirs[kernel]) >= MIN_US]
    return [(theirs[kernel] / ours[kernel], ours[kernel], name, kernel) for kernel in both]


def _summary(speeds: list[float], kernels: list[tuple[float, float, str, str]]) -> str:
    mean = math.exp(sum(map(math.log, speeds)) / len(speeds)) if speeds else math.nan
    slow, fast = (sum(test(kernel[0]) for kernel in kernels) for test in (lambda x: x < 0.9, lambda x: x > 1.1))
    return (
        f"{len(speeds)} programs: geometric mean {mean:.3f} of Triton's speed; of {len(kernels)} kernels "
        f"of {MIN_US:.0f} us and more {slow} are below 0.9, {fast} above 1.1"
    )


# What a worker does.


def work(names: list[str], lock: str, seconds: float) -> None:
    """Answer the questions of standard input, on what was standard output; what torch prints goes to standard error."""
    import filelock  # comes with torch

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    gpu = filelock.FileLock(lock)
    _tune_alone(gpu)
    for question in sys.stdin:
        end = time.monotonic() + seconds
        for name in names:
            if time.monotonic() > end:
                break
            try:
                row = _timed(name, gpu) if question == "time\n" else _checked(name, gpu)
            except Exception as error:
                row = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
            print(json.dumps({"name": name, **row}), file=answers, flush=True)
        print("done", file=answers, flush=True)


def _tune_alone(gpu: AbstractContextManager) -> None:
    """Let Inductor measure configurations while it has the GPU."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    measure = CachingAutotuner.benchmark_all_configs

    def measure_alone(self: CachingAutotuner, *args: Any, **kwargs: Any) -> Any:
        with gpu:
            return measure(self, *args, **kwargs)

    CachingAutotuner.benchmark_all_configs = measure_alone


def _checked(name: str, gpu: AbstractContextManager) -> Row:
    """Compile a program and compare it with eager mode."""
    import torch

    from benchmarks.torch_models import PROGRAMS

    function, call = _compiled(name)
    start = time.perf_counter()
    given = call()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    with gpu:
        off = max(map(_error, given, function()), default=0.0)
    row = {"first call s": seconds, "off": off}
    return row if off <= PROGRAMS[name].tolerance else {**row, "error": f"wrong: {off:.1e} of eager mode"}


def _timed(name: str, gpu: AbstractContextManager) -> Row:
    """Microseconds of each kernel in a call."""
    import torch

    _, call = _compiled(name)
    call()
    torch.cuda.synchronize()
    with gpu:
        rounds = [_round(call) for _ in range(ROUNDS)]
    return {"kernels": {kernel: min(r.get(kernel, math.inf) for r in rounds) for kernel in rounds[0]}}


def _round(call: Callable[[], Any]) -> dict[str, float]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(CALLS_OF_A_ROUND):
            call()
        torch.cuda.synchronize()
    events = [event for event in profiled.key_averages() if event.key.startswith("triton_")]
    return {event.key: event.self_device_time_total / CALLS_OF_A_ROUND for event in events}


def _compiled(name: str) -> tuple[Callable[[], list], Callable[[], list]]:
    """Eager and compiled calls on the same arguments. They give the results, and the gradients of what requires one."""
    import torch
    from torch.utils._pytree import tree_leaves

    from benchmarks.torch_models import PROGRAMS

    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    with torch.device("cuda"):
        function, arguments = PROGRAMS[name].make()
    compiled = torch.compile(function, dynamic=False)
    inputs = [a for a in arguments if a.requires_grad]
    weights: list[torch.Tensor] = []

    def run(function: Callable) -> list[torch.Tensor]:
        results = tree_leaves(function(*arguments))
        if not inputs:
            return results
        roots = [result for result in results if result.requires_grad]
        if not weights:
            weights.extend(torch.randn_like(root) for root in roots)
        return results + list(torch.autograd.grad(roots, inputs, weights))

    return lambda: run(function), lambda: run(compiled)


def _error(given: Any, expected: Any) -> float:
    """The largest difference, of the largest number; of integers the share that is more than one apart."""
    if given.shape != expected.shape or given.dtype != expected.dtype:
        return math.inf
    a, b = given.double(), expected.double()
    if not given.dtype.is_floating_point:
        return ((a - b).abs() > 1).double().mean().item()
    same = (a == b) | (a.isnan() & b.isnan())
    largest = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 1.0
    off = (a - b).abs()[~same]
    return 0.0 if same.all() else off.nan_to_num(math.inf).max().item() / max(largest, 1e-30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="what the names of programs contain; all by default")
    parser.add_argument("--processes", type=int, default=4, help="of each compiler")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no program after so many, twice")
    parser.add_argument("--folder", help="keep torch's caches there: the kernels, and their chosen configurations")
    parser.add_argument("--worker", metavar="LOCK", help="answer questions; for this program itself")
    options = parser.parse_args()
    if options.worker:
        work(options.words, options.worker, options.seconds)
        return
    from benchmarks.torch_models import PROGRAMS  # deferred: torch

    names = [name for name in PROGRAMS if not options.words or any(word in name for word in options.words)]
    with tempfile.TemporaryDirectory() as folder:
        report(measure(names, options.processes, options.seconds, options.folder or folder))


if __name__ == "__main__":
    main()

"""torch's own table of operators (`torch.testing._internal`), each compiled for the CPU and compared.

    cd tests; python -m torch_compile.operators                         all of them: ten minutes of a core
    cd tests; python -m torch_compile.operators softmax norm            whose names contain a word
    cd tests; python -m torch_compile.operators --dtype float16 --samples 5

torch's own tests of this backend (test/inductor/test_triton_cpu_backend.py of its repository) do not ship with it; what
they take operators and arguments from does. Of each operator the first samples that torch draws are compiled by way of
Triton's language, and what comes out is compared with eager mode. What differs, or fails, is done again by Inductor's
C++ backend: where that is wrong as well it is torch's. Each operator has so many seconds, in a process that may end.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch._inductor import config, metrics
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

TOLERANCE_FACTOR = 4  # of torch.testing.assert_close, for sums in another order


class Worker:
    """A process that answers names with outcomes; a new one where it has ended."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._command = [sys.executable, "-m", "torch_compile.operators", "--worker", "--dtype", options.dtype]
        self._command += ["--samples", str(options.samples)]
        self._seconds, self._process = options.seconds, None

    def outcome(self, name: str) -> dict[str, Any]:
        if self._process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(self._command, text=True, **pipes)
        print(name, file=self._process.stdin, flush=True)
        ready, _, _ = select.select([self._process.stdout], [], [], self._seconds)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self._process.kill()
        status, self._process = self._process.wait(), None
        return {"outcome": "ended" if ready else "timeout", "why": f"status {status}"}


def compare_all(options: argparse.Namespace) -> int:
    worker, table = Worker(options), Counter()
    for name in names(options.dtype, options.words):
        found = worker.outcome(name)
        table[found["outcome"]] += 1
        if found["outcome"] in ("wrong", "error", "ended", "timeout"):
            print(f"{found['outcome']:8} {name}: {found['why']}", flush=True)
    print(f"{options.dtype}: " + ", ".join(f"{count} {outcome}" for outcome, count in table.most_common()))
    return int(any(table[outcome] for outcome in ("wrong", "error", "ended", "timeout")))


def names(dtype: str, words: list[str]) -> list[str]:
    """The operators that take such numbers, of those whose names contain a word."""
    return [name for name in _operators(dtype) if not words or any(word in name for word in words)]


def _operators(dtype: str) -> dict[str, Any]:
    takers = (op for op in op_db if getattr(torch, dtype) in op.supported_dtypes("cpu"))
    return {f"{op.name} {op.variant_test_name}".strip(): op for op in takers}


def answer(options: argparse.Namespace) -> None:
    """What a worker does."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    known = _operators(options.dtype)
    for line in sys.stdin:
        print(json.dumps(_outcome(known[line.strip()], options)), file=answers, flush=True)


def _outcome(op: Any, options: argparse.Namespace) -> dict[str, Any]:
    """`right`: at least one kernel was ours. `without a kernel`: torch calls functions of its own for all of it."""
    samples, num_kernels = list(_samples(op, getattr(torch, options.dtype), options.samples)), 0
    for sample in samples:
        try:
            num_kernels += _compare(op, sample, "triton")
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).strip()[:300]}".replace("\n", " ")
            kind = "wrong" if isinstance(error, AssertionError) else "error"
            return {"outcome": f"torch's {kind}" if _fails_in_cpp(op, sample) else kind, "why": why}
    return {"outcome": "right" if num_kernels else "without a kernel" if samples else "not compared"}


def _samples(op: Any, dtype: Any, count: int) -> Iterator[Any]:
    """Those for which eager mode gives the same twice."""
    torch.manual_seed(0)
    for sample in islice(op.sample_inputs("cpu", dtype), count):
        try:
            torch.testing.assert_close(_call(op, sample), _call(op, sample), rtol=0, atol=0, equal_nan=True)
        except Exception:  # noqa: BLE001  draws random numbers, or gives no tensors
            continue
        yield sample


def _call(op: Any, sample: Any, function: Callable | None = None) -> Any:
    def fresh(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else value

    args, kwargs = pytree.tree_map(fresh, ((sample.input, *sample.args), sample.kwargs))
    return (function or op)(*args, **kwargs)


def _compare(op: Any, sample: Any, backend: str) -> int:
    """How many kernels a compiled call has; AssertionError where it gives something else."""
    torch._dynamo.reset()
    metrics.reset()
    with config.patch(cpu_backend=backend):
        got = _call(op, sample, torch.compile(lambda *args, **kwargs: op(*args, **kwargs), dynamic=False))
    expected = _call(op, sample)

    for results in zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True):
        _compare_results(*results)
    return metrics.generated_kernel_count


def _compare_results(got: Any, expected: Any) -> None:
    if not isinstance(expected, torch.Tensor):
        assert got == expected or (got != got and expected != expected), f"{got} is not {expected}"
        return
    rtol, atol = (TOLERANCE_FACTOR * tolerance for tolerance in default_tolerances(got, expected))
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)


def _fails_in_cpp(op: Any, sample: Any) -> bool:
    try:
        _compare(op, sample, "cpp")
    except Exception:  # noqa: BLE001  whatever it is, it is not ours alone
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description="torch's operators by torch.compile, beside eager mode.")
    parser.add_argument("words", nargs="*", help="parts of names; default: all")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=2, help="of each operator")
    parser.add_argument("--seconds", type=float, default=120, help="for an operator")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        answer(options)
        return 0
    return compare_all(options)


if __name__ == "__main__":
    sys.exit(main())

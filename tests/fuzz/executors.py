"""Runs a case on executors and compares each with what is expected.

    for outcome in run_case(case, ["cpu", "cuda:90"], announce=print): ...

Executors: `cpu`; `cpu:x86-64-v3`, code of another processor, which this one runs; `checked`, the CPU with every access
checked (`checked.py`); `cuda:80`, `cuda:90`, also :89, :100, :120 (compiled as far as PTX, which the emulator runs,
asynchronous results visible at random moments; `cuda:90/early` and `/late` choose);
`cuda:90/costs`, `gpu/costs`, `cpu/costs`, compiled by any costs (`any_costs.py`); `cpu/pages`, arrays between pages
that fault (`pages.py`); `overlapping`, `overlapping:80`, `overlapping:90`: the CPU and these with arrays that are views
of one (`overlapping.py`); `gpu`, the machine's;
`triton`, what Triton's frontend makes of the program, on the CPU (`triton.py`); `claims`, what analyses say of it
beside the interpreter (`claims.py`); `jit`, the CPU by way of `kernel[grid](...)`, again and again (`jit.py`);
`python`, CPython itself, of kernels that are plain Python (`control_flow.py`); `aot`, `aot:aarch64`: a program of C
(`aot.py`).
"""

from __future__ import annotations

import gc
import os
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from deuteron.compiler import ASTSource, CompiledKernel, IRSource
from deuteron.compiler.driver import compile_with, resolve_target
from deuteron.errors import (
    CompilationError,
    DeuteronError,
    InternalError,
    MemoryAccessError,
    OutOfResources,
    UsageError,
)
from deuteron.interpreter.rules import RULES
from deuteron.ir.text import print_module
from tests.fuzz.any_costs import CPU_COSTS, any_costs
from tests.fuzz.aot import run_in_c
from tests.fuzz.case import MANTISSA, SIGNATURE, Argument, Case
from tests.fuzz.checked import difference_of_short, launch_checked
from tests.fuzz.claims import difference_of_claims
from tests.fuzz.control_flow import run_by_python
from tests.fuzz.ir_edits import edited
from tests.fuzz.jit import difference_of_launches
from tests.fuzz.oracle import Expected, expect, interpret
from tests.fuzz.overlapping import difference_of_overlapping
from tests.fuzz.pages import knows_alignment, launch_on_pages
from tests.fuzz.triton import triton_source
from tests.processor_time import slowness, used


@dataclass(frozen=True)
class Outcome:
    """What an executor made of a case.

    kind  ok; refused (a located error that says so); invalid (the program is at fault: the generator is to be mended);
          wrong; error (an internal error, any other exception); slow (right, but compiled for longer than
          `MOST_SECONDS`); abort and timeout (the process is gone)
    """

    executor: str
    kind: str
    message: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind in ("wrong", "error", "slow", "abort", "timeout")

    @property
    def signature(self) -> str:
        """Equal for what is likely one defect: the executor's kind, the kind, the message without numbers and names."""
        executor = re.sub(r"[:/].*", "", self.executor)
        if self.kind == "wrong":
            return f"{executor} wrong"
        line = next((line for line in self.message.splitlines() if line.strip()), "")
        line = re.sub(r"^\S+\.py:\d+:\d+: ", "", line)
        line = re.sub(r"0x[0-9a-f]+|%?[A-Za-z]*\d+|<[^>]*>", "#", line)
        return f"{executor} {self.kind} {line[:110]}"


REFUSALS = (CompilationError, OutOfResources, UsageError)
OVERLAPPING = "overlapping"
TRITON = "triton"
COSTS = "costs"
PAGES = "pages"
CLAIMS = "claims"
JIT = "jit"
AOT = "aot"
PYTHON = "python"
ORIGINAL = "original"
MOST_SECONDS = 5.0  # of a processor of known speed, to compile a program for one target


def signature_of(argument: Argument) -> str:
    name = SIGNATURE.get(argument.dtype, argument.dtype.replace("uint", "u").replace("int", "i").replace("float", "fp"))
    return name if argument.size is None else f"*{name}"


def source_of(case: Case, is_aligned: bool = True) -> ASTSource:
    """With the hints that a launch would give: arrays begin at multiples of 16, if they do, and some numbers are."""
    attributes = {}
    for index, argument in enumerate(case.arguments):
        if is_aligned if argument.size is not None else _is_multiple_of_16(argument):
            attributes[(index,)] = [["tt.divisibility", 16]]
    return ASTSource(case.function(), {a.name: signature_of(a) for a in case.arguments}, {}, attributes)


def _signature_text(case: Case) -> str:
    """The types and hints of a case, as `deuteron compile` takes them."""
    hints = [":16" if a.size or a.dtype != "int1" and _is_multiple_of_16(a) else "" for a in case.arguments]
    return ", ".join(f"{signature_of(a)}{hint}" for a, hint in zip(case.arguments, hints, strict=True))


def _is_multiple_of_16(number: Argument) -> bool:
    return number.dtype not in MANTISSA and number.fill % 16 == 0 and number.fill >= 0


def run_case(case: Case, executors: Sequence[str], announce: Callable[[str], None], runs: int = 5) -> Iterator[Outcome]:
    """An outcome for each executor; one for the frontend or interpreter alone where these do not get through."""
    announce("frontend")
    try:
        source = source_of(case)
        module = _lower(source)
        if case.edits:
            module = edited(module, case.edits)
            source = IRSource.from_text(print_module(module), "ttir")
        announce("interpreter")
        expected = expect(case, module, runs)
    except Exception as error:
        failure = _failure("frontend" if not isinstance(error, MemoryAccessError) else "interpreter", error)
        yield _refused_by_both(case, failure) if TRITON in executors and failure.kind == "refused" else failure
        return
    yield Outcome("interpreter", "ok", f"{expected.share:.3f}")
    if case.original:
        yield _compared(ORIGINAL, _difference_of_original(case.original, expected), 0.0)
    for executor in (executor for executor in executors if executor != ORIGINAL):
        announce(executor)
        try:
            if executor == CLAIMS:
                yield _compared(executor, difference_of_claims(case, module), 0.0)
                continue
            if executor == JIT:
                yield _compared(executor, difference_of_launches(case, runs), 0.0)
                continue
            arrays, seconds = launch(case, source, executor)
            found = _further(case, source, module, executor, runs)
        except Exception as error:
            yield _failure(executor, error)
            continue
        with np.errstate(all="ignore"):
            problem = _allowed(case, module, executor, expected, runs).difference(arrays) or found
        yield _compared(executor, problem, seconds)
    gc.collect()


def _refused_by_both(case: Case, refusal: Outcome) -> Outcome:
    """An error where Triton takes what our frontend refuses."""
    try:
        triton_source(case, source_of(case))
    except UsageError:
        return refusal
    return Outcome(TRITON, "error", f"Triton takes what is refused here\n{refusal.message}")


def _allowed(case: Case, module: Any, executor: str, expected: Expected, runs: int) -> Expected:
    """What an executor may give: Triton's passes fold what MLIR leaves undefined as they like."""
    return expect(case, module, runs, has_undefined=True) if executor == TRITON else expected


def _difference_of_original(original: Case, expected: Expected) -> str | None:
    """What a program stores that was rewritten, beside what it stores then; arrays are its first arguments."""
    arrays = interpret(original, _lower(source_of(original)), RULES)
    with np.errstate(all="ignore"):
        return Expected(expected.bounds[: len(arrays)], expected.runs).difference(arrays)


def _further(case: Case, source: ASTSource, module: Any, executor: str, runs: int) -> str | None:
    """What is wrong with other arrays than those of the case."""
    if executor == "checked":
        return difference_of_short(case, _checked(case, source))
    if executor.startswith(OVERLAPPING):
        return difference_of_overlapping(case, module, *_prepared(case, source, executor), runs)
    return None


def _compared(executor: str, problem: str | None, seconds: float) -> Outcome:
    if problem:
        return Outcome(executor, "wrong", problem)
    is_slow = not executor.endswith(f"/{COSTS}") and seconds > MOST_SECONDS and seconds > MOST_SECONDS * slowness()
    return (
        Outcome(executor, "slow", f"compiled in {seconds:.1f} s of a processor") if is_slow else Outcome(executor, "ok")
    )


def _failure(executor: str, error: Exception) -> Outcome:
    text = str(error)
    if isinstance(error, MemoryAccessError):
        return Outcome(executor, "invalid" if executor == "interpreter" else "error", text)
    if isinstance(error, REFUSALS) and not isinstance(error, InternalError):
        return Outcome(executor, "refused", text)
    if isinstance(error, DeuteronError):
        cause = f"\n{''.join(traceback.format_exception(error.__cause__)[-3:])}" if error.__cause__ else ""
        return Outcome(executor, "error", f"{text}{cause}")
    return Outcome(executor, "error", f"{type(error).__name__}: {text}\n{''.join(traceback.format_exc()[-1500:])}")


def _lower(source: ASTSource):
    from deuteron.frontend import lower_function

    return lower_function(source.fn, source.signature, source.constexprs, source.attrs)


def launch(case: Case, source: ASTSource, executor: str) -> tuple[list[np.ndarray], float]:
    """The arrays after a launch, and the seconds of a processor that compiling took."""
    values, grid, begin = case.values(), (*case.grid, 1, 1)[:3], used()
    if executor == PYTHON:
        run_by_python(case, values)
        return [value for value in values if isinstance(value, np.ndarray)], 0.0
    if executor.partition(":")[0] == AOT:
        return run_in_c(case, _signature_text(case), executor), 0.0
    kernel, run = _prepared(case, source, executor)
    seconds = used() - begin
    run(kernel, grid, values)
    return [value for value in values if isinstance(value, np.ndarray)], seconds


def _prepared(case: Case, source: ASTSource, executor: str) -> tuple[CompiledKernel, Callable[..., None]]:
    """The kernel compiled for an executor, and what launches it there: `run(kernel, grid, values)`."""
    target, _, mode = executor.replace(f"{OVERLAPPING}:", "cuda:").partition("/")
    if target.startswith("cpu") or target == OVERLAPPING:
        if PAGES in mode and not knows_alignment(case):
            source = source_of(case, is_aligned=False)
        with any_costs(case.seed, CPU_COSTS) if COSTS in mode else nullcontext():
            kernel = _compiled(case, source, target.replace(OVERLAPPING, "cpu"))
        return kernel, partial(_on_pages if PAGES in mode else _on_cpu, case)
    if target == "checked":
        return _checked(case, source), partial(_on_checked, case)
    if target == TRITON:
        return _compiled_from_triton(case, source), partial(_on_cpu, case)
    with any_costs(case.seed) if mode == COSTS else nullcontext():
        if target == "gpu":
            return _compiled(case, source, "cuda:90"), _on_gpu
        kernel = _emulated(case, source, target)
    return kernel, partial(_on_emulator, mode if mode in ("early", "late") else "random", case.seed)


def _compiled_from_triton(case: Case, source: ASTSource) -> CompiledKernel:
    """What Triton takes has to compile here: where its text does not, that is an error."""
    text = triton_source(case, source)
    try:
        return _compiled(case, text, "cpu")
    except REFUSALS as error:
        raise InternalError(f"the text of Triton is refused: {error}") from error


def _checked(case: Case, source: ASTSource) -> CompiledKernel:
    return _compiled(case, source, "cpu", check="bounds")


def _on_checked(case: Case, kernel: CompiledKernel, grid, values: list[Any]) -> None:
    launch_checked(case, kernel, values)


def _on_cpu(case: Case, kernel: CompiledKernel, grid, values: list[Any]) -> None:
    """By one thread or by several: programs that one runs after the other find operands packed."""
    passed = [v.ctypes.data if isinstance(v, np.ndarray) else v for v in values]
    with mock.patch.dict(os.environ, {"DEUTERON_NUM_THREADS": "1" if case.seed % 2 else "3"}):
        kernel.launch(grid, passed)


def _on_pages(case: Case, kernel: CompiledKernel, grid, values: list[Any]) -> None:
    launch_on_pages(case, kernel, partial(_on_cpu, case, kernel, grid), values)


def _compiled(
    case: Case, source: ASTSource | IRSource, target: str, backend: Any = None, **more: Any
) -> CompiledKernel:
    from deuteron.backend import get_backend

    target = resolve_target(target)
    backend = backend or get_backend(target)
    has_clusters = target.backend == "cuda" and target.arch >= 90
    options = {k: v for k, v in case.options.items() if k != "num_ctas" or has_clusters}
    return compile_with(backend, source, target, backend.make_options({**options, **more}))


def _emulated(case: Case, source: ASTSource, target: str) -> CompiledKernel:
    """As far as PTX."""
    from deuteron.runtime.emulate import BACKEND

    return _compiled(case, source, target, BACKEND)


def _on_emulator(asynchronous: str, seed: int, kernel: CompiledKernel, grid, values: list[Any]) -> None:
    from deuteron.emulator import EmulatorOptions, run_kernel

    if 0 in grid:  # as launches have it
        return
    options = EmulatorOptions(asynchronous=asynchronous, seed=seed, print=lambda text: None)
    run_kernel(kernel.asm["ptx"], kernel.metadata, grid, values, options)


def _on_gpu(kernel: CompiledKernel, grid, values: list[Any]) -> None:
    """On copies in the GPU's memory, with their guards."""
    import torch

    owners = {i: _owner(v) for i, v in enumerate(values) if isinstance(v, np.ndarray)}
    copies = {i: torch.from_numpy(owner).cuda() for i, owner in owners.items()}
    passed = list(values)
    for index, copy in copies.items():
        passed[index] = copy.data_ptr() + values[index].ctypes.data - owners[index].ctypes.data
    kernel.launch(grid, passed)
    torch.cuda.synchronize()
    for index, copy in copies.items():
        owners[index][:] = copy.cpu().numpy()


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array

"""Runs a program in eager mode and compiled, and compares what comes out.

    check(ALL["softmax"], seed=7)       AssertionError where a number is off, a type or a shape is another
    check(ALL["softmax"], 7, "cuda")    on a GPU

What a program gives: its outputs, the gradients of its inputs and parameters where it is differentiated, and its inputs
as they are after it. Floats are compared with eager mode in float64, with twice the error that eager mode itself has;
everything else is eager mode's own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

import torch
from torch._inductor import config, metrics
from torch.utils import _pytree as pytree
from torch_compile.declaration import Program

# Beside the error that eager mode has: relative, and absolute.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
FACTOR = {"cpu": 1.0, "cuda": 4.0}  # on GPUs the functions of both are approximations


def check(program: Program, seed: int, device: str = "cpu") -> None:
    """Compare the compiled program with eager mode; it must have become kernels, as one graph."""
    if program.refusal:
        _check_refused(program, seed)
        return
    compiled = compiled_outcome(program, seed, device)
    assert metrics.generated_kernel_count > 0, "no kernel was generated"
    compare(program, seed, compiled, device)


def compare(program: Program, seed: int, compiled: list[torch.Tensor], device: str) -> None:
    """Compare what the compiled program gave with eager mode."""
    eager = outcome(program, seed, _uncompiled, device)
    exact = eager if program.draws else outcome(program, seed, _uncompiled, device, torch.float64)
    assert len(compiled) == len(eager)
    for number, results in enumerate(zip(compiled, eager, exact, strict=True)):
        _compare(f"result {number}", program.tolerance * FACTOR[device], *results)


def _uncompiled(function: Callable, fullgraph: bool = True) -> Callable:
    return function


def _check_refused(program: Program, seed: int) -> None:
    try:
        compiled_outcome(program, seed)
    except Exception as error:
        assert re.search(program.refusal, str(error)), error
        return
    raise AssertionError(f"torch compiles {program.name} by now: compare what it gives")


def compiled_outcome(program: Program, seed: int, device: str = "cpu") -> list[torch.Tensor]:
    """What the program gives compiled by way of Triton's language."""
    torch._dynamo.reset()
    metrics.reset()

    def compile(function: Callable, fullgraph: bool = True) -> Callable:
        return torch.compile(function, fullgraph=fullgraph, dynamic=program.dynamic)

    with config.patch(cpu_backend="triton", **program.config):
        return outcome(program, seed, compile, device)


def outcome(
    program: Program,
    seed: int,
    compile: Callable[[Callable], Callable],
    device: str = "cpu",
    dtype: torch.dtype | None = None,
) -> list[torch.Tensor]:
    """What a program gives, with inputs and parameters of a type where one is given."""
    with torch.device(device):
        function = program.build()
    if dtype is torch.float64 and hasattr(function, "double"):
        function = function.double()
    run = _runner(function, compile)
    generator = torch.Generator().manual_seed(seed)
    results: list[torch.Tensor] = []
    for makers in program.inputs:
        inputs = [_as_type(make(generator), dtype).to(device) for make in makers]
        torch.manual_seed(seed)
        results += _differentiated(function, run, inputs) if program.gradients else [*_tensors(run(*inputs)), *inputs]
    return results


def _runner(function: Callable, compile: Callable) -> Callable:
    """Programs of several compiled parts compile these themselves; an optimiser's step is no single graph."""
    if hasattr(function, "compiled"):
        return lambda *inputs: function.compiled(functools.partial(compile, fullgraph=False), *inputs)
    return compile(function)


def _as_type(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def _tensors(results: object) -> Iterator[torch.Tensor]:
    for result in pytree.tree_leaves(results):
        yield result if isinstance(result, torch.Tensor) else torch.tensor(result)


def _differentiated(function: Callable, run: Callable, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Outputs, and the gradients of the sum of their squares."""
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    wanted = [tensor.requires_grad_() for tensor in (*inputs, *parameters) if tensor.is_floating_point()]
    outputs = list(_tensors(run(*inputs)))
    loss = sum(output.square().sum() for output in outputs if output.requires_grad)
    return [output.detach() for output in outputs] + list(torch.autograd.grad(loss, wanted))


def _compare(what: str, factor: float, compiled: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    assert (compiled.dtype, compiled.shape) == (eager.dtype, eager.shape), what
    if compiled.dtype not in TOLERANCE:
        assert torch.equal(compiled, eager), f"{what}: {compiled} instead of {eager}"
        return
    exact, tolerance = exact.double(), factor * TOLERANCE[compiled.dtype]
    error = (eager.double() - exact).abs()
    worst = error[error.isfinite()].amax().item() if error.isfinite().any() else 0.0
    torch.testing.assert_close(
        compiled.double(),
        exact,
        rtol=tolerance,
        atol=tolerance + 2 * worst,
        equal_nan=True,
        msg=lambda text: f"{what}: {text}",
    )

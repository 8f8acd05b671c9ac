"""A backend of torch.compile that generates code for a GPU, and runs it on tensors in CPU memory.

    with emulated_gpu(kernels.make) as backend:
        torch.compile(function, backend=backend)(x)         the backward pass is compiled when it is asked for

The program is traced on the CPU. The graphs of its forward and backward passes are moved to a GPU and given to
Inductor; the code that comes back is called with the tensors that the program has, on the CPU. What is not a kernel of
Triton's is done by torch there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._inductor import config, select_algorithm
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.fx_passes import joint_graph, post_grad
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

GPU = torch.device("cuda", 0)


@contextmanager
def emulated_gpu(make_kernel: Callable[[str, str], Any]) -> Iterator[Callable]:
    """A backend; `make_kernel(name, source)` gives what launches a kernel of Inductor's: an object with `run`."""

    def triton(compiler: AsyncCompile, name: str, source: str, device_str: str = "cuda") -> Any:
        return make_kernel(name, source)

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Callable:
        return compile_fx(graph, inputs, inner_compile=_compile_on_gpu)

    search = select_algorithm.AlgorithmSelectorCache
    patches = [
        sdpa_kernel(SDPBackend.MATH),  # the others are kernels of torch's own
        config.patch(compile_threads=1, force_disable_caches=True, benchmark_epilogue_fusion=False),
        config.patch(autotune_num_choices_displayed=0),
        config.patch(layout_optimization=False),  # convolutions are computed on the CPU, in its layouts
        mock.patch.object(AsyncCompile, "triton", triton),
        # Nothing is timed: of templates the first is taken.
        mock.patch.object(search, "make_benchmark_fn", classmethod(_rank_templates)),
        mock.patch.object(search, "make_precompile_fn", lambda *args, **kwargs: dict),
        # These look for patterns of attention by tracing on a real device.
        mock.patch.object(joint_graph, "lazy_init", lambda *args, **kwargs: None),
        mock.patch.object(post_grad, "lazy_init", lambda *args, **kwargs: None),
    ]
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield backend


def _rank_templates(cls: type, *args: Any, **kwargs: Any) -> Callable:
    def time_of(number: int, choice: Any) -> float:
        return 1000.0 if isinstance(choice, select_algorithm.ExternKernelCaller) else 1.0 + number

    return lambda choices, **options: {choice: time_of(number, choice) for number, choice in enumerate(choices)}


def _compile_on_gpu(graph: GraphModule, inputs: Sequence[Any], **options: Any) -> Callable:
    """Compile a graph that was traced on the CPU as one of the GPU."""
    for module in graph.modules():
        if isinstance(module, GraphModule):
            _move(module)
    _move_tensors(inputs)
    compiled = compile_fx_inner(graph, inputs, **options)

    def run(tensors: list[Any]) -> Any:
        with _OnCpu():
            return compiled(tensors)

    run._boxed_call = True
    return run


class _OnCpu(TorchDispatchMode):
    """Does what the generated code asks torch to do on the GPU, such as to draw random numbers, on the CPU."""

    def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        args, kwargs = pytree.tree_map(_on_cpu, (args, kwargs or {}))
        return function(*args, **kwargs)


def _move(graph: GraphModule) -> None:
    """Let every op that names the CPU name the GPU, and every tensor without data be one of the GPU."""
    for node in graph.graph.nodes:
        node.args, node.kwargs = pytree.tree_map(_moved, (node.args, node.kwargs))
        _move_tensors(node.meta.get("val"))
    graph.recompile()


def _move_tensors(values: Any) -> None:
    for value in pytree.tree_leaves(values):
        if isinstance(value, FakeTensor):
            value.fake_device = GPU


def _on_cpu(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


def _moved(value: Any) -> Any:
    return GPU if isinstance(value, str | torch.device) and str(value) == "cpu" else value

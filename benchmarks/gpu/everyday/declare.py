"""Shorter ways to declare cases of everyday kernels.

    tile = config(8, 3, BLOCK_M=64, BLOCK_N=128)              labelled "64x128 w8 s3"
    case("norms", "rms norm", "everyday/norm_kernels", "rms_norm", ("*bf16", 4096), (tile,), grid, make, num_bytes=2e9)

`make` draws inputs with torch on its default device: the GPU that is measured, the CPU in tests. Sizes are chosen by
`is_small`: those of tests, which are odd where the kernel allows it, or those that are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.gpu.case import PEAK, Case, Config, Parameter, Problem

# GB/s: decides which limit a case is told beside; the rate that it is told beside is measured.
TYPICAL_BANDWIDTH = 4000.0


def config(num_warps: int, num_stages: int = 1, **constants: Any) -> Config:
    label = "x".join(str(value) for value in constants.values())
    return Config(tuple(constants.items()), num_warps, num_stages, f"{label} w{num_warps} s{num_stages}")


def case(
    family: str,
    name: str,
    source: str,
    kernel: str,
    parameters: tuple[Parameter, ...],
    configs: tuple[Config, ...],
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    make: Callable[[], Problem],
    *,
    num_bytes: float,
    operations: float = 0.0,
    multiplied: str = "bf16",
) -> Case:
    """`num_bytes` and `operations` are what a launch must do at least; the one that takes longer is what is counted.
    `multiplied` is the type that tensor cores multiply.
    """
    is_memory_bound = num_bytes / TYPICAL_BANDWIDTH >= operations / PEAK[multiplied] * 1e-3
    amount, unit = (num_bytes * 1e-9, "GB/s") if is_memory_bound else (operations * 1e-12, "TFLOP/s")
    return Case(family, name, kernel, parameters, configs, len(configs), grid, amount, unit, make, source, multiplied)


def random(*shape: int, dtype: str = "bfloat16", scale: float = 1.0) -> Any:
    import torch  # deferred: --precompile needs none

    return (torch.randn(shape) * scale).to(getattr(torch, dtype))


def empty(*shape: int, dtype: str = "bfloat16") -> Any:
    import torch  # deferred: as above

    return torch.empty(shape, dtype=getattr(torch, dtype))

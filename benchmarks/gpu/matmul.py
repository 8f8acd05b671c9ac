"""Square matrix products with B row-major (nn) and transposed (nt), in fp16 and bf16, beside cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import TORCH_NAMES, Case, Config, Problem, Vendor, cdiv

SIZES = (1024, 4096, 8192)
GROUP_M = 8
# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages, WRAP (`% M`, else masks)
TILES = (
    (128, 256, 64, 8, 3, True),
    (128, 128, 64, 8, 3, True),
    (64, 128, 64, 4, 4, True),
    (128, 256, 64, 8, 3, False),
    (128, 256, 64, 8, 4, True),
    (256, 128, 64, 8, 3, True),
    (128, 128, 64, 4, 3, True),
    (128, 128, 64, 4, 4, True),
    (128, 128, 32, 4, 4, True),
    (64, 256, 64, 4, 4, True),
    (64, 64, 64, 4, 5, True),
    (64, 128, 64, 4, 4, False),
)
NUM_QUICK = 4


def cases() -> Iterator[Case]:
    for element in ("fp16", "bf16"):
        for is_transposed in (False, True):
            for size in SIZES:
                yield matmul(element, size, is_transposed)


def matmul(element: str, size: int, is_transposed: bool) -> Case:
    b_strides = (1, size) if is_transposed else (size, 1)
    return Case(
        "matmul",
        f"matmul {'nt' if is_transposed else 'nn'} {size} {element}",
        "matmul",
        (f"*{element}",) * 3 + (size, size, size, size, 1, *b_strides, size, 1),
        tuple(_config(*tile) for tile in TILES),
        NUM_QUICK,
        lambda meta: (cdiv(size, meta["BLOCK_M"]) * cdiv(size, meta["BLOCK_N"]),),
        2 * size**3 * 1e-12,
        "TFLOP/s",
        lambda: _make(element, size, is_transposed),
    )


def _config(m: int, n: int, k: int, num_warps: int, num_stages: int, wrap: bool) -> Config:
    constants = (("BLOCK_M", m), ("BLOCK_N", n), ("BLOCK_K", k), ("GROUP_M", GROUP_M), ("WRAP", wrap))
    label = f"{m}x{n}x{k} w{num_warps} s{num_stages}{'' if wrap else ' masks'}"
    return Config(constants, num_warps, num_stages, label)


def _make(element: str, size: int, is_transposed: bool) -> Problem:
    import torch  # deferred: --precompile needs none

    dtype: Any = getattr(torch, TORCH_NAMES[element])
    a = torch.randn((size, size), device="cuda", dtype=dtype)
    stored = torch.randn((size, size), device="cuda", dtype=dtype)
    b = stored.T if is_transposed else stored
    out = torch.empty_like(a)
    library = torch.empty_like(a)
    vendor = Vendor("cuBLAS", lambda: torch.matmul(a, b, out=library), 2 * size**3 * 1e-12)
    return Problem((a, b, out), out, a.double() @ b.double(), vendor)

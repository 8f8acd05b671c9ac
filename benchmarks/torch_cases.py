"""Cases beside torch on the CPU that multiply matrices: its products are oneDNN's and MKL's.

    for case in torch_cases(threads=2):
        print(case.measure())    # {"name": "matmul 1024, 64 x 64 x 64 bf16", "peer": "torch", ...}

Imported only where torch is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

import deuteron as triton
import deuteron.language as tl
from benchmarks.cases import TOLERANCE, Case
from benchmarks.programs import load_example

SIZE = 1024
TILES = ((64, 64, 64), (128, 128, 64), (256, 256, 128))  # of matmul: the first two are what people write
# Of results that are rounded to the type.
TOLERANCES = {torch.float32: TOLERANCE, torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.int8: 0.0}

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int8: "int8"}


@triton.jit
def matmul_kernel(a, b, c, N, ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b, for square matrices whose size the blocks divide."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), ACC)
    for start in range(0, N, BK):
        left = tl.load(a + rows[:, None] * N + (start + ks)[None, :])
        right = tl.load(b + (start + ks)[:, None] * N + columns[None, :])
        acc = tl.dot(left, right, acc, out_dtype=ACC)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


def torch_cases(threads: int) -> Iterator[Case]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        yield from (_matmul(dtype, tile) for tile in TILES)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        yield _attention(dtype)


def _case(name: str, dtype: torch.dtype, *parts: Any, required: float = 1.0) -> Case:
    """Beside torch, on as many threads."""
    return Case(f"{name} {NAMES[dtype]}", *parts, required, True, "torch", TOLERANCES[dtype])


def _matmul(dtype: torch.dtype, tile: tuple[int, int, int]) -> Case:
    rows, columns, _ = tile
    if dtype == torch.int8:
        a, b = torch.randint(-128, 128, (2, SIZE, SIZE), dtype=dtype)
        out, acc, multiply = torch.empty(SIZE, SIZE, dtype=torch.int32), tl.int32, torch._int_mm
    else:
        a, b = torch.randn(2, SIZE, SIZE).to(dtype)
        out, acc, multiply = torch.empty(SIZE, SIZE, dtype=dtype), tl.float32, torch.mm
    return _case(
        f"matmul {SIZE}, {' x '.join(map(str, tile))}",
        dtype,
        lambda: matmul_kernel[(SIZE // rows, SIZE // columns)](a, b, out, SIZE, acc, *tile),
        lambda: multiply(a, b, out=out),
        out,
        (a.double() @ b.double()).numpy(),
        2 * SIZE**3 * 1e-9,
        "GFLOP/s",
        required=0.9 if dtype == torch.float32 else 0.85,
    )


def _attention(dtype: torch.dtype) -> Case:
    kernel = load_example("attention").attention_kernel
    heads, length, dim = 4, 1024, 64
    q, k, v = torch.randn(3, heads, length, dim).to(dtype)
    out = torch.empty_like(q)
    strides = (length * dim, dim, length)
    blocks = {"HEAD_DIM": dim, "BLOCK_M": 128, "BLOCK_N": 64}
    return _case(
        f"attention {heads} heads of {length} x {dim}",
        dtype,
        lambda: kernel[(length // 128, heads)](q, k, v, out, dim**-0.5, *strides, CAUSAL=False, **blocks),
        lambda: scaled_dot_product_attention(q[None], k[None], v[None])[0],
        out,
        scaled_dot_product_attention(*(x.double()[None] for x in (q, k, v)))[0].numpy(),
        4 * heads * length * length * dim * 1e-9,
        "GFLOP/s",
    )

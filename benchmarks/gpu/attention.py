"""Attention, forward, in fp16, beside PyTorch's with the cuDNN backend. Causal operations count as half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv

# batches, heads, length, dim, causal
SHAPES = (
    (4, 32, 4096, 64, False),
    (4, 32, 4096, 64, True),
    (4, 32, 4096, 128, False),
    (4, 32, 4096, 128, True),
    (1, 32, 16384, 128, True),
)
# BLOCK_M, BLOCK_N, warps, stages; where causal, BLOCK_N divides BLOCK_M
TILES = (
    (128, 64, 8, 3),
    (64, 64, 4, 2),
    (64, 128, 4, 2),
    (128, 128, 8, 2),
    (128, 64, 4, 3),
    (64, 64, 4, 3),
    (128, 64, 8, 4),
    (128, 64, 4, 4),
    (128, 128, 8, 3),
    (128, 32, 4, 4),
    (128, 64, 8, 2),
)
NUM_QUICK = 4


def cases() -> Iterator[Case]:
    for shape in SHAPES:
        yield attention(*shape)


def attention(batches: int, heads: int, length: int, dim: int, is_causal: bool) -> Case:
    amount = 4 * batches * heads * length**2 * dim * (0.5 if is_causal else 1) * 1e-12
    return Case(
        "attention",
        f"attention D={dim} n={length} {'causal' if is_causal else 'full'}",
        "attention",
        ("*fp16",) * 4 + (dim**-0.5, length * dim, dim, length),
        tuple(_config(is_causal, dim, *tile) for tile in TILES if not is_causal or tile[0] % tile[1] == 0),
        NUM_QUICK,
        lambda meta: (cdiv(length, meta["BLOCK_M"]), batches * heads),
        amount,
        "TFLOP/s",
        lambda: _make((batches, heads, length, dim), is_causal, amount),
    )


def _config(is_causal: bool, dim: int, m: int, n: int, num_warps: int, num_stages: int) -> Config:
    constants = (("CAUSAL", is_causal), ("HEAD_DIM", dim), ("BLOCK_M", m), ("BLOCK_N", n))
    return Config(constants, num_warps, num_stages, f"{m}x{n} w{num_warps} s{num_stages}")


def _make(shape: tuple[int, ...], is_causal: bool, amount: float) -> Problem:
    import torch  # deferred: --precompile needs none

    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)
    name, run = _library(q, k, v, is_causal)
    return Problem((q, k, v, out), (Output(out, _reference(q, k, v, is_causal)),), Vendor(name, run, amount))


def _reference(q: Any, k: Any, v: Any, is_causal: bool) -> Any:
    """In float64, a head and 4096 rows at a time: all scores of a long sequence would not fit."""
    import torch  # deferred: as above

    expected = torch.empty(q.shape, device="cuda", dtype=torch.float64)
    length, dim = q.shape[2:]
    columns = torch.arange(length, device="cuda")
    flat = [x.reshape(-1, length, dim) for x in (q, k, v, expected)]
    for q_head, k_head, v_head, out_head in zip(*flat, strict=True):
        for begin in range(0, length, 4096):
            scores = q_head[begin : begin + 4096].double() @ k_head.double().T * dim**-0.5
            if is_causal:
                rows = torch.arange(begin, begin + len(scores), device="cuda")
                scores.masked_fill_(columns[None, :] > rows[:, None], -torch.inf)
            out_head[begin : begin + 4096] = scores.softmax(1) @ v_head.double()
    return expected


def _library(q: Any, k: Any, v: Any, is_causal: bool) -> tuple[str, Callable[[], Any]]:
    """PyTorch's attention on the first backend that takes this: cuDNN, else its FlashAttention."""
    from torch.nn.attention import SDPBackend, sdpa_kernel  # deferred: as above
    from torch.nn.functional import scaled_dot_product_attention

    def run(backend: SDPBackend) -> None:
        with sdpa_kernel(backend):
            scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    try:
        run(SDPBackend.CUDNN_ATTENTION)
    except RuntimeError:
        return "flash", lambda: run(SDPBackend.FLASH_ATTENTION)
    return "cuDNN", lambda: run(SDPBackend.CUDNN_ATTENTION)

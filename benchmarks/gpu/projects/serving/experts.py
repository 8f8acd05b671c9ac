"""Experts in fp8, adapters (LoRA), tokens counted by expert."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "serving", source="projects/serving/experts_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    for tokens in (30,) if small else (64, 4096):
        yield _experts(tokens, *(4, 2, 256, 256) if small else (64, 6, 2048, 2048))
    yield _lora_shrink(*(40, 3, 16, 256) if small else (8192, 8, 16, 4096))
    yield _lora_expand(*(40, 3, 16, 200) if small else (8192, 8, 16, 4096))
    yield _count_experts(3000 if small else 2**24, 64)


def _experts(tokens: int, experts: int, top_k: int, n: int, k: int) -> Case:
    block_m = 16 if tokens <= 64 else 64
    num_ids = tokens * top_k
    num_tiles = cdiv(num_ids, block_m) + experts

    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        fp8 = torch.float8_e4m3fn
        a, w = torch.randn(tokens, k).to(fp8), torch.randn(experts, n, k).to(fp8)
        a_scales, w_scales = torch.rand(tokens, k // 128) + 0.5, torch.rand(experts, n // 128, k // 128) + 0.5
        weights, out = torch.rand(num_ids), empty(num_ids, n)
        wide_a = a.double() * a_scales.double().repeat_interleave(128, 1)
        chosen = torch.rand(tokens, experts).argsort(1)[:, :top_k].reshape(-1)
        ids = torch.full((num_tiles * block_m,), num_ids, dtype=torch.int32)
        of_tile = torch.zeros(num_tiles, dtype=torch.int32)
        expected = torch.empty(num_ids, n, dtype=torch.float64)
        tile = 0
        for expert in range(experts):
            own = (chosen == expert).nonzero()[:, 0]
            ids[tile * block_m : tile * block_m + len(own)] = own.to(torch.int32)
            wide = w[expert].double() * w_scales[expert].double().repeat_interleave(128, 0).repeat_interleave(128, 1)
            expected[own] = wide_a[own // top_k] @ wide.T * weights[own, None].double()
            last = tile + cdiv(len(own), block_m)
            of_tile[tile:last] = expert
            tile = last
        padded = torch.tensor([tile * block_m], dtype=torch.int32)
        arrays = (a, w, out, a_scales, w_scales, weights, ids, of_tile, padded)
        return Problem(arrays, (Output(out, expected, 5e-3),))

    strides = (n, k, num_ids, k, n * k, k, n, k // 128, n // 128 * (k // 128), k // 128)
    used = min(experts, num_ids)
    return _case(
        f"experts in fp8 {tokens}x{n}x{k}, {top_k} of {experts}",
        kernel="experts_fp8_blocks",
        parameters=("*fp8e4nv", "*fp8e4nv", "*bf16") + ("*fp32",) * 3 + ("*i32",) * 3 + strides,
        configs=tuple(
            config(4, stages, TOP_K=top_k, GROUP_K=128, BLOCK_M=block_m, BLOCK_N=128, BLOCK_K=128, GROUP_M=group)
            for stages, group in ((3, 1), (4, 16))
        ),
        grid=lambda meta: (num_tiles * cdiv(n, 128),),
        make=make,
        num_bytes=used * n * k + tokens * k + 2 * num_ids * n,
        operations=2 * num_ids * n * k,
        multiplied="fp8e4nv",
    )


def _adapters(tokens: int, loras: int) -> tuple[Any, Any, Any, Any]:
    """The adapter of each token, tokens sorted by it, how many each has, where each begins."""
    import torch  # deferred: as above

    own = torch.randint(loras, (tokens,))
    counts = torch.bincount(own, minlength=loras)
    starts = counts.cumsum(0) - counts
    return own, own.argsort().to(torch.int32), counts.to(torch.int32), starts.to(torch.int32)


def _lora_shrink(tokens: int, loras: int, rank: int, hidden: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, w, out = random(tokens, hidden), random(loras, rank, hidden), empty(tokens, rank, dtype="float32")
        own, order, counts, starts = _adapters(tokens, loras)
        expected = torch.empty(out.shape, dtype=torch.float64)
        for lora in range(loras):
            expected[own == lora] = x[own == lora].double() @ w[lora].double().T * 0.5
        return Problem((x, w, out, order, counts, starts), (Output(out, expected, 1e-4),), None, (out,))

    split = 8 if hidden > 1000 else 2
    return _case(
        f"lora shrink {tokens}x{hidden} to {rank}, {loras}",
        kernel="lora_shrink",
        parameters=(
            "*bf16",
            "*bf16",
            "*fp32",
            "*i32",
            "*i32",
            "*i32",
            rank,
            hidden,
            0.5,
            hidden,
            rank * hidden,
            hidden,
            rank,
        ),
        configs=(
            config(4, 2, BLOCK_M=32, BLOCK_N=16, BLOCK_K=64, SPLIT_K=split),
            config(8, 2, BLOCK_M=32, BLOCK_N=16, BLOCK_K=256 if split == 8 else 64, SPLIT_K=split),
        ),
        grid=lambda meta: (cdiv(tokens, meta["BLOCK_M"]) * split, 1, loras),
        make=make,
        num_bytes=2 * tokens * hidden,
    )


def _lora_expand(tokens: int, loras: int, rank: int, hidden: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, w, out = random(tokens, rank, dtype="float32"), random(loras, hidden, rank), empty(tokens, hidden)
        own, order, counts, starts = _adapters(tokens, loras)
        expected = torch.empty(out.shape, dtype=torch.float64)
        for lora in range(loras):
            expected[own == lora] = x[own == lora].to(torch.bfloat16).double() @ w[lora].double().T
        return Problem((x, w, out, order, counts, starts), (Output(out, expected, 5e-3),), None, (out,))

    return _case(
        f"lora expand {tokens}x{rank} to {hidden}, {loras}",
        kernel="lora_expand",
        parameters=("*fp32", "*bf16", "*bf16", "*i32", "*i32", "*i32", hidden, rank, rank, rank * hidden, rank, hidden),
        configs=(
            config(4, 2, BLOCK_M=64, BLOCK_N=128, BLOCK_K=16),
            config(4, 2, BLOCK_M=32, BLOCK_N=256, BLOCK_K=16),
        ),
        grid=lambda meta: (cdiv(tokens, meta["BLOCK_M"]), cdiv(hidden, meta["BLOCK_N"]), loras),
        make=make,
        num_bytes=4 * tokens * hidden,
    )


def _count_experts(n: int, experts: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        ids, counts = torch.randint(experts, (n,), dtype=torch.int32), empty(experts, dtype="int32")
        outputs = (Output(counts, torch.bincount(ids, minlength=experts), 0.0),)
        return Problem((ids, counts), outputs, Vendor("torch", lambda: torch.bincount(ids)), (counts,))

    return _case(
        f"count experts {n}",
        kernel="count_experts",
        parameters=("*i32", "*i32", n),
        configs=(config(4, 1, EXPERTS=experts, BLOCK=2048), config(8, 1, EXPERTS=experts, BLOCK=8192)),
        grid=lambda meta: (cdiv(n, meta["BLOCK"]),),
        make=make,
        num_bytes=4 * n,
    )

"""Rotary embeddings, in place and interleaved, and the cache that keys and values are written to."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "serving", source="projects/serving/rotary_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _rope_in_place(*(9, 6, 2, 16) if small else (16384, 32, 8, 128))
    yield _rope_interleaved(*(30, 3, 16) if small else (16384, 32, 128))
    yield _write_cache(*(9, 96, 20) if small else (32768, 1024, 65536))


def _angles(length: int, dim: int) -> tuple[Any, Any]:
    import torch  # deferred: --precompile needs none

    angle = torch.outer(torch.arange(length).double(), 10000.0 ** (-torch.arange(0, dim, 2).double() / dim))
    return angle.cos().float(), angle.sin().float()


def _rope_in_place(tokens: int, heads: int, kv_heads: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        cos, sin = _angles(tokens, dim)
        positions = torch.randperm(tokens)
        inputs = random(tokens, heads, dim), random(tokens, kv_heads, dim)
        arrays = tuple(torch.empty_like(x) for x in inputs)
        c, s = (x.double()[positions][:, None] for x in (cos, sin))
        outputs = []
        for array, x in zip(arrays, inputs, strict=True):
            x1, x2 = x.double().chunk(2, -1)
            outputs.append(Output(array, torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], -1), 5e-3))
        restored = tuple(zip(arrays, inputs, strict=True))
        return Problem((*arrays, cos, sin, positions), tuple(outputs), restored=restored)

    return _case(
        f"rope in place {tokens}x{heads}+{kv_heads}x{dim}",
        kernel="rope_in_place",
        parameters=("*bf16", "*bf16", "*fp32", "*fp32", "*i64", heads * dim, kv_heads * dim),
        configs=tuple(
            config(warps, 1, Q_HEADS=heads, K_HEADS=kv_heads, PAD_Q=8 if heads < 8 else heads, PAD_K=kv_heads, DIM=dim)
            for warps in (4, 8)
        ),
        grid=lambda meta: (tokens,),
        make=make,
        num_bytes=4 * tokens * (heads + kv_heads) * dim + 4 * tokens * dim,
    )


def _rope_interleaved(tokens: int, heads: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = random(tokens, heads, dim), empty(tokens, heads, dim)
        cos, sin = _angles(tokens, dim)
        c, s = cos.double()[:, None], sin.double()[:, None]
        x0, x1 = x.double()[..., ::2], x.double()[..., 1::2]
        expected = torch.stack([x0 * c - x1 * s, x0 * s + x1 * c], -1).flatten(2)
        return Problem((x, cos, sin, out), (Output(out, expected, 5e-3),))

    return _case(
        f"rope interleaved {tokens}x{heads}x{dim}",
        kernel="rope_interleaved",
        parameters=("*bf16", "*fp32", "*fp32", "*bf16", tokens),
        configs=(config(4, 1, HEADS=heads, DIM=dim, ROWS=16), config(4, 1, HEADS=heads, DIM=dim, ROWS=64)),
        grid=lambda meta: (cdiv(tokens, meta["ROWS"]), heads),
        make=make,
        num_bytes=4 * tokens * heads * dim,
    )


def _write_cache(tokens: int, width: int, slots: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        k, v = random(tokens, width), random(tokens, width)
        k_cache, v_cache = empty(slots, width), empty(slots, width)
        chosen = torch.randperm(slots)[:tokens]
        expected = torch.zeros(2, slots, width, dtype=k.dtype)
        expected[0, chosen], expected[1, chosen] = k, v
        outputs = (Output(k_cache, expected[0], 0.0), Output(v_cache, expected[1], 0.0))
        return Problem((k, v, k_cache, v_cache, chosen), outputs, None, (k_cache, v_cache))

    return _case(
        f"write cache {tokens}x{width}",
        kernel="write_cache",
        parameters=("*bf16",) * 4 + ("*i64", width),
        configs=tuple(config(warps, 1, WIDTH=width, TILE=tile) for warps, tile in ((4, 1024), (1, 512), (16, 2048))),
        grid=lambda meta: (tokens, cdiv(width, meta["TILE"])),
        make=make,
        num_bytes=8 * tokens * width,
    )

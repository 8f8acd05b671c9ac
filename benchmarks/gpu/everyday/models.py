"""Linear attention in chunks, selective scan, linear recurrences, depthwise convolution, mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

WIDTH = 4
CHUNK = 64


def cases(is_small: bool = False) -> Iterator[Case]:
    yield _chunked_linear_attention(*(1, 2, 128, 32) if is_small else (8, 32, 4096, 128))
    yield _selective_scan(*(2, 13, 20, 8, 32) if is_small else (8, 2048, 4096, 16, 64))
    yield _linear_recurrence(*(2, 50, 20) if is_small else (8, 4096, 4096))
    yield _depthwise_convolution(*(2, 50, 20) if is_small else (8, 4096, 8192))
    for tokens in (20,) if is_small else (64, 4096):
        yield _mixture_of_experts(*(tokens, 3, 2, 40, 64) if is_small else (tokens, 8, 2, 14336, 4096))
    yield _combine_experts(*(11, 3, 300) if is_small else (16384, 4, 4096))


def _case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    configs: tuple[Config, ...],
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    make: Callable[[], Problem],
    num_bytes: float,
    operations: float = 0.0,
) -> Case:
    return case(
        "models",
        name,
        "everyday/model_kernels",
        kernel,
        parameters,
        configs,
        grid,
        make,
        num_bytes=num_bytes,
        operations=operations,
    )


def _chunked_linear_attention(batches: int, heads: int, length: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        shape = batches, heads, length, dim
        q, k, v = random(*shape, scale=dim**-0.5), random(*shape), random(*shape)
        decays, out = -torch.rand(heads) * 0.05 - 0.005, empty(*shape)
        return Problem((q, k, v, decays, out), (Output(out, _with_decay(q, k, v, decays), 1e-2),))

    configs = tuple(config(4, stages, DIM=dim, BLOCK_V=min(dim, 64), CHUNK=CHUNK) for stages in (3, 2))
    steps = batches * heads * length // CHUNK
    return _case(
        f"linear attention {batches}x{heads}x{length}x{dim}",
        "chunked_linear_attention",
        ("*bf16",) * 3 + ("*fp32", "*bf16", heads, length),
        configs,
        lambda meta: (batches * heads, dim // meta["BLOCK_V"]),
        make,
        8 * batches * heads * length * dim,
        steps * 2 * (2 * CHUNK * CHUNK * dim + 2 * CHUNK * dim * dim),
    )


def _with_decay(q: Any, k: Any, v: Any, decays: Any) -> Any:
    """In float64, by all scores of a head; head by head, since all would not fit."""
    import torch  # deferred: as above

    batches, heads, length, _ = q.shape
    distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    expected = torch.empty(q.shape, dtype=torch.float64)
    for head in range(heads):
        weight = torch.where(distance >= 0, (decays[head].double() * distance.double()).exp2(), 0.0)
        for batch in range(batches):
            q_h, k_h, v_h = (x[batch, head].double() for x in (q, k, v))
            expected[batch, head] = (q_h @ k_h.T * weight) @ v_h
    return expected


def _selective_scan(batches: int, length: int, channels: int, states: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, step = random(batches, length, channels), (torch.rand(batches, length, channels) * 0.1).to(torch.bfloat16)
        a = -torch.rand(channels, states) - 0.5
        b, c = random(batches, length, states), random(batches, length, states)
        out = empty(batches, length, channels)
        h = torch.zeros(batches, channels, states, dtype=torch.float64)
        expected = torch.empty(batches, length, channels, dtype=torch.float64)
        for t in range(length):
            s, x_t, b_t, c_t = (tensor[:, t].double() for tensor in (step, x, b, c))
            h = (s[:, :, None] * a.double()).exp() * h + (s * x_t)[:, :, None] * b_t[:, None, :]
            expected[:, t] = (h * c_t[:, None, :]).sum(-1)
        return Problem((x, step, a, b, c, out), (Output(out, expected),))

    return _case(
        f"selective scan {batches}x{length}x{channels}",
        "selective_scan",
        ("*bf16", "*bf16", "*fp32", "*bf16", "*bf16", "*bf16", length, channels),
        (config(2, 3, STATES=states, BLOCK=block), config(4, 3, STATES=states, BLOCK=block)),
        lambda meta: (batches, cdiv(channels, meta["BLOCK"])),
        make,
        6 * batches * length * channels,
    )


def _linear_recurrence(batches: int, length: int, channels: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        a, x = torch.rand(batches, length, channels).to(torch.bfloat16), random(batches, length, channels)
        out = empty(batches, length, channels)
        h = torch.zeros(batches, channels, dtype=torch.float64)
        expected = torch.empty(batches, length, channels, dtype=torch.float64)
        for t in range(length):
            h = a[:, t].double() * h + x[:, t].double()
            expected[:, t] = h
        return Problem((a, x, out), (Output(out, expected),))

    return _case(
        f"linear recurrence {batches}x{length}x{channels}",
        "linear_recurrence",
        ("*bf16",) * 3 + (length, channels),
        (config(4, 2, TIME=64, BLOCK=32), config(4, 2, TIME=32, BLOCK=64)),
        lambda meta: (batches, cdiv(channels, meta["BLOCK"])),
        make,
        6 * batches * length * channels,
    )


def _depthwise_convolution(batches: int, length: int, channels: int) -> Case:
    def make() -> Problem:
        from torch.nn.functional import conv1d, pad, silu  # deferred: as above

        x, weight, bias = random(batches, length, channels), random(channels, WIDTH), random(channels)
        out = empty(batches, length, channels)
        padded = pad(x.double(), (0, 0, WIDTH - 1, 0))
        taps = sum(padded[:, tap : tap + length] * weight[:, tap].double() for tap in range(WIDTH))
        by_channel = x.transpose(1, 2).contiguous()
        run = lambda: silu(conv1d(pad(by_channel, (WIDTH - 1, 0)), weight[:, None], bias, groups=channels))  # noqa: E731
        return Problem((x, weight, bias, out), (Output(out, silu(taps + bias.double())),), Vendor("torch", run))

    return _case(
        f"depthwise convolution {batches}x{length}x{channels}",
        "depthwise_convolution",
        ("*bf16",) * 4 + (length, channels),
        (config(4, 1, WIDTH=WIDTH, TIME=16, BLOCK=128), config(4, 1, WIDTH=WIDTH, TIME=32, BLOCK=64)),
        lambda meta: (cdiv(length, meta["TIME"]), cdiv(channels, meta["BLOCK"]), batches),
        make,
        4 * batches * length * channels,
    )


def _mixture_of_experts(tokens: int, experts: int, top_k: int, n: int, k: int) -> Case:
    """All tiles have the same number of rows, by which the ids are padded."""
    block_m = 16 if tokens <= 64 else 128
    num_ids = tokens * top_k
    num_tiles = cdiv(num_ids, block_m) + experts

    def make() -> Problem:
        import torch  # deferred: as above

        a, w, out = random(tokens, k), random(experts, n, k), empty(num_ids, n)
        chosen = torch.rand(tokens, experts).argsort(1)[:, :top_k].reshape(-1)
        ids = torch.full((num_tiles * block_m,), num_ids, dtype=torch.int32)
        of_tile = torch.zeros(num_tiles, dtype=torch.int32)
        expected = torch.empty(num_ids, n, dtype=torch.float64)
        tile = 0
        for expert in range(experts):
            own = (chosen == expert).nonzero()[:, 0]
            ids[tile * block_m : tile * block_m + len(own)] = own.to(torch.int32)
            expected[own] = a[own // top_k].double() @ w[expert].double().T
            last = tile + cdiv(len(own), block_m)
            of_tile[tile:last] = expert
            tile = last
        return Problem((a, w, out, ids, of_tile), (Output(out, expected),))

    tiles = ((16, 64, 128, 4, 4), (16, 128, 64, 4, 4)) if tokens <= 64 else ((128, 128, 64, 8, 3), (128, 128, 64, 4, 3))
    if n < 64:
        tiles = ((16, 32, 32, 4, 2),)
    return _case(
        f"experts {tokens}x{n}x{k}, {top_k} of {experts}",
        "mixture_of_experts",
        ("*bf16",) * 3 + ("*i32", "*i32", num_ids, n, k),
        tuple(
            config(warps, stages, TOP_K=top_k, BLOCK_M=m, BLOCK_N=bn, BLOCK_K=bk) for m, bn, bk, warps, stages in tiles
        ),
        lambda meta: (num_tiles, cdiv(n, meta["BLOCK_N"])),
        make,
        2 * (tokens * k + num_ids * n + min(experts, num_ids) * n * k),
        2 * num_ids * n * k,
    )


def _combine_experts(tokens: int, top_k: int, columns: int) -> Case:
    def make() -> Problem:
        parts, weights = random(tokens, top_k, columns), random(tokens, top_k, dtype="float32")
        out = empty(tokens, columns)
        expected = (parts.double() * weights.double()[:, :, None]).sum(1)
        return Problem((parts, weights, out), (Output(out, expected),))

    return _case(
        f"combine experts {tokens}x{top_k}x{columns}",
        "combine_experts",
        ("*bf16", "*fp32", "*bf16", columns),
        (config(4, TOP_K=top_k, BLOCK=1024), config(8, TOP_K=top_k, BLOCK=4096)),
        lambda meta: (tokens, cdiv(columns, meta["BLOCK"])),
        make,
        2 * tokens * columns * (top_k + 1),
    )

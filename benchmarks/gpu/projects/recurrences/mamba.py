"""Mamba 2: its state space in chunks, and one step of its convolution and of its state."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "recurrences", source="projects/recurrences/mamba_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _ssd_cumsum(*(64, 6, 32) if small else (131072, 80, 256))
    ssd = (64, 2, 16, 16, 32) if small else (16384, 80, 64, 128, 256)
    yield _ssd_state(*ssd)
    yield _ssd_passing(*ssd)
    yield _ssd_scan(*ssd)
    yield _convolution_step(*(5, 96) if small else (4096, 8192))
    yield _state_update(*(3, 4, 2, 16, 16) if small else (512, 80, 8, 64, 128))


def _ssd_cumsum(length: int, heads: int, chunk: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        dt, a, bias = random(length, heads), -torch.rand(heads) - 0.1, random(heads, dtype="float32")
        dt_out, sums = empty(heads, length, dtype="float32"), empty(heads, length, dtype="float32")
        exact = torch.nn.functional.softplus(dt.double() + bias.double()).T
        decays = (exact * a.double()[:, None]).reshape(heads, -1, chunk).cumsum(2).reshape(heads, length)
        return Problem((dt, a, bias, dt_out, sums), (Output(dt_out, exact, 1e-5), Output(sums, decays, 1e-5)))

    return _case(
        f"ssd cumsum {length}x{heads}",
        kernel="ssd_chunk_cumsum",
        parameters=("*bf16",) + ("*fp32",) * 4 + (length, heads),
        configs=tuple(config(4, 1, CHUNK=chunk, HEADS=h) for h in (2, 8, 16)),
        grid=lambda meta: (length // chunk, cdiv(heads, meta["HEADS"])),
        make=make,
        num_bytes=10 * length * heads,
    )


def _ssd_inputs(length: int, heads: int, chunk: int) -> tuple[Any, Any, Any]:
    """Steps, the sums of their decays in a chunk, and what the reference reads of these: [chunks, heads, chunk]."""
    import torch  # deferred: as above

    dt = torch.rand(heads, length) * 0.1
    sums = (-dt).view(heads, -1, chunk).cumsum(2).view(heads, length).contiguous()
    wide = tuple(x.double().view(heads, -1, chunk).transpose(0, 1) for x in (dt, sums))
    return dt, sums, wide


def _ssd_state(length: int, heads: int, p: int, n: int, chunk: int) -> Case:
    chunks = length // chunk

    def make() -> Problem:
        import torch  # deferred: as above

        x, b = random(length, heads, p), random(length, n)
        states = empty(chunks, heads, p, n, dtype="float32")
        dt, sums, (wide_dt, wide_sums) = _ssd_inputs(length, heads, chunk)
        scale = (wide_sums[..., -1:] - wide_sums).exp() * wide_dt
        expected = torch.empty(states.shape, dtype=torch.float64)
        for c in range(chunks):
            here = slice(c * chunk, (c + 1) * chunk)
            expected[c] = torch.einsum("thp,tn,ht->hpn", x[here].double(), b[here].double(), scale[c])
        return Problem((x, b, states, dt, sums), (Output(states, expected, 5e-3),))

    tiles = ((16, 16, 16, 4, 2),) if p < 64 else ((64, 128, 32, 4, 4), (64, 64, 32, 4, 5), (64, 128, 64, 8, 3))
    return _case(
        f"ssd chunk states {length}x{heads}x{p}x{n}",
        kernel="ssd_chunk_state",
        parameters=("*bf16", "*bf16", "*fp32", "*fp32", "*fp32", length, heads, heads * p, n),
        configs=tuple(
            config(w, s, P=p, N=n, CHUNK=chunk, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk) for bm, bn, bk, w, s in tiles
        ),
        grid=lambda meta: (p // meta["BLOCK_M"] * (n // meta["BLOCK_N"]), chunks, heads),
        make=make,
        num_bytes=2 * length * (heads * p + n) + 4 * chunks * heads * p * n,
        operations=2 * length * heads * p * n,
    )


def _ssd_passing(length: int, heads: int, p: int, n: int, chunk: int) -> Case:
    chunks, size = length // chunk, p * n

    def make() -> Problem:
        import torch  # deferred: as above

        states, out = random(chunks, heads, size, dtype="float32"), empty(chunks, heads, size, dtype="float32")
        _, sums, (_, wide) = _ssd_inputs(length, heads, chunk)
        expected, state = torch.empty(out.shape, dtype=torch.float64), torch.zeros(heads, size, dtype=torch.float64)
        for c in range(chunks):
            expected[c] = state
            state = wide[c, :, -1].exp()[:, None] * state + states[c].double()
        return Problem((states, sums, out), (Output(out, expected, 1e-5),))

    return _case(
        f"ssd state passing {chunks}x{heads}x{size}",
        kernel="ssd_state_passing",
        parameters=("*fp32", "*fp32", "*fp32", chunks, heads, length, size),
        configs=tuple(config(w, 3, CHUNK=chunk, BLOCK=block) for w, block in ((4, 512), (2, 64), (4, 1024))),
        grid=lambda meta: (cdiv(size, meta["BLOCK"]), heads),
        make=make,
        num_bytes=8 * chunks * heads * size,
    )


def _ssd_scan(length: int, heads: int, p: int, n: int, chunk: int) -> Case:
    chunks = length // chunk

    def make() -> Problem:
        import torch  # deferred: as above

        cb, x, c = random(chunks, chunk, chunk), random(length, heads, p), random(length, n)
        states, d, out = random(chunks, heads, p, n), random(heads, dtype="float32"), empty(length, heads, p)
        dt, sums, (wide_dt, wide_sums) = _ssd_inputs(length, heads, chunk)
        expected = torch.empty(out.shape, dtype=torch.float64)
        for i in range(chunks):
            here = slice(i * chunk, (i + 1) * chunk)
            s, x_i = wide_sums[i], x[here].double()
            left = torch.einsum("tn,hpn,ht->thp", c[here].double(), states[i].double(), s.exp())
            weight = (s[:, :, None] - s[:, None, :]).exp() * wide_dt[i][:, None, :] * cb[i].double()
            own = torch.einsum("hts,shp->thp", weight.tril(), x_i)
            expected[here] = left + own + x_i * d.double()[None, :, None]
        return Problem((cb, x, c, dt, sums, states, d, out), (Output(out, expected, 1e-2),))

    tiles = ((16, 16, 16, 4, 2),) if p < 64 else ((128, 64, 32, 4, 3), (64, 64, 32, 4, 3), (128, 64, 64, 8, 3))
    return _case(
        f"ssd chunk scan {length}x{heads}x{p}x{n}",
        kernel="ssd_chunk_scan",
        parameters=("*bf16",) * 3 + ("*fp32", "*fp32", "*bf16", "*fp32", "*bf16", length, heads, heads * p, n),
        configs=tuple(
            config(w, s, P=p, N=n, CHUNK=chunk, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk) for bm, bn, bk, w, s in tiles
        ),
        grid=lambda meta: (chunk // meta["BLOCK_M"] * (p // meta["BLOCK_N"]), chunks, heads),
        make=make,
        num_bytes=4 * length * heads * p + 2 * chunks * heads * p * n + 2 * length * chunk,
        operations=2 * length * heads * p * (n + chunk / 2),
    )


def _convolution_step(sequences: int, channels: int) -> Case:
    width = 4

    def make() -> Problem:
        import torch  # deferred: as above

        x, original = random(sequences, channels), random(sequences + 3, channels, width - 1)
        weight, bias, out = random(channels, width), random(channels), empty(sequences, channels)
        slots = torch.randperm(sequences + 3)[:sequences].to(torch.int32)
        state = torch.empty_like(original)
        window = torch.cat([original[slots.long()], x[..., None]], -1)
        moved = original.clone()
        moved[slots.long()] = window[..., 1:]
        expected = torch.nn.functional.silu((window.double() * weight.double()).sum(-1) + bias.double())
        outputs = (Output(out, expected, 5e-3), Output(state, moved, 0.0))
        return Problem((x, state, weight, bias, slots, out), outputs, restored=((state, original),))

    return _case(
        f"convolution step {sequences}x{channels}",
        kernel="convolution_step",
        parameters=("*bf16",) * 4 + ("*i32", "*bf16", channels, channels * (width - 1)),
        configs=tuple(config(w, 2, WIDTH=width, BLOCK=block) for w, block in ((4, 256), (8, 1024))),
        grid=lambda meta: (sequences, cdiv(channels, meta["BLOCK"])),
        make=make,
        num_bytes=2 * sequences * channels * (2 + 2 * (width - 1)),
    )


def _state_update(batches: int, heads: int, groups: int, dim: int, n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        original = random(batches, heads, dim, n, dtype="float32")
        state = torch.empty_like(original)
        x, dt, z = (random(batches, heads, dim) for _ in range(3))
        bias, d = random(heads, dim, dtype="float32"), random(heads, dim, dtype="float32")
        a = -torch.rand(heads, dim, n) - 0.1
        b, c = random(batches, groups, n), random(batches, groups, n)
        out = empty(batches, heads, dim)
        step = torch.nn.functional.softplus(dt.double() + bias.double())
        wide_b, wide_c = (t.double().repeat_interleave(heads // groups, 1) for t in (b, c))
        new = (step[..., None] * a.double()).exp_().mul_(original)
        new += wide_b[:, :, None, :] * (step * x.double())[..., None]
        y = (new @ wide_c[..., None])[..., 0] + x.double() * d.double()
        outputs = (Output(out, y * torch.nn.functional.silu(z.double()), 5e-3), Output(state, new, 1e-5))
        return Problem((state, x, dt, bias, a, b, c, d, z, out), outputs, restored=((state, original),))

    arrays = ("*fp32", "*bf16", "*bf16", "*fp32", "*fp32", "*bf16", "*bf16", "*fp32", "*bf16", "*bf16")
    return _case(
        f"state update {batches}x{heads}x{dim}x{n}",
        kernel="state_update",
        parameters=(*arrays, dim, heads, groups),
        configs=tuple(config(w, 1, BLOCK=block, N=n) for w, block in ((4, 8), (4, 16), (8, 64))),
        grid=lambda meta: (cdiv(dim, meta["BLOCK"]), batches, heads),
        make=make,
        num_bytes=8 * batches * heads * dim * n,
    )

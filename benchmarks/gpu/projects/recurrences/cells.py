"""Cells that are run step by step: RWKV, an LSTM's gates, an RNN's loop."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "recurrences", source="projects/recurrences/cells_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _rwkv(*(2, 9, 2, 16) if small else (8, 1024, 32, 64))
    yield _lstm(*(5, 100) if small else (16384, 4096))
    yield _rnn(*(5, 20, 16) if small else (512, 4096, 64))


def _rwkv(batches: int, length: int, heads: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        r, k, v = (random(batches, length, heads, dim) for _ in range(3))
        w, u = -torch.rand(batches, length, heads, dim) * 0.5 - 0.05, random(heads, dim, dtype="float32")
        out = empty(batches, length, heads, dim)
        expected, h = (
            torch.empty(out.shape, dtype=torch.float64),
            torch.zeros(batches, heads, dim, dim, dtype=torch.float64),
        )
        for t in range(length):
            r_t, k_t, v_t, w_t = (x[:, t].double() for x in (r, k, v, w))
            kv = k_t[..., None, :] * v_t[..., None]
            expected[:, t] = torch.einsum("bhvk,bhk->bhv", h + kv * u.double()[:, None, :], r_t)
            h = h * w_t.exp()[..., None, :] + kv
        return Problem((r, k, v, w, u, out), (Output(out, expected, 5e-3),))

    return _case(
        f"rwkv6 steps {batches}x{length}x{heads}x{dim}",
        kernel="rwkv6_steps",
        parameters=("*bf16",) * 3 + ("*fp32", "*fp32", "*bf16", length),
        configs=tuple(config(w, 1, HEADS=heads, D=dim, BV=bv) for w, bv in ((1, 16), (2, 32), (1, 8))),
        grid=lambda meta: (cdiv(dim, meta["BV"]), batches * heads),
        make=make,
        num_bytes=12 * batches * length * heads * dim,
    )


def _lstm(rows: int, hidden: int) -> Case:
    def make() -> Problem:
        gates, c = random(rows, 4 * hidden), random(rows, hidden, dtype="float32")
        h_out, c_out = empty(rows, hidden), empty(rows, hidden, dtype="float32")
        i, f, g, o = gates.double().chunk(4, 1)
        new = f.sigmoid() * c.double() + i.sigmoid() * g.tanh()
        return Problem(
            (gates, c, h_out, c_out), (Output(h_out, o.sigmoid() * new.tanh(), 5e-3), Output(c_out, new, 1e-5))
        )

    return _case(
        f"lstm gates {rows}x{hidden}",
        kernel="lstm_gates",
        parameters=("*bf16", "*fp32", "*bf16", "*fp32", hidden),
        configs=(config(4, 1, BLOCK=1024), config(4, 1, BLOCK=512)),
        grid=lambda meta: (rows, cdiv(hidden, meta["BLOCK"])),
        make=make,
        num_bytes=18 * rows * hidden,
    )


def _rnn(length: int, rows: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, w, out = random(length, rows, dim), random(dim, dim, scale=0.5 * dim**-0.5), empty(length, rows, dim)
        h, expected = torch.zeros(rows, dim, dtype=torch.float64), torch.empty(out.shape, dtype=torch.float64)
        for t in range(length):
            h = (h @ w.double() + x[t].double()).tanh()
            expected[t] = h
        return Problem((x, w, out), (Output(out, expected, 1e-2),))

    return _case(
        f"rnn steps {length}x{rows}x{dim}",
        kernel="rnn_steps",
        parameters=("*bf16", "*bf16", "*bf16", length, rows),
        configs=tuple(config(w, 2, BLOCK=block, D=dim) for w, block in ((4, 16), (4, 32), (4, 64))),
        grid=lambda meta: (cdiv(rows, meta["BLOCK"]),),
        make=make,
        num_bytes=4 * length * rows * dim,
    )

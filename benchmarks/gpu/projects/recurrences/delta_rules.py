"""Gated delta rules: step by step, and in chunks with the inverses of triangles."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "recurrences", source="projects/recurrences/delta_rules_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _delta_steps(*(2, 9, 2, 16, 16) if small else (32, 512, 16, 128, 128))
    yield _delta_states(*(1, 130, 2, 128, 64) if small else (4, 8192, 32, 128, 128))
    yield _delta_out(*(1, 130, 2, 64, 64) if small else (4, 8192, 32, 128, 128))
    yield _triangles(*(1, 70, 2) if small else (8, 8192, 32))


def _normalised(x: Any) -> Any:
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def _delta_steps(batches: int, length: int, heads: int, k_dim: int, v_dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        q, k, v = (
            random(batches, length, heads, k_dim),
            random(batches, length, heads, k_dim),
            random(batches, length, heads, v_dim),
        )
        g, beta, out = -torch.rand(batches, length, heads) * 0.1, torch.rand(batches, length, heads), empty(*v.shape)
        expected = torch.empty(out.shape, dtype=torch.float64)
        h = torch.zeros(batches, heads, v_dim, k_dim, dtype=torch.float64)
        for t in range(length):
            q_t, k_t = _normalised(q[:, t].double()) * k_dim**-0.5, _normalised(k[:, t].double())
            h = h * g[:, t].double().exp()[..., None, None]
            v_t = (v[:, t].double() - torch.einsum("bhvk,bhk->bhv", h, k_t)) * beta[:, t].double()[..., None]
            h = h + v_t[..., None] * k_t[..., None, :]
            expected[:, t] = torch.einsum("bhvk,bhk->bhv", h, q_t)
        return Problem((q, k, v, g, beta, out), (Output(out, expected, 5e-3),))

    return _case(
        f"delta rule steps {batches}x{length}x{heads}x{k_dim}",
        kernel="delta_rule_steps",
        parameters=("*bf16",) * 3 + ("*fp32", "*fp32", "*bf16", k_dim**-0.5, length),
        configs=tuple(config(w, 3, HEADS=heads, K=k_dim, V=v_dim, BV=bv) for w, bv in ((1, 8), (1, 16), (4, 32))),
        grid=lambda meta: (v_dim // meta["BV"], batches * heads),
        make=make,
        num_bytes=2 * batches * length * heads * (2 * k_dim + 2 * v_dim),
    )


def _delta_states(batches: int, length: int, heads: int, k_dim: int, v_dim: int) -> Case:
    bt = 64
    chunks = cdiv(length, bt)

    def make() -> Problem:
        import torch  # deferred: as above

        k, w = (random(batches, length, heads, k_dim, scale=0.1) for _ in range(2))
        u, v_new = random(batches, length, heads, v_dim), empty(batches, length, heads, v_dim)
        g = -(torch.rand(batches, length, heads) * 0.1)
        g = torch.cat([part.cumsum(1) for part in g.split(bt, 1)], 1).contiguous()
        states = empty(batches, chunks, heads, k_dim, v_dim)
        exact_h, exact_v = torch.empty(states.shape, dtype=torch.float64), torch.empty(u.shape, dtype=torch.float64)
        h = torch.zeros(batches, heads, k_dim, v_dim, dtype=torch.float64)
        for c in range(chunks):
            here = slice(c * bt, min(length, (c + 1) * bt))
            exact_h[:, c] = h
            v = u[:, here].double() - torch.einsum("bthk,bhkv->bthv", w[:, here].double(), h)
            exact_v[:, here] = v
            last = g[:, here][:, -1].double()
            decayed = v * (last[:, None] - g[:, here].double()).exp()[..., None]
            h = h * last.exp()[..., None, None] + torch.einsum("bthk,bthv->bhkv", k[:, here].double(), decayed)
        return Problem((k, u, w, v_new, g, states), (Output(states, exact_h, 1e-2), Output(v_new, exact_v, 1e-2)))

    return _case(
        f"delta rule states {batches}x{length}x{heads}x{k_dim}",
        kernel="delta_rule_states",
        parameters=("*bf16",) * 4 + ("*fp32", "*bf16", length),
        configs=tuple(
            config(w, s, HEADS=heads, K=k_dim, V=v_dim, BT=bt, BV=bv)
            for w, s, bv in ((4, 2, 32), (2, 3, 32), (4, 3, 64))
        ),
        grid=lambda meta: (cdiv(v_dim, meta["BV"]), batches * heads),
        make=make,
        num_bytes=2 * batches * heads * (length * (2 * k_dim + 2 * v_dim) + chunks * k_dim * v_dim),
        operations=4 * batches * heads * length * k_dim * v_dim,
    )


def _delta_out(batches: int, length: int, heads: int, k_dim: int, v_dim: int) -> Case:
    bt = 64
    chunks = cdiv(length, bt)

    def make() -> Problem:
        import torch  # deferred: as above

        q, k = (random(batches, length, heads, k_dim) for _ in range(2))
        v, out = random(batches, length, heads, v_dim), empty(batches, length, heads, v_dim)
        h = random(batches, chunks, heads, k_dim, v_dim)
        g = torch.cat([p.cumsum(1) for p in (-torch.rand(batches, length, heads) * 0.1).split(bt, 1)], 1).contiguous()
        expected = torch.empty(out.shape, dtype=torch.float64)
        for c in range(chunks):
            here = slice(c * bt, min(length, (c + 1) * bt))
            q_c, k_c, v_c, g_c = (x[:, here].double() for x in (q, k, v, g))
            left = torch.einsum("bthk,bhkv->bthv", q_c, h[:, c].double()) * g_c.exp()[..., None]
            weight = (g_c[:, :, None] - g_c[:, None, :]).permute(0, 3, 1, 2).exp()
            a = torch.einsum("bthk,bshk->bhts", q_c, k_c) * weight
            expected[:, here] = (left + torch.einsum("bhts,bshv->bthv", a.tril(), v_c)) * k_dim**-0.5
        return Problem((q, k, v, h, g, out), (Output(out, expected, 1e-2),))

    tiles = ((32, 32, 4, 2),) if k_dim < 128 else ((64, 64, 4, 3), (64, 128, 4, 2), (128, 128, 8, 3))
    return _case(
        f"delta rule out {batches}x{length}x{heads}x{k_dim}",
        kernel="delta_rule_out",
        parameters=("*bf16",) * 4 + ("*fp32", "*bf16", k_dim**-0.5, length),
        configs=tuple(config(w, s, HEADS=heads, K=k_dim, V=v_dim, BT=bt, BK=bk, BV=bv) for bk, bv, w, s in tiles),
        grid=lambda meta: (cdiv(v_dim, meta["BV"]), chunks, batches * heads),
        make=make,
        num_bytes=2 * batches * heads * (length * (2 * k_dim + 2 * v_dim) + chunks * k_dim * v_dim),
        operations=2 * batches * heads * length * (k_dim * v_dim + bt * k_dim + bt * v_dim),
    )


def _triangles(batches: int, length: int, heads: int) -> Case:
    bt = 64

    def make() -> Problem:
        import torch  # deferred: as above

        a = random(batches, length, heads, bt, dtype="float32", scale=0.3)
        out = empty(batches, length, heads, 16, dtype="float32")
        whole = torch.zeros(batches, cdiv(length, 16) * 16, heads, bt, dtype=torch.float64)
        whole[:, :length] = a.double()
        blocks = whole.view(batches, -1, 16, heads, 4, 16).permute(0, 1, 3, 4, 2, 5)
        own = torch.stack([blocks[:, i, :, i % 4] for i in range(blocks.shape[1])], 1).tril(-1)
        inverse = torch.linalg.inv(own + torch.eye(16, dtype=torch.float64))
        expected = inverse.permute(0, 1, 3, 2, 4).reshape(batches, -1, heads, 16)[:, :length]
        return Problem((a, out), (Output(out, expected, 1e-4),))

    return _case(
        f"inverse of triangles {batches}x{length}x{heads}",
        kernel="inverse_of_triangles",
        parameters=("*fp32", "*fp32", length),
        configs=tuple(config(w, 3, HEADS=heads, BT=bt) for w in (1, 2, 4)),
        grid=lambda meta: (cdiv(length, 16), batches * heads),
        make=make,
        num_bytes=8 * batches * length * heads * 16,
    )

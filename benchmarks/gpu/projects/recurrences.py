"""Mamba 2's chunks, gated delta rules, RWKV, one step of convolutions and states, LSTM gates, an RNN's loop."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "recurrences", source="projects/recurrences_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _ssd_cumsum(*(64, 6, 32) if small else (131072, 80, 256))
    ssd = (64, 2, 16, 16, 32) if small else (16384, 80, 64, 128, 256)
    yield _ssd_state(*ssd)
    yield _ssd_passing(*ssd)
    yield _ssd_scan(*ssd)
    yield _delta_steps(*(2, 9, 2, 16, 16) if small else (32, 512, 16, 128, 128))
    yield _delta_states(*(1, 130, 2, 128, 64) if small else (4, 8192, 32, 128, 128))
    yield _delta_out(*(1, 130, 2, 64, 64) if small else (4, 8192, 32, 128, 128))
    yield _triangles(*(1, 70, 2) if small else (8, 8192, 32))
    yield _rwkv(*(2, 9, 2, 16) if small else (8, 1024, 32, 64))
    yield _convolution_step(*(5, 96) if small else (4096, 8192))
    yield _state_update(*(3, 4, 2, 16, 16) if small else (512, 80, 8, 64, 128))
    yield _lstm(*(5, 100) if small else (16384, 4096))
    yield _rnn(*(5, 20, 16) if small else (512, 4096, 64))


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


def _normalised(x: Any) -> Any:
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def _delta_steps(batches: int, length: int, heads: int, k_dim: int, v_dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

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


def _rwkv(batches: int, length: int, heads: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

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

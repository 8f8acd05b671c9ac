"""Attention in loops that begin anywhere, and in two that share what they carry: any number of iterations each."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

D = 32


@deuteron.jit
def attend(acc, total, top, q, k_ptrs, v_ptrs, rows, begin, end, n, MASKED: tl.constexpr, BN: tl.constexpr):
    """Keys from `begin` to `end`; with MASKED only those that there are, up to the row's own."""
    columns = tl.arange(0, BN)
    for start in range(begin, end, BN):
        inside = start + columns < n
        k = tl.load(k_ptrs + start * 32, inside[:, None], 0.0) if MASKED else tl.load(k_ptrs + start * 32)
        scores = tl.dot(q, k.T)
        if MASKED:
            seen = (rows[:, None] >= start + columns[None, :]) & inside[None, :]
            scores = tl.where(seen, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
        v = tl.load(v_ptrs + start * 32, inside[:, None], 0.0) if MASKED else tl.load(v_ptrs + start * 32)
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        total, top = total * alpha + tl.sum(p, 1), new_top
    return acc, total, top


@deuteron.jit
def attention(q, k, v, out, begin, n, HOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """HOW: keys from `begin` on by one loop; or causal, by a helper that is called twice, or by two loops with pointers
    that go on from one to the other.
    """
    first = tl.program_id(0) * BM
    rows, columns, dims = first + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 32)
    x = tl.load(q + rows[:, None] * 32 + dims[None, :], rows[:, None] < n, 0.0)
    top = tl.full((BM,), -1.0e30, tl.float32)
    total, acc = tl.zeros((BM,), tl.float32), tl.zeros((BM, 32), tl.float32)
    k_ptrs = k + columns[:, None] * 32 + dims[None, :]
    v_ptrs = v + columns[:, None] * 32 + dims[None, :]
    if HOW == "between":
        acc, total, top = attend(acc, total, top, x, k_ptrs, v_ptrs, rows, begin, n, n, False, BN)
    elif HOW == "helper":
        middle = tl.minimum(first, n) // BN * BN
        end = tl.minimum(first + BM, n)
        acc, total, top = attend(acc, total, top, x, k_ptrs, v_ptrs, rows, 0, middle, n, False, BN)
        acc, total, top = attend(acc, total, top, x, k_ptrs, v_ptrs, rows, middle, end, n, True, BN)
    else:
        for _ in range(0, first, BN):
            scores = tl.dot(x, tl.load(k_ptrs).T)
            new_top = tl.maximum(top, tl.max(scores, 1))
            p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
            acc = tl.dot(p.to(tl.float16), tl.load(v_ptrs), acc * alpha[:, None])
            total, top = total * alpha + tl.sum(p, 1), new_top
            k_ptrs += BN * 32
            v_ptrs += BN * 32
        for start in range(first, first + BM, BN):
            inside = (start + columns < n)[:, None]
            scores = tl.dot(x, tl.load(k_ptrs, inside, 0.0).T)
            scores = tl.where(rows[:, None] >= start + columns[None, :], scores, float("-inf"))
            new_top = tl.maximum(top, tl.max(scores, 1))
            p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
            acc = tl.dot(p.to(tl.float16), tl.load(v_ptrs, inside, 0.0), acc * alpha[:, None])
            total, top = total * alpha + tl.sum(p, 1), new_top
            k_ptrs += BN * 32
            v_ptrs += BN * 32
    tl.store(out + rows[:, None] * 32 + dims[None, :], acc / tl.maximum(total, 1e-30)[:, None], rows[:, None] < n)


def run(rng, n, how, bm, asynchronous="random", begin=0, **options):
    """The kernel, whose numbers are right."""
    q, k, v = (aligned(rng.standard_normal((max(n, bm), D)).astype(np.float16)) for _ in range(3))
    out = aligned(np.full((n, D), np.nan, np.float32))
    kernel = compile_for("cuda:90", attention, q, k, v, out, begin, n, HOW=how, BM=bm, BN=32, **options)
    emulate_compiled(kernel, q, k, v, out, begin, n, grid=(-(-n // bm),), asynchronous=asynchronous)
    scores = q[:n].astype(np.float64) @ k[:n].astype(np.float64).T
    seen = np.arange(n) >= begin if how == "between" else np.tril(np.ones((n, n), bool))
    p = np.where(seen, np.exp(scores), 0)
    expected = p @ v[:n].astype(np.float64) / np.maximum(p.sum(1, keepdims=True), 1e-30)
    assert np.abs(out - expected).max() <= 2e-3 * max(np.abs(expected).max(), 1e-30)
    return kernel


@pytest.mark.share(2)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("begin", [0, 32, 64, 96])
def test_a_loop_that_begins_anywhere(rng, way, begin, stages):
    run(rng, 96, "between", 64, begin=begin, num_stages=stages)


@pytest.mark.share(3)
@pytest.mark.parametrize(("n", "stages"), [(1, 3), (64, 2), (65, 2), (200, 3)])
def test_a_helper_that_is_called_twice(rng, way, n, stages):
    run(rng, n, "helper", 64, num_stages=stages)


@pytest.mark.parametrize("asynchronous", ["late", "early"])
def test_pointers_that_go_on(rng, way, asynchronous):
    run(rng, 192, "pointers", 64, asynchronous, num_stages=2)


@pytest.mark.parametrize("how", ["helper", "pointers"])
def test_warps_are_specialised_for_both(rng, way, how):
    kernel = run(rng, 384, how, 128, num_warps=8, num_stages=2)
    if way == "TMA":
        assert not instructions_with(kernel, "cp.async.cg")


def test_both_loops_are_copied_by_tma(rng):
    """What goes on from one loop to the next is a place, not a tile of pointers."""
    kernel, other = (run(rng, 128, how, 64) for how in ("pointers", "helper"))
    assert len(instructions_with(kernel, "ld.global")) == len(instructions_with(other, "ld.global"))
    assert "x!tt.ptr<f16>" not in generic_asm(kernel, "ttgir").split('"scf.for"', 1)[1].split('"tt.store"')[0]

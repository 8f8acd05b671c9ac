"""Tiles that fill more registers than there are go to shared memory early, and are converted late."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl


@deuteron.jit
def gradients(q, k, v, g, dq, dk, out, N: tl.constexpr):
    """Of few warps: four tiles beside three sums, of which two are multiplied with what dots have read."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = i * N + j
    vs, gs = tl.load(v + at), tl.load(g + at)
    total = tl.sum(vs * gs)
    scores = tl.dot(gs, tl.trans(vs))
    by_q, by_k = tl.dot(gs, vs) * 0.5, tl.dot(vs, gs)
    qs, ks = tl.load(q + at), tl.load(k + at)
    total += tl.sum(by_k * ks)
    scores = tl.where(i >= j, scores, 0.0)
    by_q += tl.dot(scores, ks)
    by_k += tl.dot(tl.trans(scores), qs)
    rows = tl.sum(by_q * qs, 1) - tl.sum(by_k * ks, 1) + total
    tl.store(dq + at, by_q)
    tl.store(dk + at, by_k)
    tl.store(out + tl.arange(0, N), rows)


def expected(q, k, v, g):
    scores, by_q, by_k = np.tril(g @ v.T), g @ v / 2, v @ g
    total = (v * g).sum() + (by_k * k).sum()
    by_q, by_k = by_q + scores @ k, by_k + scores.T @ q
    return by_q, by_k, (by_q * q).sum(1) - (by_k * k).sum(1) + total


def run(rng, size: int, num_warps: int):
    """Numbers that tf32 holds, and sums that fp32 holds."""
    q, k, v, g = (aligned(rng.integers(-2, 3, (size, size)).astype(np.float32)) for _ in range(4))
    results = [aligned(np.zeros(shape, np.float32)) for shape in ((size, size), (size, size), size)]
    kernel = emulate(gradients, q, k, v, g, *results, N=size, num_warps=num_warps)
    return kernel, results, expected(*(x.astype(np.float64) for x in (q, k, v, g)))


def ops_of(kernel) -> list[tuple[str, str, str]]:
    """What each op of the kernel gives, its name, and what is left of the line."""
    return re.findall(r'^ +(%\w+) = "?([a-z]+\.\w+)"?(.*)', kernel.asm["ttgir"], re.MULTILINE)


@pytest.mark.parametrize(("size", "num_warps"), [(32, 1), (64, 2), (64, 4), (64, 8)])
def test_what_is_stored_early_and_converted_late_is_the_same(rng, size, num_warps):
    _, results, wanted = run(rng, size, num_warps)
    for result, right in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, right, rtol=2e-3, atol=2e-3 * abs(right).max())


def test_what_dots_read_is_stored_as_soon_as_it_is_loaded(rng):
    ops = ops_of(run(rng, 64, 2)[0])
    places = {name: place for place, (name, *_) in enumerate(ops)}
    allocs = [(place, rest) for place, (_, op, rest) in enumerate(ops) if op == "ttg.local_alloc"]
    loaded = [place - places[re.search(r"\((%\w+)\)", rest)[1]] for place, rest in allocs]
    assert loaded == [1, 1, 1, 1]


def test_what_is_in_shared_memory_is_loaded_where_it_is_needed(rng):
    ops = ops_of(run(rng, 64, 2)[0])
    loads = {name for name, op, _ in ops if op == "tt.load"}
    converted = {re.search(r"\((%\w+)\)", rest)[1] for _, op, rest in ops if op == "ttg.convert_layout"}
    assert not loads & converted


def test_with_room_in_registers_nothing_moves(rng):
    ops = ops_of(run(rng, 64, 8)[0])
    loads = {name for name, op, _ in ops if op == "tt.load"}
    converted = {re.search(r"\((%\w+)\)", rest)[1] for _, op, rest in ops if op == "ttg.convert_layout"}
    assert loads & converted


@deuteron.jit
def more_gradients(q, k, v, g, dq, dk, out, N: tl.constexpr):
    """Of a third sum, which is multiplied with two of the tiles at the end."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = i * N + j
    vs, gs = tl.load(v + at), tl.load(g + at)
    total = tl.sum((vs * gs).to(tl.float32))
    by_q, by_k, by_v = tl.dot(gs, vs) * 0.5, tl.dot(vs, gs), tl.dot(tl.trans(gs), vs)
    scores = tl.where(i >= j, tl.dot(gs, tl.trans(vs)), 0.0).to(vs.dtype)
    qs, ks = tl.load(q + at), tl.load(k + at)
    total += tl.sum(by_k * ks)
    by_q += tl.dot(scores, ks)
    by_k += tl.dot(tl.trans(scores), qs)
    rows = tl.sum(by_q * qs, 1) - tl.sum(by_k * ks, 1) + tl.sum(by_v * vs, 1) - tl.sum(by_v * gs, 1)
    tl.store(dq + at, by_q)
    tl.store(dk + at, by_k * vs)
    tl.store(out + tl.arange(0, N), rows + total)


def test_what_stays_in_shared_memory_leaves_room_for_the_ctas_that_registers_have_room_for():
    """Two of four warps with 255 registers each, on an H100."""
    halves, floats = (aligned(np.zeros((128, 128), dtype)) for dtype in (np.float16, np.float32))
    kernel = compile_for("cuda:90", more_gradients, *[halves] * 4, *[floats] * 3, N=128, num_warps=4)
    assert 65536 < kernel.metadata.shared <= 233472 // 2


@deuteron.jit
def complex_product(a, b, c, d, out_re, out_im, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    re, im, cos, sin = tl.load(a + at), tl.load(b + at), tl.load(c + at), tl.load(d + at)
    by_re = tl.dot(re, cos) - tl.dot(im, sin)
    by_im = tl.dot(re, sin) + tl.dot(im, cos)
    tl.store(out_re + at, by_re)
    tl.store(out_im + at, by_im)


def test_conversions_wait_until_operands_are_done_with(rng):
    """So that 64 KiB do, not 80: three programs have room then, not two."""
    a, b, c, d = (aligned(rng.integers(-2, 3, (64, 64)).astype(np.float32)) for _ in range(4))
    by_re, by_im = (aligned(np.zeros((64, 64), np.float32)) for _ in range(2))
    kernel = emulate(complex_product, a, b, c, d, by_re, by_im, N=64, num_warps=4)
    np.testing.assert_array_equal(by_re, a @ c - b @ d)
    np.testing.assert_array_equal(by_im, a @ d + b @ c)
    assert kernel.metadata.shared == 65536


@deuteron.jit
def weighted_products(x, y, w, by_x, by_y, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """Two results of 128 registers by wgmma, both multiplied with what both dots read."""
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    weights = tl.load(w + k[:, None] * N + j)
    first = tl.dot(tl.load(x + i * K + k[None, :]), weights)
    second = tl.dot(tl.load(y + i * K + k[None, :]), weights)
    total = tl.sum(first) + tl.sum(second)
    tl.store(by_x + i * N + j, first * weights + total)
    tl.store(by_y + i * N + j, second * weights - total)


def test_what_wgmma_reads_is_loaded_from_there_as_well(rng):
    x, y, w = (aligned(rng.integers(-2, 3, shape).astype(np.float16)) for shape in ((64, 64), (64, 64), (64, 256)))
    by_x, by_y = (aligned(np.zeros((64, 256), np.float32)) for _ in range(2))
    kernel = emulate(weighted_products, x, y, w, by_x, by_y, M=64, K=64, N=256, num_warps=4)
    first, second, weights = x @ w.astype(np.float32), y @ w.astype(np.float32), w.astype(np.float32)
    total = first.sum() + second.sum()
    np.testing.assert_array_equal(by_x, first * weights + total)
    np.testing.assert_array_equal(by_y, second * weights - total)
    ops = ops_of(kernel)
    assert [op for _, op, _ in ops].count("ttng.warp_group_dot") == 2
    assert "ttg.convert_layout" not in {op for _, op, rest in ops if "tensor<64x256xf16" in rest}

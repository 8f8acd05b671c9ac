"""Dots of 2 to 8 rows: transposed, so that tensor cores multiply them, also where one takes the other's sums."""

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled

import deuteron
import deuteron.language as tl

FP8 = ml_dtypes.float8_e4m3fn


@deuteron.jit
def product(a, w, out, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr, ALONG_K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        if ALONG_K:
            y = tl.load(w + n[None, :] * K + start + k[:, None])
        else:
            y = tl.load(w + (start + k)[:, None] * N + n[None, :])
        acc += tl.dot(x, y.to(x.dtype))
    tl.store(out + m[:, None] * N + n[None, :], acc)


def instruction_of(kernel) -> str:
    text = kernel.asm["ptx"]
    return next(name for name in ("wgmma.mma_async", "mma.sync", "fma.rn.f32") if name in text)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("target", "a", "w", "rows", "columns", "num_warps", "instruction"),
    [
        ("cuda:90", np.float16, np.float16, 8, 64, 4, "wgmma.mma_async"),
        ("cuda:90", ml_dtypes.bfloat16, ml_dtypes.bfloat16, 8, 128, 8, "wgmma.mma_async"),
        ("cuda:90", np.float16, np.float16, 8, 32, 2, "mma.sync"),
        ("cuda:90", np.float16, np.int8, 8, 64, 4, "mma.sync"),
        ("cuda:90", FP8, FP8, 8, 64, 4, "mma.sync"),
        ("cuda:80", np.float16, np.float16, 8, 16, 4, "mma.sync"),
        ("cuda:80", ml_dtypes.bfloat16, np.int8, 8, 64, 4, "mma.sync"),
        ("cuda:90", np.float16, np.float16, 4, 64, 4, "mma.sync"),
        ("cuda:90", ml_dtypes.bfloat16, ml_dtypes.bfloat16, 2, 128, 8, "mma.sync"),
        ("cuda:90", np.float16, np.int8, 4, 64, 4, "mma.sync"),
        ("cuda:90", FP8, FP8, 4, 64, 4, "mma.sync"),
        ("cuda:80", np.float16, np.float16, 2, 16, 1, "mma.sync"),
        ("cuda:90", np.float16, np.float16, 1, 64, 4, "fma.rn.f32"),
        ("cuda:90", np.float32, np.float32, 8, 64, 4, "fma.rn.f32"),
    ],
)
@pytest.mark.parametrize("along_k", [True, False])
def test_few_rows_are_the_columns_of_an_instruction(rng, target, a, w, rows, columns, num_warps, instruction, along_k):
    """One is too few for one; fp32 is not rounded to tf32 for it."""
    depth = 128
    x = aligned(rng.integers(-3, 4, (rows, depth)).astype(a))
    y = aligned(rng.integers(-3, 4, (columns, depth) if along_k else (depth, columns)).astype(w))
    out = aligned(np.zeros((rows, columns), np.float32))
    constants = {"M": rows, "N": columns, "BLOCK": 64, "ALONG_K": along_k}
    kernel = compile_for(target, product, x, y, out, depth, **constants, num_warps=num_warps)
    if along_k:
        assert instruction_of(kernel) == instruction
    emulate_compiled(kernel, x, y, out, depth)
    expected = x.astype(np.float64) @ (y.T if along_k else y).astype(np.float64)
    np.testing.assert_array_equal(out, expected)


@deuteron.jit
def attention(q, k, v, out, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = tl.load(q + m[:, None] * D + d[None, :])
    most, total = tl.full([M], float("-inf"), tl.float32), tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    for start in range(0, length, N):
        inside = start + n < length
        y = tl.load(k + (start + n)[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        z = tl.load(v + (start + n)[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(x, y), float("-inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        scale = tl.exp(most - new)
        total = total * scale + tl.sum(p, 1)
        acc = acc * scale[:, None] + tl.dot(p.to(z.dtype), z)
        most = new
    tl.store(out + m[:, None] * D + d[None, :], acc / total[:, None])


@pytest.mark.share(2)
@pytest.mark.parametrize(("target", "num_warps"), [("cuda:90", 4), ("cuda:90", 1), ("cuda:80", 4)])
@pytest.mark.parametrize(("rows", "length"), [(8, 64), (8, 150), (4, 150), (2, 100)])
def test_attention_of_few_queries(rng, target, num_warps, rows, length):
    q, k, v = (aligned((rng.standard_normal((count, 64)) / 4).astype(np.float16)) for count in (rows, length, length))
    out = aligned(np.zeros((rows, 64), np.float32))
    kernel = compile_for(target, attention, q, k, v, out, length, M=rows, N=64, D=64, num_warps=num_warps, num_stages=2)
    assert instruction_of(kernel) in ("wgmma.mma_async", "mma.sync")
    emulate_compiled(kernel, q, k, v, out, length)
    scores = np.exp(q.astype(np.float64) @ k.T.astype(np.float64))
    expected = (scores / scores.sum(1, keepdims=True)) @ v.astype(np.float64)
    np.testing.assert_allclose(out, expected, atol=2e-3)


@deuteron.jit
def beside_a_turned_tile(x, w, out, turned, n):
    m, i = tl.arange(0, 8), tl.arange(0, 32)
    square = i[:, None] * 32 + i[None, :]
    tile, acc = tl.load(w + square), tl.zeros([8, 32], tl.float32)
    for _ in range(n):
        acc = tl.dot(tl.load(x + m[:, None] * 32 + i[None, :]), tl.load(w + square), acc)
        tile = tl.trans(tile)
    tl.store(out + m[:, None] * 32 + i[None, :], acc)
    tl.store(turned + square, tile)


@pytest.mark.parametrize("n", [2, 3])
def test_a_tile_that_each_iteration_transposes_is_carried_as_it_is(rng, n):
    """Beside sums that are carried transposed."""
    x, w = (aligned(rng.integers(-3, 4, (rows, 32)).astype(np.float16)) for rows in (8, 32))
    out, turned = aligned(np.zeros((8, 32), np.float32)), aligned(np.zeros((32, 32), np.float16))
    kernel = compile_for("cuda:80", beside_a_turned_tile, x, w, out, turned, n)
    emulate_compiled(kernel, x, w, out, turned, n)
    np.testing.assert_array_equal(out, n * (x.astype(np.float32) @ w.astype(np.float32)))
    np.testing.assert_array_equal(turned, w.T if n % 2 else w)

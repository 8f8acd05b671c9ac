"""Dots whose operands are computed of what was loaded: of fewer bits, packed, scaled; rows from few to many."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu

ELEMENTS = ("int8", "uint8", "float16", "float8")


@deuteron.jit
def scaled_product(
    a_ptr,
    w_ptr,
    scales_ptr,
    out_ptr,
    N,
    K,
    BY_K: tl.constexpr,
    FP8: tl.constexpr,
    M: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    rows, columns, ks = tl.arange(0, M), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((M, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        if BY_K:
            w = tl.load(w_ptr + columns[None, :] * K + k + ks[:, None], mask=(columns < N)[None, :], other=0)
        else:
            w = tl.load(w_ptr + (k + ks)[:, None] * N + columns[None, :], mask=(columns < N)[None, :], other=0)
        if FP8:
            w = w.to(tl.float8e4nv, bitcast=True)
        scale = tl.load(scales_ptr + (k // BK) * N + columns, mask=columns < N, other=0.0)
        acc = tl.dot(a, w.to(tl.float16) * scale[None, :], acc)
    mask = (columns < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask & (rows >= 0)[:, None])


@pytest.mark.share(4)
@pytest.mark.parametrize("by_k", [True, False])
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("m", "block_n", "num_warps"), [(16, 32, 4), (64, 64, 4), (64, 128, 8)])
def test_narrow_weights(executor, rng, element, by_k, m, block_n, num_warps):
    check_narrow_weights(rng, element, by_k, m, block_n, num_warps)


def test_narrow_weights_by_specialised_warps(executor, rng):
    """Of so many sums a multiprocessor has the registers for one program only."""
    check_narrow_weights(rng, "int8", True, 256, 128, 8, k=256)


def check_narrow_weights(rng, element, by_k, m, block_n, num_warps, k=128):
    n, block_k = 56, 64
    a, scales = (
        rng.standard_normal((m, k)).astype(np.float16),
        rng.standard_normal((k // block_k, n)).astype(np.float16),
    )
    w, wide = narrow(rng, element, n, k)
    stored = np.ascontiguousarray(w if by_k else w.T)
    out = np.full((m, n), np.nan, np.float32)
    sizes = {"BY_K": by_k, "FP8": element == "float8", "M": m, "BN": block_n, "BK": block_k}
    grid = (deuteron.cdiv(n, block_n),)
    scaled_product[grid](a, stored, scales, out, n, k, num_warps=num_warps, num_stages=3, **sizes)
    scaled = (wide.astype(np.float16) * scales.repeat(block_k, 0).T).astype(np.float64)
    np.testing.assert_allclose(out, a.astype(np.float64) @ scaled.T, rtol=1e-4, atol=1e-4 * np.abs(scaled).max())


def narrow(rng, element, n, k):
    """[n, k] as it is stored, and what it is."""
    if element == "float8":
        codes = rng.integers(0, 256, (n, k)).astype(np.uint8)
        codes = np.where(codes & 0x7F == 0x7F, 0, codes).astype(np.uint8)  # NaN
        exponent, mantissa = (codes >> 3 & 15).astype(int), codes & 7
        magnitude = np.where(exponent, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9)
        return codes.view(np.int8), np.where(codes & 128, -magnitude, magnitude)
    if element == "float16":
        w = rng.standard_normal((n, k)).astype(np.float16)
        return w, w
    info = np.iinfo(element)
    w = rng.integers(info.min, info.max + 1, (n, k)).astype(element)
    return w, w


@deuteron.jit
def packed_product(
    a_ptr,
    w_ptr,
    scales_ptr,
    out_ptr,
    M,
    N,
    K,
    PER_WORD: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Words of 32 bits hold PER_WORD successive k of a column; pointers are carried."""
    BITS: tl.constexpr = 32 // PER_WORD
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + (ks // PER_WORD)[:, None] * N + columns[None, :]
    in_rows, in_columns = (rows < M)[:, None], (columns < N)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        words = tl.load(w_ptrs, mask=in_columns, other=0)
        w = (words >> (ks % PER_WORD * BITS)[:, None]) & ((1 << BITS) - 1)
        scale = tl.load(scales_ptr + k // BK * N + columns[None, :], mask=in_columns, other=0.0)
        acc += tl.dot(tl.load(a_ptrs, mask=in_rows, other=0.0), (w - 8).to(tl.float16) * scale)
        a_ptrs += BK
        w_ptrs += BK // PER_WORD * N
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc, mask=in_rows & in_columns)


@pytest.mark.parametrize(("m", "block_m", "per_word"), [(5, 16, 8), (16, 16, 4), (50, 64, 8), (16, 16, 2)])
def test_packed_weights(executor, rng, m, block_m, per_word):
    n, k, block_k, bits = 56, 128, 64, 32 // per_word
    a = (rng.standard_normal((m, k))).astype(np.float16)
    scales = (rng.standard_normal((k // block_k, n)) / 2**bits).astype(np.float16)
    numbers = rng.integers(0, 1 << min(bits, 11), (k, n))
    words = sum(numbers[i::per_word] << bits * i for i in range(per_word)).astype(np.uint32).view(np.int32)
    out = np.full((m, n), np.nan, np.float32)
    sizes = {"PER_WORD": per_word, "BM": block_m, "BN": 64, "BK": block_k}
    packed_product[(1,)](a, words, scales, out, m, n, k, num_warps=4, num_stages=3, **sizes)
    w = ((numbers - 8).astype(np.float16) * scales.repeat(block_k, 0)).astype(np.float64)
    np.testing.assert_allclose(out, a.astype(np.float64) @ w, rtol=1e-4, atol=1e-4 * np.abs(w).max())


@deuteron.jit
def joined_product(
    a_ptr,
    w_ptr,
    scales_ptr,
    out_ptr,
    N,
    K,
    HOW: tl.constexpr,
    M: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Bytes hold two successive k of a row, as numbers with signs; sums of a step are scaled."""
    rows, columns, ks, halves = tl.arange(0, M), tl.arange(0, BN), tl.arange(0, BK), tl.arange(0, BK // 2)
    in_columns = columns < N
    acc = tl.zeros((M, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        places = columns[:, None] * (K // 2) + k // 2 + halves[None, :]
        pairs = tl.load(w_ptr + places, mask=in_columns[:, None], other=0)
        low, high = (pairs << 4).to(tl.int8) >> 4, pairs >> 4
        if HOW == "join":
            w = tl.join(low.to(a.dtype), high.to(a.dtype)).reshape(BN, BK).T
        elif HOW == "interleave":
            w = tl.interleave(low, high).to(a.dtype).T
        else:
            w = tl.join(low.to(a.dtype) * 2, high.to(a.dtype)).reshape(BN, BK).T
        scale = tl.load(scales_ptr + columns * (K // BK) + k // BK, mask=in_columns, other=0.0)
        acc += tl.dot(a, w) * scale[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc, mask=in_columns[None, :] & (rows >= 0)[:, None])


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("how", "m", "element"),
    [("join", 16, "float16"), ("join", 64, "bfloat16"), ("interleave", 16, "bfloat16"), ("different", 16, "bfloat16")],
)
def test_pairs_are_joined(draw, rng, poisoned, how, m, element):
    n, k, block_k = 56, 128, 64
    a, out = draw(element, (m, k), -2, 2), poisoned("float32", (m, n))
    numbers = rng.integers(-8, 8, (n, k))
    pairs = (numbers[:, ::2] & 15 | numbers[:, 1::2] << 4).astype(np.int8)
    scales = rng.standard_normal((n, k // block_k)).astype(np.float32)
    joined_product[(1,)](a, pairs, scales, out, n, k, HOW=how, M=m, BN=64, BK=block_k, num_stages=3)
    w = numbers * np.where((np.arange(k) % 2 == 0) & (how == "different"), 2, 1) * scales.repeat(block_k, 1)
    expected = a.astype(np.float64) @ w.T.astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@deuteron.jit
def promised_rows(x_ptr, words_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Of words, which rows of eight share, under a mask; what is said of the rows is not true of every eighth."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        ks = tl.max_contiguous(tl.multiple_of(k + tl.arange(0, BK), BK), BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :])
        inside = (ks // 8 < K // 8 - 1)[:, None]
        words = tl.load(words_ptr + (ks // 8)[:, None] * N + columns[None, :], mask=inside, other=0)
        acc = tl.dot(x, ((words >> (ks % 8 * 4)[:, None]) & 15).to(tl.float16), acc)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


def test_promises_about_rows_that_are_loaded_once(draw, poisoned, check):
    M, N, K = 16, 32, 128
    x, words, out = draw("float16", (M, K), -1, 1), draw("int32", (K // 8, N)), poisoned("float32", (M, N))
    w = (words[:, None, :] >> (4 * np.arange(8))[None, :, None]) & 15
    w[-1] = 0
    promised_rows[(1,)](x, words, out, K, M=M, N=N, BK=64, num_warps=1)
    np.testing.assert_allclose(out, x.astype(np.float64) @ w.reshape(K, N), rtol=1e-3, atol=1e-2)


@deuteron.jit
def doubled_product(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        b = tl.load(b_ptr + (k + ks)[:, None] * N + columns[None, :])
        acc = tl.dot(a * 2, b, acc, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


def test_two_iterations_that_are_more_than_shared_memory(draw, poisoned, check):
    """Of 48 KB each, beside 32 KB that are computed: sm_89 and 120 have 99 KB. Triton needs 80 with two stages."""
    m, n, k, block = 128, 64, 192, 64
    a, b, out = draw("float32", (m, k), -4, 4), draw("float32", (k, n), -4, 4), poisoned("float32", (m, n))
    a, b = np.round(a), np.round(b)
    doubled_product[(1,)](a, b, out, k, M=m, N=n, BK=block, num_stages=2)
    check(out, 2 * a @ b)

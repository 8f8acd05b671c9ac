"""Kernels whose loads are done by warps of their own give the same numbers; a missing wait is caught."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text, emulate, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.emulator import EmulatorOptions, launch
from deuteron.errors import IRError


@deuteron.jit
def matmul(
    a,
    b,
    out,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    WRAP: tl.constexpr,
    ASKED: tl.constexpr,
):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    stride_bk, stride_bn = (1, K) if TRANSPOSED else (N, 1)
    a_rows, b_columns = (rows % M, columns % N) if WRAP else (rows, columns)
    a_ptrs = a + a_rows[:, None] * K + ks[None, :]
    b_ptrs = b + ks[:, None] * stride_bk + b_columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(tl.cdiv(K, BK), warp_specialize=ASKED):
        left = K - k * BK
        if WRAP:
            x = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
            y = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
        else:
            x = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < left), other=0.0)
            y = tl.load(b_ptrs, mask=(ks[:, None] < left) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out + rows[:, None] * N + columns[None, :], acc, mask=inside)


def draw(rng, *shape, dtype=np.float16):
    """Small whole numbers, so that every sum is exact."""
    return aligned(rng.integers(-4, 5, shape).astype(dtype))


def multiply(rng, m, n, k, transposed=False, wrap=False, asked=True, tile=(128, 64, 32), **options):
    a, b = draw(rng, m, k), draw(rng, n, k) if transposed else draw(rng, k, n)
    out = aligned(np.full((m, n), np.nan, np.float32))
    sizes = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    grid = (-(-m // tile[0]), -(-n // tile[1]))
    given = {"TRANSPOSED": transposed, "WRAP": wrap, "ASKED": asked, "num_stages": 3, **sizes, **options}
    kernel = emulate(matmul, a, b, out, m, n, k, grid=grid, **given)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32))
    return kernel


def is_specialized(kernel) -> bool:
    return kernel.metadata.extra_warps > 0


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(rng, way, transposed, wrap):
    kernel = multiply(rng, 128, 128, 160, transposed, wrap, num_warps=8)
    assert is_specialized(kernel)
    assert bool(instructions_with(kernel, "cp.async.mbarrier.arrive.noinc")) == (way == "pointers")
    assert bool(instructions_with(kernel, "cp.async.bulk.tensor")) == (way == "TMA")


@pytest.mark.parametrize("wrap", [False, True])
def test_odd_sizes(rng, way, wrap):
    assert is_specialized(multiply(rng, 144, 80, 112, False, wrap, num_warps=8))


@pytest.mark.share(2)
@pytest.mark.parametrize("k", [0, 16, 32, 64, 96, 224])
def test_short_loops(rng, way, k):
    assert is_specialized(multiply(rng, 128, 64, k, num_warps=8))


@pytest.mark.parametrize("stages", [2, 4, 5])
def test_stages(rng, way, stages):
    assert is_specialized(multiply(rng, 128, 64, 224, num_warps=8, num_stages=stages))


@pytest.mark.parametrize("num_warps", [4, 16])
def test_other_numbers_of_warps(rng, way, num_warps):
    tile = (256, 64, 32) if num_warps == 16 else (64, 64, 32)
    assert is_specialized(multiply(rng, 256, 64, 96, tile=tile, num_warps=num_warps))
    assert not is_specialized(multiply(rng, 256, 64, 96, asked=False, tile=tile, num_warps=num_warps))


def test_a_large_tile(rng, way):
    assert is_specialized(multiply(rng, 128, 256, 192, tile=(128, 256, 64), num_warps=8))


@deuteron.jit
def attention(
    q, k, v, out, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, ASKED: tl.constexpr
):
    """Two loops in a row where it is causal: the tiles that all rows see, then those on the diagonal."""
    first = tl.program_id(0) * BM
    rows, columns, dims = first + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total, acc = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    end = first if CAUSAL else n
    for start in tl.range(0, end, BN, warp_specialize=ASKED):
        y = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        scores = tl.dot(x, y)
        new_top = tl.maximum(top, tl.max(scores, 1))
        p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
        z = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        acc = tl.dot(p.to(tl.float16), z, acc * alpha[:, None])
        total, top = total * alpha + tl.sum(p, 1), new_top
    if CAUSAL:
        for start in tl.range(first, first + BM, BN, warp_specialize=ASKED):
            y = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
            scores = tl.dot(x, y)
            scores = tl.where(rows[:, None] >= start + columns[None, :], scores, float("-inf"))
            new_top = tl.maximum(top, tl.max(scores, 1))
            p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
            z = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
            acc = tl.dot(p.to(tl.float16), z, acc * alpha[:, None])
            total, top = total * alpha + tl.sum(p, 1), new_top
    tl.store(out + rows[:, None] * D + dims[None, :], acc / total[:, None])


@pytest.mark.share(2)
@pytest.mark.parametrize(("block", "stages", "asked"), [(64, 2, True), (64, 3, True), (128, 2, False)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(rng, way, causal, block, stages, asked):
    """Tiles of 128 by 128 are enough for two warpgroups to be given others without asking."""
    n = 384
    q, k, v = (aligned(rng.standard_normal((n, 64)).astype(np.float16)) for _ in range(3))
    out = aligned(np.full((n, 64), np.nan, np.float32))
    given = {"D": 64, "BM": 128, "BN": block, "CAUSAL": causal, "ASKED": asked, "num_warps": 8, "num_stages": stages}
    assert is_specialized(emulate(attention, q, k, v, out, n, grid=(3,), **given))
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    if causal:
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    p = np.exp(scores)
    reference = p @ v.astype(np.float64) / p.sum(1, keepdims=True)
    assert np.abs(out - reference).max() / np.abs(reference).max() < 1e-3


@deuteron.jit
def persistent(a, b, out, tiles, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SKIP: tl.constexpr):
    """A program does several tiles; with SKIP only those of even number."""
    ks = tl.arange(0, BK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        rows = tile // (N // BN) * BM + tl.arange(0, BM)
        columns = tile % (N // BN) * BN + tl.arange(0, BN)
        if tile % 2 == 0 or not SKIP:
            acc = tl.zeros((BM, BN), tl.float32)
            for k in tl.range(0, K, BK, warp_specialize=True):
                x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
                y = tl.load(b + (k + ks)[:, None] * N + columns[None, :])
                acc = tl.dot(x, y, acc)
            tl.store(out + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("skip", [False, True])
def test_persistent_loops(rng, way, skip):
    m, n, k = 256, 192, 160
    a, b, out = draw(rng, m, k), draw(rng, k, n), aligned(np.full((m, n), 7, np.float32))
    given = {"BM": 128, "BN": 64, "BK": 32, "SKIP": skip, "num_warps": 8}
    assert is_specialized(emulate(persistent, a, b, out, 6, m, n, k, grid=(2,), **given))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    if skip:
        for tile in (1, 3, 5):
            expected[tile // 3 * 128 :, tile % 3 * 64 :][:128, :64] = 7
    np.testing.assert_array_equal(out, expected)


# -- by TMA ---


@deuteron.jit
def blocks(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANSPOSED: tl.constexpr):
    rows, columns = tl.program_id(0) * BM, tl.program_id(1) * BN
    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    if TRANSPOSED:
        y = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    else:
        y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        if TRANSPOSED:
            acc = tl.dot(x.load([rows, k]), y.load([columns, k]).T, acc)
        else:
            acc = tl.dot(x.load([rows, k]), y.load([k, columns]), acc)
    z = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    z.store([rows, columns], acc)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("transposed", [False, True])
def test_blocks_are_copied_by_one_thread(rng, transposed, num_warps):
    m, n, k = 144, 80, 112
    a, b = draw(rng, m, k), draw(rng, n, k) if transposed else draw(rng, k, n)
    out = aligned(np.full((m, n), np.nan, np.float32))
    sizes = {"BM": 128, "BN": 64, "BK": 32, "TRANSPOSED": transposed}
    kernel = emulate(blocks, a, b, out, m, n, k, grid=(2, 2), num_warps=num_warps, **sizes)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32))
    assert is_specialized(kernel)
    assert not instructions_with(kernel, "cp.async.cg") and instructions_with(kernel, "cp.async.bulk.tensor")


@deuteron.jit
def one_each_way(a, b, out, before, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """It is not known that `a - before` is not before the array."""
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        x = tl.load(a - before + rows[:, None] * K + (k + ks)[None, :], mask=(k + ks < K)[None, :], other=0.0)
        y = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=(k + ks < K)[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("k", [0, 16, 112, 256])
def test_one_operand_by_tma_and_one_by_pointers(rng, num_warps, k):
    a, b, out = draw(rng, 128, k), draw(rng, k, 64), aligned(np.full((128, 64), np.nan, np.float32))
    kernel = emulate(one_each_way, a, b, out, 0, 64, k, BM=128, BN=64, BK=32, num_warps=num_warps)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert kernel.metadata.extra_warps == 4
    assert instructions_with(kernel, "cp.async.bulk.tensor") and instructions_with(kernel, "cp.async.cg")


@deuteron.jit
def block_attention(q, k, v, out, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, dims = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    keys = tl.make_tensor_descriptor(k, [n, D], [D, 1], [BN, D])
    values = tl.make_tensor_descriptor(v, [n, D], [D, 1], [BN, D])
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    total, acc = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, n, BN, warp_specialize=True):
        p = tl.exp(tl.dot(x, keys.load([start, 0]).T))
        acc = tl.dot(p.to(tl.float16), values.load([start, 0]), acc)
        total += tl.sum(p, 1)
    tl.store(out + rows[:, None] * D + dims[None, :], acc / total[:, None])


@pytest.mark.parametrize("stages", [2, 3])
def test_blocks_of_one_kind_share_a_ring(rng, stages):
    n = 256
    q, k, v = (aligned((rng.standard_normal((n, 64)) / 4).astype(np.float16)) for _ in range(3))
    out = aligned(np.full((n, 64), np.nan, np.float32))
    kernel = emulate(block_attention, q, k, v, out, n, D=64, BM=128, BN=64, grid=(2,), num_warps=8, num_stages=stages)
    assert is_specialized(kernel) and generic_asm(kernel, "ttgir").count("64x64xf16, #shared") > 0
    p = np.exp(q.astype(np.float64) @ k.astype(np.float64).T)
    reference = p @ v.astype(np.float64) / p.sum(1, keepdims=True)
    assert np.abs(out - reference).max() / np.abs(reference).max() < 1e-3


@deuteron.jit
def matmul_with_atomics(a, b, c, count, K, KIND: tl.constexpr):
    i, ks = tl.arange(0, 128), tl.arange(0, 64)
    square = i[:, None] * 128 + i[None, :]
    acc = tl.zeros((128, 128), tl.float32)
    for k in tl.range(0, K, 64, warp_specialize=True):
        acc = tl.dot(
            tl.load(a + i[:, None] * K + (k + ks)[None, :]), tl.load(b + (k + ks)[:, None] * 128 + i[None, :]), acc
        )
        if KIND == "counted":
            tl.atomic_add(count, 1, sem="relaxed")
    if KIND == "ordered":
        tl.atomic_add(count, 1)
    if KIND == "tile":
        tl.atomic_add(c + square, acc, sem="relaxed")
    elif KIND == "block":
        tl.make_tensor_descriptor(c, [128, 128], [128, 1], [128, 128]).atomic_add([0, 0], acc)
    else:
        tl.store(c + square, acc)


@pytest.mark.parametrize("kind", ["counted", "ordered", "tile", "block"])
def test_atomics_that_order_nothing_do_not_hold_up_the_copies(rng, kind):
    a, b, c = draw(rng, 128, 128), draw(rng, 128, 128), aligned(np.zeros((128, 128), np.float32))
    count = aligned(np.zeros(4, np.int32))
    kernel = compile_for("cuda:90", matmul_with_atomics, a, b, c, count, 128, KIND=kind)
    emulate_compiled(kernel, a, b, c, count, 128, asynchronous="random")
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert is_specialized(kernel) == (kind != "ordered")


# -- what is left out is caught ---


def runs_right(kernel, a, b, asynchronous):
    out, metadata = aligned(np.full((128, 64), np.nan, np.float32)), kernel.metadata
    launch(
        *(kernel.asm["ptx"], metadata.symbol, (1,), metadata.num_threads, metadata.shared),
        (a, b, out, 128, 64, a.shape[1]),
        options=EmulatorOptions(asynchronous=asynchronous),
    )
    return np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


def test_no_wait_arrival_or_fence_can_be_left_out(rng, by_pointers):
    a, b, out = draw(rng, 128, 256), draw(rng, 256, 64), np.zeros((128, 64), np.float32)
    sizes = {"BM": 128, "BN": 64, "BK": 32, "TRANSPOSED": False, "WRAP": False, "ASKED": True}
    text = generic_asm(compile_for("cuda:90", matmul, a, b, out, 128, 64, 256, num_warps=8, **sizes), "ttgir")
    for asynchronous in ("late", "early", "random"):
        assert runs_right(compile_text(text, "cuda:90", "ttgir", num_warps=8), a, b, asynchronous)
    lines = text.splitlines()
    pattern = re.compile(r'"ttng\.(wait_barrier|arrive_barrier|fence_async_shared|async_copy_mbarrier_arrive)"')
    places = [number for number, line in enumerate(lines) if pattern.search(line)]
    assert len(places) == 6
    for place in places:
        with pytest.raises(IRError):
            broken = compile_text("\n".join(lines[:place] + lines[place + 1 :]), "cuda:90", "ttgir", num_warps=8)
            runs_right(broken, a, b, "late")
            pytest.fail(f"{lines[place]} was not missed")


@deuteron.jit
def two_precisions(a, b, out, K: tl.constexpr):
    """What is loaded once is converted for one dot, which is the first to read it, and read as it is by another."""
    rows, columns, ks = tl.arange(0, 64), tl.arange(0, 16), tl.arange(0, 16)
    ones, acc = tl.full((64, 16), 1.0, tl.float32), tl.zeros((64, 16), tl.float32)
    for k in tl.range(0, K, 16, warp_specialize=True):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b + (k + ks)[:, None] * 32 + columns[None, :])
        acc = tl.dot(x, y, acc, input_precision="tf32x3")
        acc = tl.dot(ones, y, acc, input_precision="ieee")
        acc = acc * 0.5
    tl.store(out + rows[:, None] * 16 + columns[None, :], acc)


def test_a_conversion_is_the_first_reader(rng):
    K = 48
    a, b = draw(rng, 64, K, dtype=np.float32), draw(rng, K, 32, dtype=np.float32)
    out = aligned(np.full((64, 16), np.nan, np.float32))
    kernel = emulate(two_precisions, a, b, out, K=K)
    expected = np.zeros((64, 16), np.float32)
    for k in range(0, K, 16):
        expected = (expected + (a[:, k : k + 16] + 1) @ b[k : k + 16, :16]) / 2
    np.testing.assert_array_equal(out, expected)
    assert is_specialized(kernel)

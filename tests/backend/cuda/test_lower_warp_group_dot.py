"""Dots of warpgroups by wgmma: types, orders of the operands, shares of the warps, loops, chains."""

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.compiler import CompiledKernel

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@deuteron.jit
def matmul(
    a, b, out, M, N, K, LEFT: tl.constexpr, RIGHT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """LEFT, RIGHT: whether rows of the matrix are contiguous."""
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), out.dtype.element_ty)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        at = i[:, None] * K + k[None, :] if LEFT else i[:, None] + k[None, :] * M
        x = tl.load(a + at, mask=(i[:, None] < M) & (k[None, :] < K), other=0)
        at = k[:, None] * N + j[None, :] if RIGHT else k[:, None] + j[None, :] * K
        y = tl.load(b + at, mask=(k[:, None] < K) & (j[None, :] < N), other=0)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


def run(rng, dtype, result, sizes, tile, rows=(True, True), **options) -> CompiledKernel:
    """Small whole numbers, so that every sum is exact."""
    m, n, k = sizes
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    held = [aligned(np.ascontiguousarray(x if by_rows else x.T)) for x, by_rows in zip((a, b), rows, strict=True)]
    out = np.full((m, n), 99, result)
    constants = dict(zip(("BM", "BN", "BK", "LEFT", "RIGHT"), (*tile, *rows), strict=True))
    grid = [-(-size // part) for size, part in zip((m, n), tile[:2], strict=True)]
    kernel = emulate(matmul, *held, out, m, n, k, grid=grid, **constants, **options)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(result).astype(np.float64))
    assert not kernel.metadata.resources["warnings"]
    return kernel


TYPES = [
    (np.float16, np.float32, "k16.f32.f16.f16"),
    (np.float16, np.float16, "k16.f32.f16.f16"),
    (BF16, np.float32, "k16.f32.bf16.bf16"),
    (np.float32, np.float32, "k8.f32.tf32.tf32"),
    (E4M3, np.float32, "k32.f32.e4m3.e4m3"),
    (E5M2, np.float16, "k32.f32.e5m2.e5m2"),
    (np.int8, np.int32, "k32.s32.s8.s8"),
]


@pytest.mark.share(3)
@pytest.mark.parametrize("rows", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize(("dtype", "result", "name"), TYPES)
def test_types_and_orders(rng, dtype, result, name, rows):
    kernel = run(rng, dtype, result, (100, 72, 80), (64, 32, 64), rows)
    assert instructions_with(kernel, f"wgmma.mma_async.sync.aligned.m64n32{name}")
    assert not instructions_with(kernel, "mma.sync")


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("tile", "num_warps", "n", "count"),
    [
        ((64, 8, 64), 4, 8, 4),
        ((128, 64, 32), 4, 64, 4),  # two instructions below each other
        ((128, 64, 32), 8, 64, 2),  # a warpgroup for each
        ((64, 64, 32), 8, 32, 2),  # warpgroups beside each other
        ((64, 16, 32), 8, 8, 2),  # too narrow to be read along N
        ((128, 128, 16), 16, 64, 1),
        ((64, 256, 32), 4, 256, 2),
    ],
)
@pytest.mark.parametrize("rows", [(True, True), (False, False)])
def test_tiles(rng, tile, num_warps, n, count, rows):
    kernel = run(rng, np.float16, np.float32, (130, 136, 72), tile, rows, num_warps=num_warps)
    assert len(instructions_with(kernel, f"wgmma.mma_async.sync.aligned.m64n{n}k16")) == count


@pytest.mark.share(2)
@pytest.mark.parametrize("num_stages", [1, 2, 3, 4])
@pytest.mark.parametrize("sizes", [(64, 64, 5), (64, 64, 32), (64, 64, 64), (128, 64, 200)])
def test_loops_of_few_iterations(rng, sizes, num_stages):
    run(rng, np.float16, np.float32, sizes, (64, 64, 32), num_stages=num_stages)


def test_no_iteration_leaves_zeros(rng):
    a = aligned(np.zeros((64, 16), np.float16))
    out = np.full((64, 64), 7, np.float32)
    constants = {"LEFT": True, "RIGHT": True, "BM": 64, "BN": 64, "BK": 32}
    emulate(matmul, a, a, out, 64, 64, 0, **constants)
    np.testing.assert_array_equal(out, 0)


def test_the_loop_is_rolled_and_zeros_are_not_added(rng):
    kernel = run(rng, np.float16, np.float32, (64, 64, 64), (64, 64, 32))
    assert '.pragma "nounroll"' in kernel.asm["ptx"]
    x, out = aligned(np.zeros((64, 64), np.float16)), np.zeros((64, 64), np.float32)
    kernel = compile_for("cuda:90", two_dots, x, x, x, out, N=64)
    assert len(instructions_with(kernel, "q, 1, 1, ")) == 2  # the first instruction of each dot
    assert len(instructions_with(kernel, "wgmma.mma_async")) == 8


@deuteron.jit
def two_dots(q, k, v, out, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    p = tl.dot(tl.load(q + square), tl.trans(tl.load(k + square)))
    tl.store(out + square, tl.dot(p.to(q.dtype.element_ty), tl.load(v + square)))


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32])
def test_a_dot_becomes_operand_a_in_registers(rng, dtype):
    q, k, v = (aligned(rng.integers(-2, 3, (64, 64)).astype(dtype)) for _ in range(3))
    out = np.zeros((64, 64), np.float32)
    kernel = emulate(two_dots, q, k, v, out, N=64)
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    np.testing.assert_array_equal(out, (q @ k.T) @ v)
    from_registers = [line for line in instructions_with(kernel, "wgmma.mma_async") if line.count("{") == 2]
    assert len(from_registers) == 64 // {2: 16, 4: 8}[np.dtype(dtype).itemsize]
    assert generic_asm(kernel, "ttgir").count('"ttg.memdesc_trans"') == 1


def test_an_8_bit_dot_becomes_operand_a(rng):
    q, k, v = (aligned(rng.integers(-2, 3, (64, 64)).astype(E4M3)) for _ in range(3))
    q[...] = np.eye(64)
    out = np.zeros((64, 64), np.float32)
    emulate(two_dots, q, k, v, out, N=64)
    np.testing.assert_array_equal(out, k.astype(np.float32).T @ v.astype(np.float32))


@deuteron.jit
def ones(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    tile = tl.load(a + square)
    tl.store(out + square, tl.dot(tile, tile, tl.full((N, N), 1.0, tl.float32)))


def test_a_constant_accumulator_that_is_not_zero(rng):
    a, out = aligned(rng.integers(-4, 5, (64, 64)).astype(np.float16)), np.zeros((64, 64), np.float32)
    kernel = emulate(ones, a, out, N=64)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ a.astype(np.float32) + 1)
    assert generic_asm(kernel, "ttgir").count('"ttg.local_alloc"') == 1


@deuteron.jit
def imprecise(a, b, out, N: tl.constexpr, K: tl.constexpr, LIMIT: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + i[None, :] * K + k[:, None])
    tl.store(out + i[:, None] * N + i[None, :], tl.dot(x, y, max_num_imprecise_acc=LIMIT))


@pytest.mark.parametrize(("limit", "groups"), [(None, 1), (0, 1), (256, 1), (128, 1), (64, 2), (32, 4)])
def test_sums_of_fp8_dots_are_moved_to_full_precision(rng, limit, groups):
    a, b = (aligned(rng.integers(-4, 5, (64, 128)).astype(E4M3)) for _ in range(2))
    out = np.zeros((64, 64), np.float32)
    kernel = emulate(imprecise, a, b, out, N=64, K=128, LIMIT=limit)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
    assert len(instructions_with(kernel, "wgmma.commit_group")) == groups
    assert len(instructions_with(kernel, "wgmma.mma_async")) == 4


@pytest.mark.parametrize("target", ["cuda:80", "cuda:89", "cuda:120"])
def test_other_targets_use_mma_sync(target):
    a, out = aligned(np.zeros((64, 64), np.float16)), np.zeros((64, 64), np.float32)
    kernel = compile_for(target, ones, a, out, N=64)
    assert instructions_with(kernel, "mma.sync") and not instructions_with(kernel, "wgmma")


@pytest.mark.parametrize("asynchronous", ["late", "early", "random"])
def test_whenever_dots_happen(rng, asynchronous):
    a, b = (aligned(rng.integers(-4, 5, (64, 256)).astype(np.float16)) for _ in range(2))
    out = np.zeros((64, 64), np.float32)
    constants = {"LEFT": True, "RIGHT": False, "BM": 64, "BN": 64, "BK": 32}
    kernel = compile_for("cuda:90", matmul, a, b, out, 64, 64, 256, **constants)
    emulate_compiled(kernel, a, b, out, 64, 64, 256, asynchronous=asynchronous)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)

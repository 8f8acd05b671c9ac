"""Loops whose loads are copied ahead give the same numbers; without one of their waits or barriers they are caught."""

import re

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text, emulate, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.emulator import EmulatorOptions, launch
from deuteron.emulator.faults import EmulatorError
from deuteron.errors import IRError
from deuteron.passes.gpu.memory.allocate_shared import AllocateShared

TARGETS = ("cuda:80", "cuda:90", "cuda:90 by pointers", "cuda:120")


@pytest.fixture
def target(request):
    """A target; on sm_90 tiles are copied by TMA where that is provable, unless it is said that they go by pointers."""
    name, by_pointers, _ = request.param.partition(" by pointers")
    if by_pointers:
        request.getfixturevalue("by_pointers")
    return name


targets = pytest.mark.parametrize("target", TARGETS, indirect=True)
two_targets = pytest.mark.parametrize("target", TARGETS[:3], indirect=True)


def is_copied_ahead(kernel) -> bool:
    """By cp.async in whole chunks, or by TMA."""
    return any(instructions_with(kernel, name) for name in ("cp.async.cg.shared.global", "cp.async.bulk.tensor"))


@deuteron.jit
def matmul(a, b, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANSPOSED: tl.constexpr):
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    stride_bk, stride_bn = (1, K) if TRANSPOSED else (N, 1)
    a_ptrs = a + rows[:, None] * K + ks[None, :]
    b_ptrs = b + ks[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(a_ptrs, mask=ks[None, :] < K - k * BK, other=0.0)
        y = tl.load(b_ptrs, mask=ks[:, None] < K - k * BK)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


def draw(rng, dtype, *shape):
    return aligned(rng.integers(-4, 5, shape).astype(dtype))


def multiply(rng, dtype, k, target, stages, transposed=False, **options):
    """Small whole numbers, so that every sum is exact; 64x64 in steps of 32."""
    a, b = draw(rng, dtype, 64, k), draw(rng, dtype, 64, k) if transposed else draw(rng, dtype, k, 64)
    out = aligned(np.full((64, 64), np.nan, np.float32))
    sizes = {"BM": 64, "BN": 64, "BK": 32, "TRANSPOSED": transposed}
    kernel = emulate(matmul, a, b, out, 64, k, **sizes, target=target, num_stages=stages, **options)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32))
    return kernel


@pytest.mark.share(2)
@targets
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_matmul(rng, target, stages):
    kernel = multiply(rng, np.float16, 144, target, stages)
    assert is_copied_ahead(kernel) or stages == 1


def test_a_mask_is_the_condition_of_a_copy(rng, by_pointers):
    copies = instructions_with(multiply(rng, np.float16, 144, "cuda:90", 3), "cp.async.cg.shared.global")
    assert all(re.search(r"16, %p\d+$", copy) for copy in copies)


@pytest.mark.share(2)
@targets
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
def test_types(rng, target, dtype):
    if dtype == np.int8:
        dtype = ml_dtypes.float8_e5m2  # whole numbers up to 4 are exact
    assert instructions_with(multiply(rng, dtype, 96, target, 3), "cp.async")


@targets
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_transposed_operand(rng, target, dtype):
    assert is_copied_ahead(multiply(rng, dtype, 96, target, 3, transposed=True))


@pytest.mark.share(2)
@two_targets
@pytest.mark.parametrize("k", [0, 16, 32, 48, 64])
def test_short_loops(rng, target, k):
    multiply(rng, np.float16, k, target, 4)


@pytest.mark.parametrize("num_warps", [1, 2, 8])
@two_targets
def test_numbers_of_warps(rng, target, num_warps):
    multiply(rng, np.float16, 96, target, 3, num_warps=num_warps)


@pytest.mark.parametrize("k", [3, 31, 99])
@two_targets
def test_rows_that_are_not_aligned_go_through_registers(rng, target, k):
    kernel = multiply(rng, np.float16, k, target, 3)
    assert instructions_with(kernel, "ld.global") and is_copied_ahead(kernel)


@deuteron.jit
def variants(a, b, out, index, n, K, BLOCK: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    square = i[:, None] * BLOCK + i[None, :]
    for tile in range(n):
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for k in range(K):
            at = k * BLOCK * BLOCK + square
            x = tl.load(a + tile * K * BLOCK * BLOCK + at)
            if CASE == "rows":
                y = tl.load(b + tl.load(index + k * BLOCK + i)[:, None] * BLOCK + i[None, :])
            elif CASE == "other":
                y = tl.load(b + at, mask=(i < BLOCK // 2)[:, None], other=3.0)
            else:
                y = tl.load(b + at)
            if CASE == "cast":
                y = (y.to(tl.float32) * 2).to(tl.float16)
            if CASE == "also":
                sums += tl.sum(x.to(tl.float32), 1)
            if CASE == "branch":
                if k % 2 == 0:
                    acc = tl.dot(x, y, acc)
                else:
                    acc -= tl.dot(x, y)
            elif CASE == "trans":
                acc = tl.dot(x, tl.trans(y), acc)
            else:
                acc = tl.dot(x, y, acc)
        tl.store(out + tile * BLOCK * BLOCK + square, acc + sums[:, None])


def expected(case, a, b, index):
    """Sums over k of a[tile, k] @ b[k], as the kernel does them."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    if case == "rows":
        b = b.reshape(-1, b.shape[2])[index].reshape(b.shape)
    if case == "other":
        b = np.where(np.arange(b.shape[1])[:, None] < b.shape[1] // 2, b, np.float32(3))
    if case == "cast":
        b = 2 * b
    if case == "trans":
        b = b.transpose(0, 2, 1)
    if case == "branch":
        b = b * np.where(np.arange(len(b)) % 2, -1, 1)[:, None, None].astype(np.float32)
    return np.einsum("tkij,kjl->til", a, b) + (a.sum((1, 3))[:, :, None] if case == "also" else 0)


@pytest.mark.share(2)
@two_targets
@pytest.mark.parametrize("case", ["nested", "rows", "cast", "also", "branch", "trans", "other"])
def test_variants(rng, target, case):
    """Two tiles, one after the other: the copies of the second go where the first was read."""
    a, b = draw(rng, np.float16, 2, 3, 64, 64), draw(rng, np.float16, 3, 64, 64)
    index, out = aligned(rng.permutation(192).astype(np.int32)), aligned(np.full((2, 64, 64), np.nan, np.float32))
    kernel = emulate(variants, a, b, out, index, 2, 3, BLOCK=64, CASE=case, target=target, num_stages=3)
    np.testing.assert_array_equal(out, expected(case, a, b, index))
    assert instructions_with(kernel, "cp.async")


@deuteron.jit
def attention(q, k, v, out, n, D: tl.constexpr, BLOCK: tl.constexpr):
    rows, dims = tl.arange(0, BLOCK), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total, acc = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, n, BLOCK):
        keys = start + rows
        here = keys[:, None] < n
        y = tl.load(k + keys[:, None] * D + dims[None, :], mask=here, other=0.0)
        scores = tl.where(keys[None, :] < n, tl.dot(x, tl.trans(y)), float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
        z = tl.load(v + keys[:, None] * D + dims[None, :], mask=here, other=0.0)
        acc = tl.dot(p.to(tl.float16), z, acc * alpha[:, None])
        total, top = total * alpha + tl.sum(p, 1), new_top
    tl.store(out + rows[:, None] * D + dims[None, :], acc / total[:, None])


@pytest.mark.share(3)
@two_targets
@pytest.mark.parametrize(("stages", "n"), [(2, 64), (3, 200), (4, 130)])
def test_attention(rng, target, stages, n):
    q, k, v = (aligned(rng.standard_normal((rows, 64)).astype(np.float16)) for rows in (64, n, n))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    kernel = emulate(attention, q, k, v, out, n, D=64, BLOCK=64, target=target, num_stages=stages)
    assert instructions_with(kernel, "cp.async")
    p = np.exp(q.astype(np.float64) @ k.astype(np.float64).T)
    reference = p @ v.astype(np.float64) / p.sum(1, keepdims=True)
    assert np.abs(out - reference).max() / np.abs(reference).max() < 1e-3


# -- what is left out is caught ---


def without(text, name, number):
    """The text of ttgir without the op of that name and number; nobody may use its result."""
    lines = text.splitlines()
    places = [index for index, line in enumerate(lines) if f'"{name}"(' in line]
    return "\n".join(line for index, line in enumerate(lines) if index != places[number])


def runs_right(kernel, a, b, asynchronous):
    out = aligned(np.full((64, 64), np.nan, np.float32))
    metadata = kernel.metadata
    launch(
        *(kernel.asm["ptx"], metadata.symbol, (1,), metadata.num_threads, metadata.shared),
        (a, b, out, 64, a.shape[1]),
        options=EmulatorOptions(asynchronous=asynchronous),
    )
    return np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("target", [TARGETS[0], TARGETS[2]], indirect=True)
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_no_wait_and_no_barrier_can_be_left_out(rng, target, stages, monkeypatch):
    """Eight warps: within a warpgroup, the emulator lets all know when a dot is done. Barriers are the text's."""
    a, b, out = draw(rng, np.float16, 64, 256), draw(rng, np.float16, 256, 64), np.zeros((64, 64), np.float32)
    given = {"BM": 64, "BN": 64, "BK": 32, "TRANSPOSED": False, "num_stages": stages, "num_warps": 8}
    text = generic_asm(compile_for(target, matmul, a, b, out, 64, 256, **given), "ttgir")
    body = text[: text.index('"scf.yield"')]
    monkeypatch.setattr("deuteron.passes.gpu.memory_passes", lambda: [AllocateShared()])
    assert runs_right(compile_text(text, target, "ttgir", num_warps=8), a, b, "late")
    assert runs_right(compile_text(text, target, "ttgir", num_warps=8), a, b, "early")
    with pytest.raises(IRError, match="what a copy in flight writes"):
        compile_text(without(text, "ttg.async_wait", 0), target, "ttgir", num_warps=8)
    monkeypatch.setattr("deuteron.analysis.shared_memory.copy_waits.check_copies", lambda module: None)
    for name in ("ttg.async_wait", "ttg.barrier"):
        for number in range(len(re.findall(f'"{name}"', body))):
            broken = compile_text(without(text, name, number), target, "ttgir", num_warps=8)
            with pytest.raises(EmulatorError):
                runs_right(broken, a, b, "late")
                pytest.fail(f"{name} {number} was not missed")


@deuteron.jit
def uneven_matmul(a, b, out, M, N, K, EVEN_M, EVEN_K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        ks = k + i
        if EVEN_K:
            if EVEN_M:
                x = tl.load(a + i[:, None] * K + ks[None, :])
            else:
                x = tl.load(a + i[:, None] * K + ks[None, :], mask=i[:, None] < M, other=0.0)
            y = tl.load(b + ks[:, None] * N + i[None, :], mask=i[None, :] < N, other=0.0)
        else:
            if EVEN_M:
                x = tl.load(a + i[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
            else:
                x = tl.load(a + i[:, None] * K + ks[None, :], mask=(i[:, None] < M) & (ks[None, :] < K), other=0.0)
            y = tl.load(b + ks[:, None] * N + i[None, :], mask=(i[None, :] < N) & (ks[:, None] < K), other=0.0)
        acc = tl.dot(x, y, acc)
    if EVEN_M:
        tl.store(out + i[:, None] * N + i[None, :], acc, mask=i[None, :] < N)
    else:
        tl.store(out + i[:, None] * N + i[None, :], acc, mask=(i[:, None] < M) & (i[None, :] < N))


@pytest.mark.share(3)
@two_targets
@pytest.mark.parametrize(("even_m", "even_k"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("n", [64, 48, 37])
def test_loads_that_ask_at_run_time_whether_lengths_are_even(rng, target, even_m, even_k, n):
    """Where K is not known to be a multiple of 16, the two cases have loops of their own."""
    m, k = 64 if even_m else 51, 192 if even_k else 147
    a, b = draw(rng, np.float16, m, k), draw(rng, np.float16, k, n)
    out = aligned(np.full((m, n), np.nan, np.float32))
    kernel = emulate(uneven_matmul, a, b, out, m, n, k, even_m, even_k, BLOCK=64, target=target)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert bool(instructions_with(kernel, "cp.async")) == (k % 16 == 0 or n % 16 == 0)


@deuteron.jit
def unrolled_matmul(a, b, out, K, BLOCK: tl.constexpr, FACTOR: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK, loop_unroll_factor=FACTOR):
        ks = k + i
        x = tl.load(a + i[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
        y = tl.load(b + ks[:, None] * BLOCK + i[None, :], mask=ks[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * BLOCK + i[None, :], acc)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("k", [0, 64, 96, 256, 400])
def test_unrolled_loops(rng, target, k):
    a, b = draw(rng, np.float16, 64, k), draw(rng, np.float16, k, 64)
    out = aligned(np.full((64, 64), np.nan, np.float32))
    kernel = emulate(unrolled_matmul, a, b, out, k, BLOCK=64, FACTOR=2, target=target)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert instructions_with(kernel, "cp.async")


@deuteron.jit
def exchange(a, b, n, HOW: tl.constexpr):
    """Each round reads, a place further, what the one before has stored: the arguments change places."""
    i = tl.arange(0, 1024)
    src, dst = a, b
    for k in tl.range(0, n, num_stages=3):
        tl.store(dst + (i + 4) % 1024, tl.load(src + i) + 1)
        tl.debug_barrier()
        if HOW == "swap":
            src, dst = dst, src
        elif HOW == "select":
            is_odd = k % 2 == 0
            src, dst = tl.where(is_odd, b, a), tl.where(is_odd, a, b)
        else:
            src, dst = (b, a) if k % 2 == 0 else (a, b)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("asynchronous", ["early", "late", "random"])
@pytest.mark.parametrize("how", ["swap", "select", "branch"])
def test_pointers_that_change_places(rng, target, asynchronous, how):
    given = aligned(rng.integers(0, 100, 1024).astype(np.int32)), aligned(np.zeros(1024, np.int32))
    kernel = compile_for(target, exchange, *given, 5, HOW=how)
    expected = np.roll(given[0], 4 * 5) + 5
    emulate_compiled(kernel, *given, 5, asynchronous=asynchronous)
    np.testing.assert_array_equal(given[1], expected)

"""Dots: by mma.sync and by multiply-adds, in every type, size and number of warps."""

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.backend.gpu.rules import dot
from deuteron.emulator import profile

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@deuteron.jit
def matmul(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + j[None, :])
    z = tl.load(c + i[:, None] * N + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(x, y, z, input_precision=PRECISION, out_dtype=z.dtype))


def run(rng, dtype, result, shape, num_warps, target="cuda:90", precision="tf32"):
    """Small whole numbers, so that every sum is exact."""
    m, n, k = shape
    a, b = (rng.integers(-4, 5, size).astype(dtype) for size in ((m, k), (k, n)))
    c = rng.integers(-4, 5, (m, n)).astype(result)
    out = np.zeros((m, n), result)
    constants = {"M": m, "N": n, "K": k, "PRECISION": precision}
    kernel = emulate(matmul, a, b, c, out, num_warps=num_warps, target=target, **constants)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(result).astype(np.float64))
    return kernel


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dtype", "result", "name", "k"),
    [
        (np.float16, np.float32, "m16n8k16.row.col.f32.f16.f16.f32", 16),
        (np.float16, np.float16, "m16n8k16.row.col.f32.f16.f16.f32", 16),
        (BF16, np.float32, "m16n8k16.row.col.f32.bf16.bf16.f32", 16),
        (np.float32, np.float32, "m16n8k8.row.col.f32.tf32.tf32.f32", 8),
        (np.int8, np.int32, "m16n8k32.row.col.s32.s8.s8.s32", 32),
        (E4M3, np.float32, "m16n8k16.row.col.f32.f16.f16.f32", 16),
        (E5M2, np.float32, "m16n8k16.row.col.f32.f16.f16.f32", 16),
    ],
)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_mma(rng, dtype, result, name, k, num_warps):
    kernel = run(rng, dtype, result, (32, 64, 64), num_warps)
    # every warp has its share of the 16 x 8 tiles, or a copy of it where there are more warps than tiles
    tiles = max(2 * 8 // num_warps, 1)
    assert len(instructions_with(kernel, f"mma.sync.aligned.{name}")) == tiles * 64 // k


@pytest.mark.parametrize("target", ["cuda:89", "cuda:120"])
@pytest.mark.parametrize(("dtype", "name"), [(E4M3, "e4m3"), (E5M2, "e5m2")])
@pytest.mark.parametrize("result", [np.float32, np.float16])
def test_fp8(rng, target, dtype, name, result):
    kernel = run(rng, dtype, result, (32, 16, 64), 4, target)
    assert instructions_with(kernel, f"mma.sync.aligned.m16n8k32.row.col.f32.{name}.{name}.f32")
    assert not instructions_with(kernel, "f16.f16.f32")
    shallow = run(rng, dtype, result, (32, 16, 16), 4, target)
    assert instructions_with(shallow, "m16n8k16.row.col.f32.f16.f16.f32")


@pytest.mark.parametrize("shape", [(16, 8, 16), (16, 16, 32), (128, 32, 16), (16, 128, 64), (64, 64, 64)])
@pytest.mark.parametrize("num_warps", [2, 4])
def test_shapes(rng, shape, num_warps):
    assert instructions_with(run(rng, np.float16, np.float32, shape, num_warps, "cuda:80"), "mma.sync")


@pytest.mark.parametrize(
    ("target", "depth", "maxnreg", "name", "count"),
    [
        ("cuda:80", 16, None, "m8n8k4", 4 * 4 * 2),
        ("cuda:90", 16, None, "m16n8k4", 4 * 4),
        ("cuda:90", 4, 64, "m16n8k4", 4),
        ("cuda:90", 16, 63, "m8n8k4", 4 * 4 * 2),
        ("cuda:100", 64, None, "m16n8k4", 4 * 16),
        ("cuda:100", 4, 32, "m8n8k4", 4 * 2),
    ],
)
def test_f64(rng, target, depth, maxnreg, name, count):
    """Sums that f32 does not hold."""
    (a, b), c = (rng.integers(-(2**23), 2**23, (2, 32, depth)).astype(np.float64), np.zeros((32, 32)))
    kernel = emulate(
        matmul, a, b, c, c, M=32, N=32, K=depth, PRECISION="ieee", num_warps=2, maxnreg=maxnreg, target=target
    )
    np.testing.assert_array_equal(c, a @ b.reshape(depth, 32))
    found = instructions_with(kernel, "mma.sync")
    assert len(found) == count and all(f"{name}.row.col.f64.f64.f64.f64" in line for line in found)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_f64_is_read_without_bank_conflicts(rng, transposed, target):
    """Half a warp reads 32 bytes of four rows at once, of a and of b."""
    a, b = (aligned(rng.standard_normal((32, 32))) for _ in range(2))
    out = aligned(np.full((32, 32), np.nan))
    kernel = transposed_dot if transposed else matmul
    arrays = (a, b, out) if transposed else (a, b, aligned(np.zeros((32, 32))), out)
    precision = {} if transposed else {"PRECISION": "ieee"}
    compiled = compile_for(target, kernel, *arrays, M=32, N=32, K=32, num_warps=2, **precision)
    counts = profile(compiled.asm["ptx"], None, 1, 64, compiled.metadata.shared, arrays)
    np.testing.assert_allclose(out, a.T @ b.T if transposed else a @ b, rtol=0, atol=1e-13)
    assert instructions_with(compiled, "mma.sync") and not instructions_with(compiled, "fma.rn")
    loads = [n for step, n in zip(counts.program.steps, counts.by_step, strict=True) if "ld.shared" in str(step)]
    assert loads and not any(counts.bank_conflicts for counts in loads)


@deuteron.jit
def gram(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    values = tl.load(x + square).to(tl.float64)
    p = tl.dot(values, values)
    tl.store(out + square, tl.dot(tl.trans(p), p))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
@pytest.mark.parametrize(("target", "num_warps"), [("cuda:80", 4), ("cuda:90", 1)])
def test_f64_of_converted_elements_and_of_another_dot(rng, dtype, target, num_warps):
    x, out = aligned(rng.integers(-128, 128, (32, 32)).astype(dtype)), aligned(np.full((32, 32), np.nan))
    kernel = emulate(gram, x, out, N=32, num_warps=num_warps, target=target)
    p = x.astype(np.float64) @ x.astype(np.float64)
    np.testing.assert_array_equal(out, p.T @ p)
    assert not instructions_with(kernel, "fma.rn.f64")


@pytest.mark.parametrize(
    ("dtype", "result", "precision", "target"),
    [
        (np.float32, np.float32, "ieee", "cuda:90"),
        (np.float64, np.float64, "tf32", "cuda:86"),
    ],
)
def test_multiply_adds(rng, dtype, result, precision, target):
    kernel = run(rng, dtype, result, (16, 32, 16), 4, precision=precision, target=target)
    assert not instructions_with(kernel, "mma.sync") and instructions_with(kernel, "fma.rn")


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.int8, E5M2])
def test_tiles_too_small_for_mma(rng, dtype):
    kernel = run(rng, dtype, np.int32 if dtype == np.int8 else np.float32, (4, 8, 16), 2)
    assert not instructions_with(kernel, "mma.sync")


@deuteron.jit
def batched(a, b, out, B: tl.constexpr, N: tl.constexpr):
    g, i, j = tl.arange(0, B), tl.arange(0, N), tl.arange(0, N)
    offsets = g[:, None, None] * N * N + i[None, :, None] * N + j[None, None, :]
    tl.store(out + offsets, tl.dot(tl.load(a + offsets), tl.load(b + offsets)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_batches(rng, dtype, num_warps):
    a, b = rng.integers(-4, 5, (2, 4, 16, 16)).astype(dtype)
    out = np.zeros((4, 16, 16), np.float32)
    emulate(batched, a, b, out, B=4, N=16, num_warps=num_warps)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


def test_tf32_rounds_to_nearest(rng):
    a = np.full((16, 16), 1 + 2.0**-11, np.float32)
    b, out = np.eye(16, dtype=np.float32), np.zeros((16, 16), np.float32)
    emulate(matmul, a, b, out.copy(), out, M=16, N=16, K=16, PRECISION="tf32", num_warps=1)
    np.testing.assert_array_equal(out, np.float32(1 + 2.0**-10))


@deuteron.jit
def two_dots(q, k, v, out, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    p = tl.dot(tl.load(q + square), tl.load(k + square))
    tl.store(out + square, tl.dot(p.to(tl.float16), tl.load(v + square)))


def test_a_dot_becomes_an_operand_without_leaving_its_registers():
    x, out = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32)
    kernel = compile_for("cuda:80", two_dots, x, x, x, out, N=64, num_warps=4)
    assert generic_asm(kernel, "ttgir").count('"ttg.local_alloc"') == 3
    assert generic_asm(kernel, "ttgir").count("ttg.convert_layout") == 1  # what is stored
    assert not instructions_with(kernel, "shfl")


@deuteron.jit
def transposed_dot(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + k[:, None] * M + i[None, :]), tl.load(b + j[:, None] * K + k[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(tl.trans(x), tl.trans(y)))


@pytest.mark.parametrize(
    ("dtype", "plain", "transposed", "loads"),
    [(np.float16, 4, 8, 0), (np.int8, 2, 0, 64), (np.float32, 8, 0, 64)],
)
def test_operands_are_loaded_by_ldmatrix(rng, dtype, plain, transposed, loads):
    """One warp: a is [32, 64], of which 16-bit elements are transposed on their way, b [64, 16] along K."""
    a, b = (aligned(rng.integers(-4, 5, shape).astype(dtype)) for shape in ((64, 32), (16, 64)))
    out = np.zeros((32, 16), np.int32 if dtype == np.int8 else np.float32)
    kernel = emulate(transposed_dot, a, b, out, target="cuda:80", M=32, N=16, K=64, num_warps=1)
    np.testing.assert_array_equal(out, a.T.astype(np.float32) @ b.T.astype(np.float32))
    matrices = instructions_with(kernel, "ldmatrix")
    assert sum(".trans" not in line for line in matrices) == plain
    assert sum(".trans" in line for line in matrices) == transposed
    assert len(instructions_with(kernel, "ld.shared")) == loads


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize(("dtype", "depth"), [(np.float32, 32), (np.float64, 32), (np.float32, 128)])
def test_multiply_adds_of_slices(rng, dtype, depth, target):
    """Slices of K come from shared memory: nothing spills, and sums are those of the whole dot, in its order."""
    a, b, c = (aligned(rng.standard_normal(shape).astype(dtype)) for shape in ((64, depth), (depth, 32), (64, 32)))
    out = aligned(np.full((64, 32), np.nan, dtype))
    kernel = emulate(matmul, a, b, c, out, M=64, N=32, K=depth, PRECISION="ieee", num_warps=2, target=target)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    bound = depth * np.finfo(dtype).eps * (np.abs(a).astype(np.float64) @ np.abs(b) + np.abs(c))
    assert np.all(np.abs(out - expected) <= bound)
    assert kernel.metadata.resources["spill_bytes"] == 0


@deuteron.jit
def transposed_int8_dot(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + k[:, None] * M + i[None, :]), tl.load(b + j[:, None] * K + k[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(tl.trans(x), tl.trans(y)))


def test_a_loop_over_slices_of_transposed_operands(rng):
    """Eight rows are too few for mma: 4,096 multiply-adds in each thread, exact, in a loop."""
    a, b = (aligned(rng.integers(-128, 128, shape).astype(np.int8)) for shape in ((1024, 8), (16, 1024)))
    out = np.zeros((8, 16), np.int32)
    kernel = emulate(transposed_int8_dot, a, b, out, M=8, N=16, K=1024, num_warps=1)
    np.testing.assert_array_equal(out, a.T.astype(np.int32) @ b.T.astype(np.int32))
    assert len(instructions_with(kernel, "mad.lo.s32")) < 4096 // 2 + 64


@pytest.mark.parametrize(("depth", "in_a_row"), [(64, 2048), (128, 512)])
def test_many_multiply_adds_are_a_loop(depth, in_a_row):
    """8,192 in each thread, or 16,384, of operands that have no room in shared memory: ptxas takes long for them in a
    row. The slices of those of which threads have no registers for one row are narrower.
    """
    array = np.empty(0, np.float32)
    kernel = compile_for("cuda:80", matmul, *[array] * 4, M=128, N=128, K=depth, PRECISION="ieee", num_stages=1)
    assert len(instructions_with(kernel, "fma.rn")) == in_a_row


@deuteron.jit
def powers(a, out, SIZE: tl.constexpr, COUNT: tl.constexpr):
    i = tl.arange(0, SIZE)
    places = i[:, None] * SIZE + i[None, :]
    x = power = tl.load(a + places)
    for _ in tl.static_range(COUNT - 1):
        power = tl.dot(power, x, input_precision="ieee")
    tl.store(out + places, power)


def test_many_dots_share_out_how_many_multiply_adds_are_in_a_row(rng, monkeypatch):
    """32x32x32 are 1,024 in each thread of a warp; four of them have loops of 256."""
    monkeypatch.setattr(dot, "OF_ALL_DOTS", 1024)
    monkeypatch.setattr(dot, "LEAST", 128)
    a, out = aligned(rng.integers(-1, 2, (32, 32)).astype(np.float32)), aligned(np.zeros((32, 32), np.float32))
    kernel = emulate(powers, a, out, SIZE=32, COUNT=5, num_warps=1, target="cuda:80")
    np.testing.assert_array_equal(out, np.linalg.matrix_power(a.astype(np.float64), 5))
    assert len(instructions_with(kernel, "fma.rn")) == 1024


@pytest.mark.parametrize(("shape", "num_warps"), [((128, 128, 32), 4), ((128, 128, 32), 8), ((64, 64, 64), 4)])
@pytest.mark.parametrize("num_stages", [1, 3])
def test_multiply_adds_of_large_tiles_do_not_spill(shape, num_warps, num_stages):
    array, sizes = np.empty(0, np.float32), dict(zip("MNK", shape, strict=True))
    options = {"num_warps": num_warps, "num_stages": num_stages}
    for target in ("cuda:80", "cuda:90"):
        kernel = compile_for(target, matmul, *[array] * 4, **sizes, PRECISION="ieee", **options)
        assert kernel.metadata.resources["spill_bytes"] == 0

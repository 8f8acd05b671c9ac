"""Programs shared out over the CTAs of their clusters: what each has, and that all of them together give the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, compile_text, emulate, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.errors import UsageError
from deuteron.tools.tensor_descriptor import TensorDescriptor


@deuteron.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0) * 2, mask=i < n)


def test_each_block_has_its_part():
    text = compile_for("cuda:90", scale, np.zeros(1, np.float32), np.zeros(1, np.float32), 7, BLOCK=256, num_ctas=4).asm
    assert "tensor<64xf32" in text["ttgir"] and "tensor<256x" not in text["ttgir"]
    assert text["ttgir"].count('"ttng.cluster_cta_rank"') == 1
    assert "tensor<256xf32" in text["ttir"] and "cluster_cta" not in text["ttir"]


@pytest.mark.parametrize("target", ["cuda:90", "cuda:120"])
@pytest.mark.parametrize("num_ctas", [2, 4, 8])
def test_elements(num_ctas, target, rng):
    x, out = rng.standard_normal(1000).astype(np.float32), np.full(1000, np.nan, np.float32)
    emulate(scale, x, out, 1000, grid=(4,), target=target, BLOCK=256, num_ctas=num_ctas)
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("num_ctas", [2, 8])
def test_in_place(num_ctas, rng):
    x = rng.standard_normal(1000).astype(np.float32)
    expected = 2 * x
    emulate(scale, x, x, 1000, grid=(4,), BLOCK=256, num_ctas=num_ctas)
    np.testing.assert_array_equal(x, expected)


@deuteron.jit
def matmul(a, b, c, M, N, K, B_FIRST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    b_tile = columns[:, None] * K + ks[None, :] if B_FIRST else ks[:, None] * N + columns[None, :]
    b_mask = (columns < N)[:, None] if B_FIRST else (columns < N)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=rows[:, None] < M, other=0.0)
        y = tl.load(b + b_tile + (k if B_FIRST else k * N), mask=b_mask, other=0.0)
        acc = tl.dot(x, y.T if B_FIRST else y, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def multiply(rng, shape, tile, asynchronous="random", b_first=False, **options):
    (m, n, k), (block_m, block_n, block_k) = shape, tile
    a, b = (aligned(rng.standard_normal(s).astype(np.float16)) for s in ((m, k), (n, k) if b_first else (k, n)))
    c = aligned(np.full((m, n), np.nan, np.float32))
    sizes = {"BM": block_m, "BN": block_n, "BK": block_k}
    kernel = compile_for("cuda:90", matmul, a, b, c, m, n, k, B_FIRST=b_first, **sizes, **options)
    grid = (-(-m // block_m), -(-n // block_n))
    emulate_compiled(kernel, a, b, c, m, n, k, grid=grid, asynchronous=asynchronous)
    expected = a.astype(np.float64) @ (b.T if b_first else b).astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    return kernel


@pytest.mark.share(3)
@pytest.mark.parametrize("b_first", [False, True])
@pytest.mark.parametrize(
    ("tile", "num_ctas", "num_warps"),
    [
        ((256, 128, 64), 2, 8),
        ((128, 256, 64), 2, 8),
        ((256, 256, 32), 4, 8),
        ((128, 128, 64), 2, 4),
        ((128, 64, 32), 8, 4),
        ((32, 64, 32), 2, 2),
    ],
)
def test_dots(tile, num_ctas, num_warps, b_first, rng):
    multiply(rng, (300, 272, 128), tile, b_first=b_first, num_ctas=num_ctas, num_warps=num_warps)


@deuteron.jit
def advance(a, b, c, K, UNROLL: tl.constexpr):
    """Pointers that loops carry: unrolled, the loop for what is left begins where the other one ends."""
    i, ks = tl.arange(0, 64), tl.arange(0, 32)
    a_ptrs, b_ptrs = a + i[:, None] * K + ks[None, :], b + ks[:, None] * 64 + i[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for _ in tl.range(0, K, 32, loop_unroll_factor=UNROLL):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += 32
        b_ptrs += 32 * 64
    tl.store(c + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("num_ctas", [2, 4])
@pytest.mark.parametrize("unroll", [1, 2])
def test_advanced_pointers(num_ctas, unroll, rng):
    a, b = (aligned(rng.integers(-3, 4, shape).astype(np.float16)) for shape in ((64, 96), (96, 64)))
    c = aligned(np.full((64, 64), np.nan, np.float32))
    emulate(advance, a, b, c, 96, UNROLL=unroll, num_ctas=num_ctas)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@deuteron.jit
def attend(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """An online softmax: tiles of one and of two dimensions that the loop carries."""
    rows, columns, dims = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    acc, total, most = tl.zeros((BM, D), tl.float32), tl.zeros((BM,), tl.float32), tl.full((BM,), -1e30, tl.float32)
    for start in range(0, n, BN):
        scores = tl.dot(x, tl.load(k + (start + columns)[None, :] * D + dims[:, None]))
        scores = tl.where(rows[:, None] >= start + columns[None, :], scores, -1e30)
        new = tl.maximum(most, tl.max(scores, 1))
        p, alpha = tl.exp(scores - new[:, None]), tl.exp(most - new)
        total = total * alpha + tl.sum(p, 1)
        y = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        acc = tl.dot(p.to(tl.float16), y, acc * alpha[:, None])
        most = new
    tl.store(out + rows[:, None] * D + dims[None, :], acc / total[:, None])


@pytest.mark.parametrize(("num_ctas", "num_warps", "block"), [(2, 4, 128), (2, 8, 256), (4, 4, 256)])
def test_attention(num_ctas, num_warps, block, rng):
    n, d = 256, 64
    q, k, v = (aligned(rng.standard_normal((n, d)).astype(np.float16) / 4) for _ in range(3))
    out = aligned(np.full((n, d), np.nan, np.float32))
    options = {"num_ctas": num_ctas, "num_warps": num_warps, "num_stages": 2}
    kernel = emulate(attend, q, k, v, out, n, grid=(n // block,), BM=block, BN=64, D=d, **options)
    scores = np.where(np.tri(n, dtype=bool), q.astype(np.float64) @ k.T.astype(np.float64), -np.inf)
    p = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(1, keepdims=True) @ v.astype(np.float64), atol=2e-3)
    assert '"ttng.cluster_barrier"' in generic_asm(kernel, "ttgir")


@deuteron.jit
def shapes(x, out, flag, n, CASE: tl.constexpr):
    rows, columns = tl.arange(0, 16), tl.arange(0, 8)
    tile = tl.load(x + rows[:, None] * 8 + columns[None, :])
    if CASE == "transposed":
        tl.store(out + columns[:, None] * 16 + rows[None, :], tile.T)
    if CASE == "reshaped":
        tl.store(out + tl.arange(0, 128), tl.reshape(tile, (128,)))
    if CASE == "joined":
        both = tl.join(tile, tile + 1)
        first, second = tl.split(both)
        tl.store(out + rows[:, None] * 8 + columns[None, :], first + second)
    if CASE == "summed":
        tl.store(out + rows, tl.sum(tile, 1))
        tl.store(out + 16 + tl.arange(0, 8), tl.sum(tile, 0))
    if CASE == "scanned":
        tl.store(out + rows[:, None] * 8 + columns[None, :], tl.cumsum(tile, 1))
    if CASE == "scalar":
        tl.store(out, tl.sum(tile))
    if CASE == "branches":
        y = tile * 2 if n > 0 else tile - 1
        tl.store(out + rows[:, None] * 8 + columns[None, :], y)
    if CASE == "decided" and tl.sum(tile) > 0:
        tl.store(out + rows, tl.max(tile, 1))
    if CASE == "constant":
        tl.store(out + rows, rows + tl.full((16,), 3, tl.int32))


CASES = {
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x,
    "joined": lambda x: 2 * x + 1,
    "summed": lambda x: np.concatenate([x.sum(1), x.sum(0)]),
    "scanned": lambda x: np.cumsum(x, 1),
    "scalar": lambda x: x.sum(),
    "branches": lambda x: 2 * x,
    "decided": lambda x: x.max(1),
    "constant": lambda x: np.arange(16) + 3,
}


@pytest.mark.parametrize("num_ctas", [2, 8])
@pytest.mark.parametrize("case", CASES)
def test_shapes(case, num_ctas, rng):
    x, out = rng.integers(0, 9, (16, 8)).astype(np.float32), np.full(128, np.nan, np.float32)
    emulate(shapes, x, out, np.zeros(1, np.int32), 3, CASE=case, num_ctas=num_ctas)
    expected = np.ravel(CASES[case](x))
    np.testing.assert_array_equal(out[: expected.size], expected)
    assert np.isnan(out[expected.size :]).all()


@deuteron.jit
def blocks(x, y, out, ADDS: tl.constexpr):
    tile = x.load([0, 0]) + y.load([0, 0])
    if ADDS:
        out.atomic_add([0, 0], tile)
    else:
        out.store([0, 0], tile)


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("num_ctas", [2, 4])
def test_blocks_of_tensors(num_ctas, adds, rng):
    x, y, out = (aligned(rng.integers(0, 9, (40, 24)).astype(np.float32)) for _ in range(3))
    before = out.copy()
    made = [TensorDescriptor(array, [40, 24], [24, 1], [32, 16]) for array in (x, y, out)]
    kernel = launch_emulated(blocks, *made, ADDS=adds, num_ctas=num_ctas)
    assert kernel.asm["ptx"].count("cp.async.bulk.tensor") == (2 if adds else 3)
    assert ("cp.reduce.async.bulk.tensor" in kernel.asm["ptx"]) == adds
    expected = before.copy()
    expected[:32, :16] = (x + y + (before if adds else 0))[:32, :16]
    np.testing.assert_array_equal(out, expected)


@deuteron.jit
def narrow(x, out):
    out.store([0, 0], x.load([0, 0]) * 2)


def test_a_block_of_few_bytes_is_not_split(rng):
    """TMA copies 16 bytes at least: the first block does it all."""
    x, out = (aligned(rng.integers(0, 9, (6, 8)).astype(np.float16)) for _ in range(2))
    before = out.copy()
    made = [TensorDescriptor(array, [6, 8], [8, 1], [2, 8]) for array in (x, out)]
    assert launch_emulated(narrow, *made, num_ctas=4).asm["ptx"].count("cp.async.bulk.tensor") == 2
    np.testing.assert_array_equal(out, np.concatenate([2 * x[:2], before[2:]]))


def launch_emulated(kernel, *args, **given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEUTERON_EMULATE", "1")
        patch.setenv("DEUTERON_TARGET", "cuda:90")
        return kernel[(1,)](*args, **given)


@deuteron.jit
def say(x, n):
    tl.device_print("sum", tl.sum(tl.load(x + tl.arange(0, 16))))
    tl.device_assert(tl.arange(0, 16) < n, "few")


def test_what_is_printed_is_printed_once():
    printed = []
    x = np.arange(16, dtype=np.int32)
    emulate_compiled(compile_for("cuda:90", say, x, 16, num_ctas=4), x, 16, grid=(2,), printed=printed)
    assert sorted(printed) == [f"pid ({program}, 0, 0) idx () sum: 120\n" for program in range(2)]


@deuteron.jit
def refused(x, out, n, CASE: tl.constexpr):
    i = tl.arange(0, 16)
    if CASE == "counter":
        tl.atomic_add(out, 1.0)
    if CASE == "barrier":
        tl.store(out + i, tl.load(x + i))
        tl.debug_barrier()
    if CASE == "reversed":
        tl.store(x + i, tl.sum(tl.load(x + 15 - i)) + tl.load(x + i))
    if CASE == "both axes":
        square = i[:, None] * 16 + i[None, :]
        tile = tl.load(x + square)
        tl.store(out + square, tl.dot(tile, tl.sum(tile, 1)[:, None] * tile))
        tl.store(out + square, tl.cumsum(tile, 0))
    if CASE == "volatile":
        tl.store(out + i, tl.load(x + i, volatile=True))
    if CASE == "flags":
        tl.atomic_store(out + i, tl.load(x + i))
    if CASE == "shifted":
        tl.store(x + i, tl.max(tl.load(x + i[:, None] * 16 + i[None, :]), 1))
    if CASE == "while":
        while n > 0:
            n -= tl.load(x + n).to(tl.int32)
        tl.store(out, n)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("counter", "num_ctas = 2: an atomic of the whole program would be done by each CTA of its cluster"),
        ("flags", "num_ctas = 2: the CTAs of a cluster cannot acquire or release together"),
        ("barrier", "num_ctas = 2: the CTAs of a cluster cannot do 'ttg.barrier' together"),
        ("reversed", "num_ctas = 2: the program stores to what is loaded here, and its CTAs do not wait for it"),
        ("both axes", "num_ctas = 2: the program stores to this elsewhere, and its CTAs do not wait for it"),
        ("shifted", "num_ctas = 2: the program stores to what is loaded here, and its CTAs do not wait for it"),
        ("volatile", "num_ctas = 2: the CTAs of a cluster may see different values in a volatile load"),
        ("while", "num_ctas = 2: the CTAs of a cluster cannot do 'scf.while' together"),
    ],
)
def test_what_blocks_cannot_share_is_refused(case, message):
    x = np.zeros(256, np.float32)
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        compile_for("cuda:90", refused, x, x, 3, CASE=case, num_ctas=2)
    assert caught.value.location.file == __file__
    assert caught.value.message.endswith("Compile the kernel with num_ctas = 1.")


def test_a_text_for_another_number_of_blocks_is_refused():
    text = compile_for("cuda:90", scale, np.zeros(1, np.float32), np.zeros(1, np.float32), 7, BLOCK=256, num_ctas=2).asm
    assert compile_text(text["ttgir"], stage="ttgir", num_ctas=2).metadata.num_ctas == 2
    with pytest.raises(UsageError, match="the ttgir is for num_ctas=2, and num_ctas=1 was asked for"):
        compile_text(text["ttgir"], stage="ttgir")

"""Products of which only some rows and columns are stored, or whose operands end in zeros: which are found, and that
what is stored is what it was.
"""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.needed_depth import find_needed_depth
from deuteron.backend.cpu.plan.products.needed_sums import find_needed_sums
from deuteron.backend.cpu.target import cpu_target

CPUS = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2")


def few_rows(a, b, bias, c, d, M, N, K, MODE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = act(a @ b + bias) of M rows; MODE: what else is made of the sums."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ks, acc_type = tl.arange(0, BK), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    acc = tl.zeros((BM, BN), acc_type)
    for k in range(0, K, BK):
        left = tl.load(a + (rows % M)[:, None] * K + (k + ks)[None, :], mask=(k + ks)[None, :] < K, other=0)
        right = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=(k + ks)[:, None] < K, other=0)
        acc = tl.dot(left, right, acc, out_dtype=acc_type)
    places, is_stored = rows[:, None] * N + columns[None, :], (rows[:, None] < M) & (columns[None, :] < N)
    if MODE == "scaled":
        acc = acc * 2 + tl.load(bias + columns)[None, :].to(acc_type)
    if MODE == "two limits":
        tl.store(d + places, acc.to(tl.float32), mask=is_stored & (rows[:, None] <= 2))
    if MODE == "triangle":
        is_stored = is_stored & (rows[:, None] < columns[None, :])
    if MODE == "summed":
        tl.store(d + tl.program_id(0) * N + columns, tl.sum(acc, 0).to(tl.float32))
    if MODE == "loaded limit":
        is_stored = is_stored & (rows[:, None] < tl.load(d).to(tl.int32))
    if MODE == "from below":
        is_stored = is_stored & (rows[:, None] >= 3)
    if MODE == "added":
        tl.atomic_add(c + places, acc.to(c.dtype.element_ty), mask=is_stored)
    elif MODE == "exchanged":
        before = tl.atomic_xchg(c + places, acc.to(c.dtype.element_ty), mask=is_stored)
        tl.store(d + places, before.to(tl.float32), mask=(rows[:, None] < M) & (columns[None, :] < N - 3))
    else:
        tl.store(c + places, acc.to(c.dtype.element_ty), mask=is_stored)


MODES = ("plain", "scaled", "two limits", "triangle", "summed", "loaded limit", "from below", "added", "exchanged")


@pytest.mark.share(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("m", [1, 5, 13, 21])
def test_stored_rows(compare, rng, mode, m):
    n, k, blocks = 48, 72, {"BM": 16, "BN": 16, "BK": 32}
    a, b = rng.integers(-4, 5, (m, k)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)
    bias, d = rng.integers(-4, 5, n).astype(np.float32), np.full(m * n, 5, np.float32)
    args = [a, b, bias, np.full((m, n), 77, np.float32), d, m, n, k]
    compare(few_rows, args, {"MODE": mode, **blocks}, grid=(-(-m // 16), 3), tolerance=0)


@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize(("m", "blocks"), [(7, (32, 32, 64)), (17, (64, 64, 64)), (70, (64, 16, 16))])
def test_types_and_tiles(compare, rng, bfloat16, type, m, blocks):
    bm, bn, bk = blocks
    n, k, dtype = 2 * bn, 200, bfloat16 if type == "bfloat16" else type
    a, b = rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (k, n)).astype(dtype)
    out = np.full((m, n), 77, "int32" if type == "int8" else "float32")
    args = [a, b, np.zeros(n, "float32"), out, np.zeros(1, "float32"), m, n, k]
    sizes = {"MODE": "plain", "BM": bm, "BN": bn, "BK": bk}
    compare(few_rows, args, sizes, grid=(-(-m // bm), 2), cpus=CPUS, tolerance=0)


def test_not_a_number_stays_in_its_rows_and_columns(compare, rng):
    """Also of what rows beyond the last are loaded from, which are those of the first again."""
    a, b = rng.integers(-4, 5, (3, 64)).astype(np.float32), rng.integers(-4, 5, (64, 16)).astype(np.float32)
    a[1, 5], b[7, 3], b[8, 4] = np.nan, np.inf, -np.inf
    args = [a, b, np.zeros(16, np.float32), np.full((3, 16), 77, np.float32), np.zeros(1, np.float32), 3, 16, 64]
    compare(few_rows, args, {"MODE": "plain", "BM": 16, "BN": 16, "BK": 32}, cpus=CPUS)


def running_sums(a, b, c, T, MODE: tl.constexpr, BK: tl.constexpr):
    """The sums so far are stored in each iteration, in each as far as another limit."""
    rows, columns, ks = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, BK)
    acc = tl.zeros((16, 32), tl.float32)
    carried = 1
    for t in range(T):
        for _ in range(2 if MODE == "two products" else 1):
            left = tl.load(a + t * 16 * BK + rows[:, None] * BK + ks[None, :])
            right = tl.load(b + t * BK * 32 + ks[:, None] * 32 + columns[None, :])
            acc = tl.dot(left, right, acc)
        is_stored = (rows < (carried if MODE == "carried" else t))[:, None]
        if MODE == "columns":
            is_stored = (columns < t * 5)[None, :]
        tl.store(c + t * 512 + rows[:, None] * 32 + columns[None, :], acc, mask=is_stored)
        carried = carried * 3


@pytest.mark.parametrize("mode", ["rows", "columns", "carried", "two products"])
@pytest.mark.parametrize("depth", [16, 128])
def test_limits_that_grow_while_sums_are_carried(compare, rng, mode, depth):
    a, b = (rng.integers(-4, 5, size).astype(np.float32) for size in ((5, 16, depth), (5, depth, 32)))
    args = [a, b, np.full((5, 16, 32), 77, np.float32), 5]
    compare(running_sums, args, {"MODE": mode, "BK": depth}, cpus=CPUS, tolerance=0)


def persistent(a, b, c, M, num_tiles, BM: tl.constexpr):
    """A limit that is another one in each iteration of the loop around the product's."""
    i, ks = tl.arange(0, BM), tl.arange(0, 32)
    for tile in range(num_tiles):
        rows = tile * BM + i
        acc = tl.zeros((BM, 16), tl.float32)
        for k in range(0, 64, 32):
            left = tl.load(a + rows[:, None] * 64 + (k + ks)[None, :], mask=rows[:, None] < M - tile, other=1.0)
            acc = tl.dot(left, tl.load(b + (k + ks)[:, None] * 16 + tl.arange(0, 16)[None, :]), acc)
        tl.store(c + rows[:, None] * 16 + tl.arange(0, 16)[None, :], acc, mask=rows[:, None] < M - tile)


@pytest.mark.parametrize("m", [0, 5, 16, 41])
def test_limits_of_a_loop_around(compare, rng, m):
    a, b = rng.integers(-4, 5, (48, 64)).astype(np.float32), rng.integers(-4, 5, (64, 16)).astype(np.float32)
    compare(persistent, [a, b, np.full((48, 16), 77, np.float32), m, 3], {"BM": 16}, cpus=CPUS, tolerance=0)


def without_a_loop(a, b, c, M, BM: tl.constexpr):
    i, j, k = tl.arange(0, BM), tl.arange(0, 16), tl.arange(0, 32)
    acc = tl.dot(tl.load(a + i[:, None] * 32 + k[None, :]), tl.load(b + k[:, None] * 16 + j[None, :]))
    tl.store(c + i[:, None] * 16 + j[None, :], acc, mask=i[:, None] < M)


@pytest.mark.parametrize("m", [-3, 0, 1, 31, 32, 2**31 - 1, -(2**31)])
def test_a_product_without_a_loop(compare, rng, m):
    a, b = rng.integers(-4, 5, (32, 32)).astype(np.float32), rng.integers(-4, 5, (32, 16)).astype(np.float32)
    compare(without_a_loop, [a, b, np.full((32, 16), 77, np.float32), m], {"BM": 32}, cpus=CPUS, tolerance=0)


@pytest.fixture
def limits(lower_python):
    """How many limits each store of a product has, for each product."""

    def find(kernel, args, constexprs) -> list[list[int]]:
        module = lower_python(kernel, args, constexprs)
        plan = plan_function(kernel_of(module, cpu_target("x86-64-v3", "")))
        find_needed_sums(plan)
        return [[len(limits) for limits in item.needed_rows] for item in dots_of(plan.body)]

    return find


@pytest.mark.parametrize("mode", MODES)
def test_what_is_needed(limits, mode):
    x = np.zeros(1, np.float32)
    found = limits(few_rows, [x, x, x, x, x, 1, 16, 64], {"MODE": mode, "BM": 16, "BN": 16, "BK": 32})
    assert found == [{"two limits": [1, 2], "summed": []}.get(mode, [1])]


def two_outputs(a, b, where, c, d, BM: tl.constexpr, BK: tl.constexpr, MODE: tl.constexpr):
    i, j, ks = tl.arange(0, BM), tl.arange(0, 16), tl.arange(0, BK)
    acc = tl.zeros((BM, 16), tl.float32)
    for k in range(0, 128, BK):
        acc = tl.dot(tl.load(a + i[:, None] * 128 + (k + ks)[None, :]), tl.load(b + (k + ks)[:, None] * 16 + j), acc)
    rows = tl.load(where + i) if MODE == "loaded rows" else i
    tl.store(c + rows[:, None] * 16 + j[None, :], acc)
    tl.store(d + (j[None, :] * BM + i[:, None] if MODE == "by columns" else rows[:, None] * 16 + j[None, :]), acc + 1)


AWAITED = {"plain": 2, "loaded rows": 0, "by columns": 1}


@pytest.mark.parametrize("mode", AWAITED)
def test_stores_that_are_awaited(compare, lower_python, rng, mode):
    """Their lines are asked for, and what is stored is the same, whichever rows."""
    a, b = rng.integers(-4, 5, (32, 128)).astype(np.float32), rng.integers(-4, 5, (128, 16)).astype(np.float32)
    args = [a, b, np.arange(32, dtype=np.int32)[::-1].copy(), *(np.full((32, 16), 77, np.float32) for _ in range(2))]
    sizes = {"BM": 32, "BK": 16, "MODE": mode}
    compare(two_outputs, args, sizes, cpus=CPUS, tolerance=0)
    plan = plan_function(kernel_of(lower_python(two_outputs, args, sizes), cpu_target("x86-64-v3", "")))
    find_needed_sums(plan)
    assert [len(item.awaited) for item in dots_of(plan.body)] == [AWAITED[mode]]


@pytest.mark.share(2)
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize(("n", "k"), [(3, 5), (17, 64), (33, 31), (49, 77), (64, 129)])
def test_columns_and_depth(compare, rng, bfloat16, type, n, k):
    dtype = bfloat16 if type == "bfloat16" else type
    a, b = rng.integers(-4, 5, (21, k)).astype(dtype), np.zeros(k * n + 64, dtype)
    b[: k * n] = rng.integers(-4, 5, k * n).astype(dtype)
    out = np.full((21, n), 77, "int32" if type == "int8" else "float32")
    args = [a, b, np.zeros(n, "float32"), out, np.zeros(1, "float32"), 21, n, k]
    sizes = {"MODE": "plain", "BM": 32, "BN": 64, "BK": 64}
    compare(few_rows, args, sizes, grid=(1, 1), cpus=CPUS, tolerance=0)


def by_halves(a, b, c, K, MODE: tl.constexpr, BK: tl.constexpr):
    """Which of the operands is 0 beyond K."""
    i, ks = tl.arange(0, 16), tl.arange(0, BK)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, 64, BK):
        in_k = k + ks < K
        at_a, at_b = a + i[:, None] * 64 + (k + ks)[None, :], b + (k + ks)[:, None] * 16 + i[None, :]
        other = 1.0 if MODE == "ones" else 0.0
        left = tl.load(at_a, mask=in_k[None, :], other=0.0) if MODE != "only b" else tl.load(at_a)
        right = tl.load(at_b, mask=in_k[:, None], other=other) if MODE != "only a" else tl.load(at_b)
        if MODE == "shifted":
            right += 1.0
        acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * 16 + i[None, :], acc)


HALVES = {"both": [1, 1], "only a": [], "only b": [], "ones": [], "shifted": []}


@pytest.mark.parametrize("mode", HALVES)
@pytest.mark.parametrize("depth", [16, 64])
def test_only_products_of_two_zeros_are_left_out(compare, lower_python, rng, mode, depth):
    """Of one zero and an infinity a sum is not a number."""
    a, b = rng.integers(-4, 5, (16, 64)).astype(np.float32), rng.integers(-4, 5, (64, 16)).astype(np.float32)
    a[3, 60], b[61, 5], b[50, 7] = np.inf, np.nan, -np.inf
    args, sizes = [a, b, np.zeros((16, 16), np.float32), 41], {"MODE": mode, "BK": depth}
    compare(by_halves, args, sizes, cpus=CPUS, tolerance=0)
    plan = plan_function(kernel_of(lower_python(by_halves, args, sizes), cpu_target("x86-64-v3", "")))
    find_needed_depth(plan)
    assert [[len(limits) for limits in item.needed_depth] for item in dots_of(plan.body)] == [HALVES[mode]]


def padded_heads(q, k, v, o, T, D, BD: tl.constexpr):
    """Sums that a loop scales before it adds to them, and whose columns beyond D nobody stores."""
    i, d = tl.arange(0, 32), tl.arange(0, BD)
    own = tl.load(q + i[:, None] * D + d[None, :], mask=(i[:, None] < T) & (d[None, :] < D), other=0.0)
    most, total = tl.full((32,), float("-inf"), tl.float32), tl.zeros((32,), tl.float32)
    acc = tl.zeros((32, BD), tl.float32)
    for first in range(0, T, 32):
        at = first + i
        key = tl.load(k + at[None, :] * D + d[:, None], mask=(at[None, :] < T) & (d[:, None] < D), other=0.0)
        scores = tl.where(at[None, :] < T, tl.dot(own, key), float("-inf"))
        higher = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        scale = tl.exp(most - higher)
        total = total * scale + tl.sum(p, 1)
        value = tl.load(v + at[:, None] * D + d[None, :], mask=(at[:, None] < T) & (d[None, :] < D), other=0.0)
        acc = tl.dot(p.to(value.dtype), value, acc * scale[:, None])
        most = higher
    tl.store(o + i[:, None] * D + d[None, :], acc / total[:, None], mask=(i[:, None] < T) & (d[None, :] < D))


@pytest.mark.share(2)
@pytest.mark.parametrize("type", ["float32", "bfloat16"])
@pytest.mark.parametrize(("tokens", "head"), [(32, 40), (50, 33), (7, 48), (64, 64)])
def test_heads_narrower_than_their_tiles(compare, lower_python, rng, bfloat16, type, tokens, head):
    dtype = bfloat16 if type == "bfloat16" else type
    q, k, v = (rng.standard_normal((64, head)).astype(dtype) for _ in range(3))
    args = [q, k, v, np.full((64, head), 77, np.float32), tokens, head]
    compare(padded_heads, args, {"BD": 64}, cpus=CPUS, tolerance=2e-2 if type == "bfloat16" else 1e-5)
    plan = plan_function(kernel_of(lower_python(padded_heads, args, {"BD": 64}), cpu_target("x86-64-v3", "")))
    find_needed_sums(plan)
    find_needed_depth(plan)
    dots = list(dots_of(plan.body))
    assert [bool(item.needed_depth) for item in dots] == [True, False]
    assert [bool(item.needed_columns) for item in dots] == [False, True]
    assert [bool(item.needed_rows) for item in dots] == [False, True]

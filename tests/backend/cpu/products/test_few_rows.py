"""Products of few rows that are computed before their loop: which are, and that what is stored is what it was."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.plan.products.few_rows import most_rows
from deuteron.backend.cpu.products.products import BF16_PAIRS, BF16_TILES
from deuteron.ir.types import bf16, f16, f32

CPUS = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2")


def product(
    a, b, c, M, N, K, T: tl.constexpr, INIT: tl.constexpr, MODE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """c = a @ b + INIT, in programs of which the last rows come first; T: b is there by columns."""
    row_block = tl.num_programs(0) - 1 - tl.program_id(0)
    rows, columns, ks = row_block * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, 32)
    acc = tl.full((BM, BN), INIT, tl.float32)
    a_ptrs = a + (rows % M)[:, None] * K + ks[None, :]
    wrapped = columns % N
    b_ptrs = b + ks[:, None] + wrapped[None, :] * K if T else b + ks[:, None] * N + wrapped[None, :]
    for k in range(0, K, 32):
        on = k + ks < K
        if MODE == "advanced":
            left, right = tl.load(a_ptrs, mask=on[None, :], other=0), tl.load(b_ptrs, mask=on[:, None], other=0)
            a_ptrs, b_ptrs = a_ptrs + 32, b_ptrs + (32 if T else 32 * N)
        else:
            rows_on, columns_on, depth = rows < M, columns < N, k + ks
            if MODE == "narrower":
                rows_on, columns_on = rows < M - 1, columns < N - 5
            if MODE == "from below":
                on = on & (depth >= 3)
            at = depth
            if MODE == "backwards":
                at = K - 32 - k + ks
            if MODE == "the same again":
                at = ks
            left = tl.load(a + rows[:, None] * K + depth[None, :], mask=rows_on[:, None] & on[None, :], other=0)
            places = at[:, None] + columns[None, :] * K if T else at[:, None] * N + columns[None, :]
            is_on = on[:, None] & columns_on[None, :] & (at >= 0)[:, None]
            right = tl.load(b + places, mask=is_on, other=0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None] & (columns < N)[None, :])


MODES = ("advanced", "masked", "narrower", "from below", "backwards", "the same again")


def arguments(rng, m: int, n: int, k: int, by_columns: bool, type=np.float32) -> list:
    a, b = rng.integers(-4, 5, (m, k)).astype(type), rng.integers(-4, 5, (k, n)).astype(type)
    return [a, np.ascontiguousarray(b.T) if by_columns else b, np.full((m, n), 77, np.float32), m, n, k]


@pytest.mark.share(3)
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 32, 128), (3, 41, 160), (7, 41, 96), (18, 70, 99), (5, 16, 96), (4, 32, 31), (9, 70, 99)],
)
def test_stored_rows(compare, rng, mode, by_columns, m, n, k):
    sizes = {"T": by_columns, "INIT": float(m % 2), "MODE": mode, "BM": 16, "BN": 32}
    compare(product, arguments(rng, m, n, k, by_columns), sizes, grid=(-(-m // 16), -(-n // 32)), tolerance=0)


@pytest.mark.share(3)
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", ["bfloat16", "float16"])
@pytest.mark.parametrize("m", [2, 4, 7])
def test_narrow_floats(compare, rng, bfloat16, type, mode, by_columns, m):
    args = arguments(rng, m, 41, 160, by_columns, bfloat16 if type == "bfloat16" else type)
    sizes = {"T": by_columns, "INIT": 1.0, "MODE": mode, "BM": 16, "BN": 32}
    compare(product, args, sizes, grid=(1, 2), cpus=("native", "x86-64-v4", "x86-64-v3"), tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("cpu", CPUS)
def test_processors(compare, rng, by_columns, cpu):
    sizes = {"T": by_columns, "INIT": 0.0, "MODE": "masked", "BM": 16, "BN": 64}
    compare(product, arguments(rng, 3, 100, 99, by_columns), sizes, grid=(1, 2), cpus=(cpu,), tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("m", [*range(1, 9), 15, 16, 17])
def test_numbers_of_rows(compare, rng, m, by_columns):
    """In fours, pairs and one, up to sixteen of a tile that has more."""
    sizes = {"T": by_columns, "INIT": 0.0, "MODE": "masked", "BM": 32, "BN": 64}
    compare(product, arguments(rng, m, 83, 99, by_columns), sizes, grid=(1, 2), cpus=("native",), tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
def test_what_others_find_packed_is_packed_whole(compare, rng, by_columns):
    """The program of one row comes first, and packs the last steps only; the one after it has the same B."""
    sizes = {"T": by_columns, "INIT": 0.0, "MODE": "masked", "BM": 64, "BN": 64}
    compare(product, arguments(rng, 65, 64, 99, by_columns), sizes, grid=(2, 1), cpus=("native",), tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("type", [np.float32, "bfloat16"])
def test_what_is_beyond_the_depth_is_not_read(compare, rng, bfloat16, type, by_columns):
    """The last tile along k is not full: what comes after A and B in memory stays out."""
    for k in (33, 79, 95, 31):
        args = arguments(rng, 3, 40, k, by_columns, bfloat16 if type == "bfloat16" else type)
        wide = [np.full((array.shape[0] + 2, array.shape[1]), 99, array.dtype) for array in args[:2]]
        for array, source in zip(wide, args, strict=False):
            array[: source.shape[0]] = source
        sizes = {"T": by_columns, "INIT": 0.0, "MODE": "masked", "BM": 16, "BN": 64}
        compare(product, [*wide, *args[2:]], sizes, cpus=("native",), tolerance=0)


def half_masked(a, b, c, M, N, K, OTHER: tl.constexpr, MASKED: tl.constexpr):
    """Only one operand is masked along k, or what is beyond is not 0."""
    rows, columns, ks = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 32)
    acc = tl.zeros((16, 32), tl.float32)
    for k in range(0, K, 32):
        on_a = (k + ks < K) if MASKED != "b" else (k + ks >= 0)
        on_b = (k + ks < K) if MASKED != "a" else (k + ks >= 0)
        if MASKED == "shorter":
            on_b = k + ks < K - 3
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=(rows < M)[:, None] & on_a[None, :], other=OTHER)
        right = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=on_b[:, None], other=OTHER)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None])


@pytest.mark.parametrize("masked", ["both", "a", "b", "shorter"])
@pytest.mark.parametrize("other", [0.0, 2.0])
def test_what_is_beyond_one_limit_alone_counts(compare, rng, masked, other):
    a, b = rng.integers(-4, 5, (3, 70)).astype(np.float32), rng.integers(-4, 5, (96, 32)).astype(np.float32)
    args = [np.pad(a, ((0, 1), (0, 0))), b, np.zeros((3, 32), np.float32), 3, 32, 70]
    compare(half_masked, args, {"OTHER": other, "MASKED": masked}, cpus=("native",), tolerance=0)


@pytest.mark.parametrize("mode", MODES)
def test_infinities_stay_in_their_rows_and_columns(compare, rng, mode):
    args = arguments(rng, 3, 32, 96, False)
    args[0][1, 5], args[1][7, 3], args[1][8, 4] = np.nan, np.inf, -np.inf
    compare(product, args, {"T": False, "INIT": 0.0, "MODE": mode, "BM": 16, "BN": 32})


def bytes_by_columns(a, b, c, M, N, K, BK: tl.constexpr, CHANGED: tl.constexpr):
    rows, columns, ks = tl.arange(0, 16), tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, BK)
    acc = tl.zeros((16, 32), tl.int32)
    for k in range(0, K, BK):
        on = k + ks < K
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=(rows < M)[:, None] & on[None, :], other=0)
        places = (columns % N)[None, :] * K + (k + ks)[:, None]
        right = tl.load(b + places, mask=on[:, None], other=0)
        if CHANGED == "a":
            left = left ^ -128
        elif CHANGED == "b":
            right = right ^ -128
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None] & (columns < N)[None, :])


@pytest.mark.parametrize(("m", "n", "k"), [(1, 41, 300), (3, 64, 128), (5, 33, 63)])
def test_bytes(compare, rng, m, n, k):
    """The lowest and the highest, whose sums of four would not fit where they were saturated."""
    a, b = (rng.choice([-128, -1, 1, 127], shape).astype(np.int8) for shape in ((m, k), (n, k)))
    args = [a, b, np.full((m, n), 77, np.int32), m, n, k]
    compare(bytes_by_columns, args, {"BK": 64, "CHANGED": ""}, grid=(-(-n // 32), 1), tolerance=0)


@pytest.mark.parametrize("changed", ["a", "b"])
def test_bytes_that_are_computed(compare, rng, changed):
    """As a product's own copy of A is, which has the sign flipped."""
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 128), (32, 128)))
    args = [a, b, np.full((2, 32), 77, np.int32), 2, 32, 128]
    compare(bytes_by_columns, args, {"BK": 64, "CHANGED": changed}, tolerance=0)


@pytest.mark.parametrize("cpu", ["znver4", "icelake-server", "sapphirerapids"])
def test_bytes_are_before_the_loop(lower_python, lower_module, cpu):
    args = [np.zeros(4, np.int8)] * 2 + [np.zeros(4, np.int32), 1, 64, 64]
    llir = lower_module(lower_python(bytes_by_columns, args, {"BK": 64, "CHANGED": ""}), cpu=cpu).llir
    assert "few_rows:" in llir


def test_full_tiles_find_packed_columns():
    assert [most_rows(m, f32, None, False) for m in (1, 4, 8, 16, 32, 128)] == [1, 4, 7, 15, 16, 16]


@pytest.mark.parametrize(
    ("type", "product", "of_rows", "of_columns"),
    [(f32, None, 16, 16), (f16, None, 4, 8), (bf16, BF16_PAIRS, 4, 8), (bf16, BF16_TILES, 4, 4)],
)
def test_how_many_are_few(type, product, of_rows, of_columns):
    assert [most_rows(32, type, product, is_by_columns) for is_by_columns in (False, True)] == [of_rows, of_columns]


@pytest.mark.parametrize("by_columns", [False, True])
def test_rows_of_b_are_asked_for_and_columns_are_not(lower_python, lower_module, by_columns):
    args = [np.zeros(4, np.float32)] * 3 + [1, 64, 64]
    sizes = {"T": by_columns, "INIT": 0.0, "MODE": "masked", "BM": 16, "BN": 32}
    llir = lower_module(lower_python(product, args, sizes)).llir
    assert ("i32 0, i32 2, i32 1)" in llir) is not by_columns


def test_the_product_is_before_the_loop(lower_python, lower_module):
    """Of rows that may be few, of which all stores have a limit; not of a tile that is stored whole."""
    args = [np.zeros(4, np.float32)] * 3 + [1, 64, 64]
    sizes = {"T": True, "INIT": 0.0, "MODE": "masked", "BM": 16, "BN": 32}
    llir = lower_module(lower_python(product, args, sizes)).llir
    assert "few_rows:" in llir
    assert "compute:" in llir  # what else the loop does, where it is not done


@pytest.mark.parametrize(("cpu", "is_before"), [("znver4", True), ("x86-64-v4", True), ("x86-64-v3", False)])
def test_narrow_floats_are_before_the_loop(lower_python, lower_module, cpu, is_before):
    """Where their last columns can be loaded under a mask."""
    args = [np.zeros(4, np.float16)] * 2 + [np.zeros(4, np.float32), 1, 64, 64]
    sizes = {"T": True, "INIT": 0.0, "MODE": "masked", "BM": 16, "BN": 32}
    assert ("few_rows:" in lower_module(lower_python(product, args, sizes), cpu=cpu).llir) == is_before


def test_rows_that_wrap_around_are_as_far_apart_as_are_needed(lower_python, lower_module):
    """Of two rows, `rows % 2` repeats them 8 times: only the two have to be equally far apart."""
    args = [np.zeros(4, np.float32)] * 3 + [2, 64, 64]
    sizes = {"T": True, "INIT": 0.0, "MODE": "advanced", "BM": 16, "BN": 32}
    llir = lower_module(lower_python(product, args, sizes)).llir
    looks = llir[llir.index("few_rows:") :]
    assert "icmp uge <16 x i64>" in looks[: looks.index("few_rows_end:")]


def stored_whole(a, b, c, K):
    """No store has a limit along the rows."""
    i, ks = tl.arange(0, 16), tl.arange(0, 32)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, K, 32):
        left = tl.load(a + i[:, None] * K + (k + ks)[None, :])
        acc = tl.dot(left, tl.load(b + (k + ks)[:, None] * 16 + i[None, :]), acc)
    tl.store(c + i[:, None] * 16 + i[None, :], acc)


def test_a_tile_that_is_stored_whole_is_computed_in_the_loop(lower_python, lower_module):
    args = [np.zeros(4, np.float32)] * 3 + [64]
    assert "few_rows" not in lower_module(lower_python(stored_whole, args, {})).llir


def spread(a, b, c, M, N, K, MODE: tl.constexpr):
    """Rows or columns lie farther apart in each iteration; the first of them goes on where it was."""
    rows, columns, ks = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 32)
    acc = tl.zeros((16, 32), tl.float32)
    for k in range(0, K, 32):
        depth = k + ks
        row_stride, column_stride, at = K, 1, depth[:, None] * N
        if MODE == "rows of A":
            row_stride = K + k
        if MODE == "columns of B":
            column_stride, at = K + k, depth[:, None]
        if MODE == "rows of B":
            at = depth[:, None] * N + ks[:, None] * k
        if MODE == "rows of B that wrap around":
            at = (depth % 40)[:, None] * N
        left = tl.load(a + rows[:, None] * row_stride + depth[None, :], mask=(rows < M)[:, None], other=0)
        right = tl.load(b + at + columns[None, :] * column_stride, mask=(columns < N)[None, :], other=0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None] & (columns < N)[None, :])


@pytest.mark.parametrize("mode", ["rows of A", "columns of B", "rows of B", "rows of B that wrap around"])
@pytest.mark.parametrize("m", [1, 3])
def test_rows_that_are_farther_apart_in_each_iteration(compare, rng, mode, m):
    a, b = (rng.integers(-4, 5, size).astype(np.float32) for size in (m * 128, 8192))
    compare(spread, [a, b, np.zeros((m, 29), np.float32), m, 29, 64], {"MODE": mode}, tolerance=0)


def spreading(a, b, c, M, K, OF: tl.constexpr, T: tl.constexpr, N: tl.constexpr):
    """Rows of A or columns of B lie farther apart in each iteration, or in another order, but for the first of them."""
    rows, columns, ks = tl.arange(0, 16), tl.arange(0, N), tl.arange(0, 32)
    acc = tl.zeros((16, N), tl.float32)
    for k in range(0, K, 32):
        number = k // 32
        at_rows, at_columns = rows, columns
        if OF == "rows":
            at_rows = rows * (1 + number)
        elif OF == "columns":
            at_columns = columns * (1 + number)
        else:
            at_columns = columns ^ (number * 2)
        left = tl.load(a + at_rows[:, None] * K + (k + ks)[None, :], mask=(rows < M)[:, None], other=0)
        places = (k + ks)[:, None] + at_columns[None, :] * K if T else (k + ks)[:, None] * (8 * N) + at_columns[None, :]
        acc = tl.dot(left, tl.load(b + places), acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=(rows < M)[:, None])


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("of", ["rows", "columns", "order"])
def test_distances_that_change_in_the_loop(compare, rng, of, by_columns):
    """The first iteration's do not hold of the others, though the first of their elements go on in memory."""
    a, b, *_ = arguments(rng, 16, 256, 128, by_columns)
    compare(spreading, [a, b, np.zeros((2, 32), np.float32), 2, 128], {"OF": of, "T": by_columns, "N": 32}, tolerance=0)


@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "are_before"), [(16, True), (64, False)])
def test_columns_that_wrap_around_are_before_the_loop(lower_python, lower_module, rows, are_before, type):
    """Where B is by rows and its columns `% N`, in small tiles: whether they are neighbours is found out."""
    args = [np.zeros(4, type)] * 2 + [np.zeros(4, np.float32), 1, 64, 64]
    sizes = {"T": False, "INIT": 0.0, "MODE": "advanced", "BM": rows, "BN": 32}
    assert ("few_rows:" in lower_module(lower_python(product, args, sizes), cpu="znver4").llir) == are_before


def reciprocals(a, b, c, M, K, T: tl.constexpr):
    """1 / (a @ b - 0.0), which has the sign of zeros."""
    rows, columns, ks = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 32)
    acc = tl.full((16, 16), -0.0, tl.float32)
    for k in range(0, K, 32):
        left = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=(rows < M)[:, None], other=0)
        places = columns[None, :] * K + (k + ks)[:, None] if T else (k + ks)[:, None] * 16 + columns[None, :]
        acc = tl.dot(left, tl.load(b + places), acc)
    tl.store(c + rows[:, None] * 16 + columns[None, :], 1 / acc, mask=(rows < M)[:, None])


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("depth", [0, 32])
def test_sums_without_products_keep_the_sign_of_zeros(compare, by_columns, depth):
    args = [np.zeros((2, 32), np.float32), np.zeros((16, 32), np.float32), np.zeros((2, 16), np.float32), 2, depth]
    compare(reciprocals, args, {"T": by_columns}, tolerance=0)

"""Products of which one row is needed, with B as it is computed: which are, and that what is stored is what it was."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.llvm.parse import parsed
from tests.backend.cpu.products.amx_machine import amx_machine

CPUS = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2")


def product(
    a, w, s, c, M, N, K,
    T: tl.constexpr, MODE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """c = a @ (w * s), in programs of which the last rows come first; T: w is there by columns."""
    row_block = tl.num_programs(0) - 1 - tl.program_id(0)
    rows, columns, ks = row_block * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    rows_on, columns_on = (rows < M)[:, None], (columns < N)[None, :]
    acc = tl.full((BM, BN), 3.0 if MODE == "from 3" else 0.0, tl.float32)
    scale = tl.load(s + columns, mask=columns < N, other=0.0)
    for k in range(0, K, BK):
        depth = k + ks
        on = depth < K
        left = tl.load(a + rows[:, None] * K + depth[None, :], mask=rows_on & on[None, :], other=0)
        places = depth[:, None] + columns[None, :] * K if T else depth[:, None] * N + columns[None, :]
        right = tl.load(w + places, mask=on[:, None] & columns_on, other=0)
        if MODE == "scaled":
            acc = tl.dot(left, (right.to(tl.float32) * scale[None, :]).to(left.dtype), acc)
        elif MODE == "scaled afterwards":
            acc += tl.dot(left, right.to(left.dtype)) * scale[None, :]
        elif MODE == "halves":
            high = (right >> (depth % 2 * 4)[:, None]) & 15
            acc = tl.dot(left, (high.to(tl.int8) - 8).to(left.dtype), acc)
        elif MODE == "written":
            tl.store(w + places, right * 0 + 1, mask=on[:, None] & columns_on & (k > 0))
            acc = tl.dot(left, right.to(left.dtype), acc)
        else:
            acc = tl.dot(left, right.to(left.dtype), acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=rows_on & columns_on)


MODES = ("plain", "from 3", "scaled", "scaled afterwards", "halves", "written")


def arguments(rng, m: int, n: int, k: int, by_columns: bool, type=np.float32, weights=np.int8) -> list:
    a, w = rng.integers(-4, 5, (m, k)).astype(type), rng.integers(-4, 5, (k, n)).astype(weights)
    s = 2.0 ** rng.integers(-2, 3, n).astype(np.float32)
    return [a, np.ascontiguousarray(w.T) if by_columns else w, s, np.full((m, n), 77, np.float32), m, n, k]


@pytest.mark.share(3)
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_rows(compare, rng, mode, by_columns):
    """Whole numbers, so that no sum is rounded; a program has no row, one, or more."""
    sizes = {"T": by_columns, "MODE": mode, "BM": 16, "BN": 32, "BK": 32}
    for m, n, k in ((1, 40, 79), (2, 33, 64), (17, 64, 33), (16, 31, 5)):
        compare(product, arguments(rng, m, n, k, by_columns), sizes, grid=(3, 2), cpus=CPUS, tolerance=0)


@pytest.mark.parametrize(("bn", "bk"), [(1, 32), (16, 1), (1, 1)])
def test_tiles_of_one_element(compare, rng, bn, bk):
    """A column alone, a depth of one: no loops."""
    sizes = {"T": False, "MODE": "scaled", "BM": 16, "BN": bn, "BK": bk}
    compare(product, arguments(rng, 1, 2 * bn, 79, False), sizes, grid=(1, 2), cpus=CPUS, tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("type", ["bfloat16", np.float16])
@pytest.mark.parametrize("weights", [np.int8, np.uint8, np.int16, np.float32])
def test_types(compare, rng, bfloat16, type, weights, by_columns):
    """Of negative weights as bytes without a sign, too, which bf16 has."""
    made = arguments(rng, 1, 70, 95, by_columns, bfloat16 if type == "bfloat16" else type)
    made[1] = made[1].astype(weights)
    sizes = {"T": by_columns, "MODE": "plain", "BM": 16, "BN": 64, "BK": 32}
    compare(product, made, sizes, grid=(1, 2), cpus=CPUS, tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
def test_what_others_find_packed_is_packed_whole(compare, rng, by_columns):
    """The program of one row comes first, and packs nothing; those after it have the same B."""
    sizes = {"T": by_columns, "MODE": "plain", "BM": 16, "BN": 64, "BK": 32}
    compare(product, arguments(rng, 65, 64, 99, by_columns), sizes, grid=(5, 1), cpus=("native",), tolerance=0)


@pytest.mark.parametrize("by_columns", [False, True])
def test_beside_tiles(compare, rng, bfloat16, monkeypatch, by_columns):
    """The first program has one row, the others blocks on tiles of AMX."""
    made = arguments(rng, 33, 64, 99, by_columns, bfloat16)
    sizes = {"T": by_columns, "MODE": "scaled", "BM": 16, "BN": 64, "BK": 32}
    with amx_machine(monkeypatch) as machine, machine.used():
        compare(product, made, sizes, grid=(3, 1), cpus=("native",), tolerance=0)


@pytest.mark.parametrize("mode", MODES)
def test_code(lower_python, lower_module, rng, mode):
    """What is written to before the product is read where it was."""
    sizes = {"T": True, "MODE": mode, "BM": 16, "BN": 32, "BK": 32}
    text = lower_module(lower_python(product, arguments(rng, 1, 40, 79, True), sizes), "znver4").llir
    assert ("single_row" in text) is (mode != "written")
    with parsed(text, "x86_64-unknown-linux-gnu"):  # also where int8 has more lanes than sums of fp32
        pass


def test_lanes_of_several_columns_are_added_up_together(lower_python, lower_module, rng):
    """B down its columns: three steps make one vector of sums of eight vectors."""
    sizes = {"T": True, "MODE": "plain", "BM": 16, "BN": 32, "BK": 32}
    text = lower_module(lower_python(product, arguments(rng, 1, 40, 79, True), sizes), "znver4").llir
    even = ", ".join(f"i32 {lane}" for lane in range(0, 32, 2))
    assert text.count(f"<16 x i32> <{even}>") == 7

"""A that is found copied, under one of several keys: programs compute what each alone would, in any order of keys."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.cpu import backend, lowering
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.direct import read_directly
from deuteron.backend.cpu.plan.products.reuse import reuse_operands
from deuteron.backend.cpu.target import cpu_target
from tests.backend.cpu.products.amx_machine import amx_machine

TYPES = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16, "int8": np.int8}


@deuteron.jit
def tiles(
    a, b, c, depths, keys, M, N, am, num_tiles, AK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The tiles whose numbers are in `keys`, one after the other, each of another depth."""
    i, j, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc_type = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    for number in range(num_tiles):
        tile = tl.load(keys + number)
        depth = tl.load(depths + number)
        rows, columns = tile // tl.cdiv(N, BN) * BM + i, tile % tl.cdiv(N, BN) * BN + j
        acc = tl.zeros((BM, BN), acc_type)
        for k in range(0, depth, BK):
            left_mask, right_mask = (rows < M)[:, None] & (k + ks < depth)[None, :], (k + ks < depth)[:, None]
            left = tl.load(a + rows[:, None] * am + (k + ks)[None, :] * AK, mask=left_mask, other=0)
            right = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=right_mask & (columns < N), other=0)
            acc = tl.dot(left, right, acc, out_dtype=acc_type)
        out = c + rows[:, None] * N + columns[None, :]
        tl.store(out, acc.to(c.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def sequences(rng, count: int) -> list[np.ndarray]:
    """In turns, each twice, in groups, at random, and each once."""
    turns = np.arange(3 * count) % count
    groups = np.concatenate([np.tile(np.arange(first, min(first + 3, count)), 3) for first in range(0, count, 3)])
    return [turns, np.repeat(np.arange(count), 2), groups, rng.integers(0, count, 40), np.arange(count)]


def check(rng, type, by_columns: bool, keys: np.ndarray, m=150, n=70, k=144, blocks=(16, 32, 16), overlaps=False):
    bm, bn, bk = blocks
    a, b = rng.integers(-2, 3, (m, k)).astype(type), rng.integers(-2, 3, (k, n)).astype(type)
    a = np.asfortranarray(a) if by_columns else a
    out = np.full((m, n), 77, np.int32 if type == np.int8 else np.float32)
    depths = rng.choice([0, 1, k // 2, k - 1, k], len(keys)).astype(np.int32)
    wanted = out.astype(np.float64)
    for key, depth in zip(keys, depths, strict=True):
        row, column = divmod(key, -(-n // bn))
        rows, columns = slice(row * bm, row * bm + bm), slice(column * bn, column * bn + bn)
        wanted[rows, columns] = a[rows, :depth].astype(np.float64) @ b[:depth, columns].astype(np.float64)
    strides = [stride // a.itemsize for stride in a.strides]
    blocks = {"AK": strides[1], "BM": bm, "BN": bn, "BK": bk}
    tiles[(1,)](a, b, out, depths, keys.astype(np.int32), m, n, strides[0], len(keys), **blocks)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.share(2)
@pytest.mark.parametrize("by_columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("room", [0, 30_000, 100_000, 2_000_000])
@pytest.mark.parametrize("type", TYPES.values(), ids=TYPES)
def test_keys_in_any_order(rng, monkeypatch, tmp_path, type, room, by_columns):
    monkeypatch.setattr(lowering, "cpu_target", lambda *cpu: replace(cpu_target(*cpu), second_cache_bytes=room))
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    tiles.device_caches.clear()
    for keys in sequences(rng, 30):
        check(rng, type, by_columns, keys)
    tiles.device_caches.clear()


@pytest.mark.parametrize("k", [144, 160], ids=["across lines", "whole lines"])
def test_on_tiles(rng, monkeypatch, tmp_path, k):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    with amx_machine(monkeypatch) as machine, machine.used():
        monkeypatch.setattr(backend, "may_use_tiles", lambda: True)
        tiles.device_caches.clear()
        for keys in sequences(rng, 9)[:3]:
            check(rng, ml_dtypes.bfloat16, False, keys, m=48, k=k, blocks=(16, 32, 32))
    tiles.device_caches.clear()


@deuteron.jit
def rows_of_columns(a, b, c, num_tiles, BLOCK: tl.constexpr):
    """c[row of blocks] = a.T @ b, by 32 columns at a time; c may be a, transposed."""
    i, ks = tl.arange(0, BLOCK), tl.arange(0, 32)
    for tile in range(num_tiles):
        row, column = tile // 2 % 2, tile % 2
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, 256, 32):
            left = tl.load(a + (row * BLOCK + i)[:, None] + (k + ks)[None, :] * 64)
            acc = tl.dot(left, tl.load(b + (k + ks)[:, None] * 64 + column * BLOCK + i[None, :]), acc)
        tl.store(c + (column * BLOCK + i)[None, :] * 64 + (row * BLOCK + i)[:, None], acc)


def test_a_that_is_written_through_another_argument(rng):
    a, b = rng.integers(-1, 2, (256, 64)).astype(np.float32), rng.integers(-1, 2, (256, 64)).astype(np.float32)
    wanted = a.copy()
    for tile in range(4):
        rows, columns = (slice(32 * place, 32 * place + 32) for place in divmod(tile, 2))
        wanted[columns, rows] = (wanted[:, rows].T @ b[:, columns]).T
    rows_of_columns[(1,)](a, b, a, 4, BLOCK=32)
    np.testing.assert_array_equal(a, wanted)
    apart, before = np.zeros((64, 64), np.float32), a.copy()
    rows_of_columns[(1,)](a, b, apart, 4, BLOCK=32)
    np.testing.assert_array_equal(apart, (before.T @ b).T)


def test_which_a_is_found_copied(lower_python):
    """What is copied anyway; on tiles also what can be read directly."""

    def count(cpu: str, ak: int) -> int:
        x, n = np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, np.int32)
        args = [x, x, x, n, n, 64, 64, 64 if ak == 1 else 1, 4]
        module = lower_python(tiles, args, {"AK": ak, "BM": 32, "BN": 32, "BK": 32})
        plan = plan_function(kernel_of(module, cpu_target(cpu, "")))
        read_directly(plan)
        return sum(reuse.most_entries > 1 for reuse in reuse_operands(plan, 1 << 20))

    assert [count("znver5", 1), count("znver5", 77), count("sapphirerapids", 1)] == [0, 1, 1]

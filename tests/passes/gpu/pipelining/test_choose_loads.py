"""Which loads beside dots run ahead, and how, where they depend on each other and on what is stored: all are right."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

pytestmark = pytest.mark.usefixtures("by_pointers")
N, TILES = 64, 8


@deuteron.jit
def sums(a, b, table, rows, out, n, CASE: tl.constexpr):
    i = tl.arange(0, 64)
    square = i[:, None] * 64 + i[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    before = tl.load(b + square)
    for k in range(n):
        y = tl.load(b + k * 4096 + square)
        if CASE == "plain":
            x = tl.load(a + k * 4096 + square)
        elif CASE == "page":
            x = tl.load(a + tl.load(table + k) * 4096 + square)
        elif CASE == "page of a page":
            x = tl.load(a + tl.load(table + tl.load(table + k)) * 4096 + square)
        elif CASE == "rows":
            x = tl.load(a + k * 4096 + tl.load(rows + k + i)[:, None] * 64 + i[None, :])
        elif CASE == "mask":
            x = tl.load(a + k * 4096 + square, (tl.load(rows + k + i) > 30)[:, None], 0.0)
        elif CASE == "other":
            x = tl.load(a + k * 4096 + square, i[:, None] > k, 1.0)
        elif CASE == "other of another":
            x = tl.load(a + k * 4096 + square, i[:, None] > k, y)
        elif CASE == "carried other":
            x = tl.load(a + k * 4096 + square, i[:, None] > k, before)
            before = y
        elif CASE == "kept in order":
            x = tl.load(a + k * 4096 + square)
            tl.atomic_add(table + k, 0)
        elif CASE == "a page that is written":
            x = tl.load(a + tl.load(table + k) * 4096 + square)
            tl.store(table + k + 1, (k * 5 + 3) % 8)
        elif CASE == "in a branch":
            x = y
            if k % 2 == 1:
                x = tl.load(a + k * 4096 + square)
        elif CASE == "stored":
            x = tl.load(a + k * 4096 + square)
            tl.store(a + (k + 1) * 4096 + square, y)
        acc = tl.dot(x, y, acc)
    tl.store(out + square, acc)


def operand(case, a, b, table, rows, k):
    """The first operand of iteration k, before it stores."""
    inside = (np.arange(N) > k)[:, None]
    match case:
        case "page" | "a page that is written":
            return a[table[k]]
        case "page of a page":
            return a[table[table[k]]]
        case "rows":
            return a[k][rows[k : k + N]]
        case "mask":
            return np.where((rows[k : k + N] > 30)[:, None], a[k], 0)
        case "other":
            return np.where(inside, a[k], 1)
        case "other of another":
            return np.where(inside, a[k], b[k])
        case "carried other":
            return np.where(inside, a[k], b[max(k - 1, 0)])
        case "in a branch":
            return a[k] if k % 2 else b[k]
    return a[k]


def expected(case, a, b, table, rows, n):
    a, table, total = a.copy(), table.copy(), np.zeros((N, N))
    for k in range(n):
        total += operand(case, a, b, table, rows, k).astype(np.float64) @ b[k]
        if case == "stored":
            a[k + 1] = b[k]
        if case == "a page that is written":
            table[k + 1] = (k * 5 + 3) % TILES
    return total


# Of the loads in the loop: copies, loads into registers, and those that stay. Of tiles and scalars.
CHOSEN = {
    "plain": (2, 0, 0),
    "page": (2, 1, 0),
    "page of a page": (2, 2, 0),
    "rows": (2, 1, 0),
    "mask": (2, 1, 0),
    "other": (1, 1, 0),
    "other of another": (0, 2, 0),
    "carried other": (0, 2, 0),
    "kept in order": (0, 0, 2),
    "a page that is written": (1, 0, 2),
    "in a branch": (1, 0, 1),
    "stored": (1, 0, 1),
}


def chosen(text: str) -> tuple[int, int, int]:
    loop = text.split('"scf.for"', 1)[1].rsplit('"scf.yield"', 1)[0]
    loads = [line for line in loop.splitlines() if '"tt.load"' in line]
    copies = loop.count('"ttg.async_copy_global_to_local"')
    ahead = [line for line in loads if "into-registers" in line]
    return copies, len(ahead), len(loads) - len(ahead)


@pytest.mark.share(3)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("case", CHOSEN)
def test_chosen(rng, case, target):
    a, b = (aligned(rng.integers(-1, 2, (TILES + 1, N, N)).astype(np.float16)) for _ in range(2))
    table = aligned(rng.integers(0, TILES, TILES + 1).astype(np.int32))
    rows = aligned(rng.integers(0, N, TILES + N).astype(np.int32))
    out = aligned(np.full((N, N), np.nan, np.float32))
    kernel = compile_for(target, sums, a, b, table, rows, out, 5, CASE=case, num_stages=3)
    assert chosen(generic_asm(kernel, "ttgir")) == CHOSEN[case]
    for n, asynchronous in ((0, "random"), (1, "late"), (2, "early"), (7, "late")):
        given = [one.copy() for one in (a, b, table, rows)]
        emulate_compiled(kernel, *(aligned(one) for one in given), out, n, asynchronous=asynchronous)
        np.testing.assert_array_equal(out, expected(case, *given, n), f"{n} {asynchronous}")


@deuteron.jit
def odd_product(a, b, out, K, IS_CARRIED: tl.constexpr):
    m, n, k = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 64)
    a_ptrs, b_ptrs = a + m[:, None] * K + k[None, :], b + n[None, :] * K + k[:, None]
    acc = tl.zeros((128, 64), tl.float32)
    for start in range(0, K, 64):
        if not IS_CARRIED:
            a_ptrs = a + m[:, None] * K + (start + k)[None, :]
            b_ptrs = b + n[None, :] * K + (start + k)[:, None]
        x = tl.load(a_ptrs, mask=k[None, :] < K - start, other=0.0)
        y = tl.load(b_ptrs, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(x, y, acc)
        if IS_CARRIED:
            a_ptrs += 64
            b_ptrs += 64
    tl.store(out + m[:, None] * 64 + n[None, :], acc)


@pytest.mark.parametrize("is_carried", [True, False])
def test_addresses_that_are_computed_fill_more_registers(rng, is_carried):
    """Of 64 sums, 96 elements and the addresses of 48 rows: loads ahead spilled, and took 1.5 times as long."""
    a, b = (rng.integers(-1, 2, (rows, 99)).astype(np.float16) for rows in (128, 64))
    out = aligned(np.full((128, 64), np.nan, np.float32))
    kernel = compile_for("cuda:90", odd_product, aligned(a), aligned(b), out, 99, IS_CARRIED=is_carried, num_stages=3)
    assert ("into-registers" in generic_asm(kernel, "ttgir")) == is_carried
    emulate_compiled(kernel, aligned(a), aligned(b), out, 99)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b.T)

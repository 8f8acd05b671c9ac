"""What becomes of a loop whose loads other warps do, whatever reads the tiles, and how often it goes around."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

N, TILES = 64, 8


@deuteron.jit
def partitioned(a, b, table, out, n, CASE: tl.constexpr):
    i = tl.arange(0, 64)
    square = i[:, None] * 64 + i[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    before = tl.load(b + square)
    last = before
    if CASE == "a number of iterations that is loaded":
        n = tl.load(table + n)
    for k in tl.range(n, warp_specialize=True):
        x = tl.load(a + k * 4096 + square)
        if CASE == "both operands":
            acc = tl.dot(x, x.T, acc)
        elif CASE == "before and after":
            acc = tl.dot(x, before, acc)
            acc += tl.sum(x.to(tl.float32), 1)[:, None]
            acc = tl.dot(x.T, before, acc)
        elif CASE == "carried on":
            acc = tl.dot(x, last, acc)
            last = x
        elif CASE == "in a branch":
            acc = tl.dot(x, before, acc)
            if tl.load(table + k) > 3:
                y = tl.load(b + k * 4096 + square)
                acc = tl.dot(y, before, acc)
        elif CASE == "in both branches":
            if k % 2 == 1:
                acc = tl.dot(tl.load(b + k * 4096 + square), before, acc)
            else:
                acc = tl.dot(x, before, acc)
                acc = tl.dot(tl.load(b + k * 4096 + square), before, acc)
        else:
            acc = tl.dot(x, before, acc)
    tl.store(out + square, acc)


def expected(case, a, b, table, n):
    a, b, total = a.astype(np.float64), b.astype(np.float64), np.zeros((N, N))
    before = last = b[0]
    for k in range(table[n] if case == "a number of iterations that is loaded" else n):
        x = a[k]
        match case:
            case "both operands":
                total += x @ x.T
            case "before and after":
                total += x @ before + x.sum(1)[:, None] + x.T @ before
            case "carried on":
                total, last = total + x @ last, x
            case "in a branch":
                total += (x + (b[k] if table[k] > 3 else 0)) @ before
            case "in both branches":
                total += (b[k] if k % 2 else x + b[k]) @ before
            case _:
                total += x @ before
    return total


CASES = ["plain", "both operands", "before and after", "carried on", "in a branch", "in both branches"]
CASES += ["a number of iterations that is loaded"]


@pytest.mark.share(3)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_what_is_computed(rng, way, case, stages):
    a, b = (aligned(rng.integers(-1, 2, (TILES, N, N)).astype(np.float16)) for _ in range(2))
    table = aligned(rng.integers(0, TILES, TILES).astype(np.int32))
    out = aligned(np.full((N, N), np.nan, np.float32))
    kernel = compile_for("cuda:90", partitioned, a, b, table, out, 5, CASE=case, num_stages=stages)
    assert '"ttg.warp_specialize"' in generic_asm(kernel, "ttgir") or case == "in both branches"
    for n, asynchronous in ((0, "random"), (1, "late"), (2, "early"), (7, "late")):
        out.fill(np.nan)
        emulate_compiled(kernel, a, b, table, out, n, asynchronous=asynchronous)
        np.testing.assert_array_equal(out, expected(case, a, b, table, n), f"{n} {asynchronous}")

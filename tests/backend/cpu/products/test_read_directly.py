"""Products that read A in place where its rows and masks are found to be regular before the loop, and copies else."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.direct import read_directly
from deuteron.backend.cpu.target import cpu_target

CPUS = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2")


def matmul(a, b, c, M, N, K, lda, first, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a[:, first:] @ b[first:]; FORM: how rows and masks are written."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ks, acc_type = tl.arange(0, BK), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    acc, seen, offsets, power = tl.zeros((BM, BN), acc_type), 0, first + ks, 1
    is_masked = FORM == "masked rows" or FORM == "both masked" or FORM == "advanced"
    a_rows = rows if is_masked else (rows // 2 if FORM == "pairs" else rows % M)
    a_ptrs = a + a_rows[:, None] * lda + (first + ks)[None, :]
    for k in range(first, K, BK):
        if FORM == "one of two":
            mask = (k + ks[None, :] < K) | (rows[:, None] < 3)
        elif FORM == "masked rows":
            mask = (rows[:, None] < M) & (ks[None, :] < K - k)
        elif FORM == "both masked":
            mask = (rows[:, None] < M) & (rows[:, None] >= 0) & (k + ks[None, :] < K) & (k < K)
        elif FORM == "not the first":
            mask = (k + ks[None, :] > first) & (k + ks[None, :] < K)
        elif FORM == "counted":
            mask = ks[None, :] < K - first - seen
        elif FORM == "advanced":
            mask = (rows[:, None] < M) & (offsets[None, :] < K)
        elif FORM == "doubled":
            mask = (k + ks[None, :] < K) & (power < 4)
        elif FORM == "loaded":
            mask = (k + ks[None, :] < K) & (power < 1000)
        else:
            mask = ks[None, :] < K - k
        left = tl.load(a_ptrs, mask=mask, other=0)
        right = tl.load(b + (k + ks)[:, None] * N + columns[None, :], mask=(k + ks)[:, None] < K, other=0)
        acc = tl.dot(left, right, acc, out_dtype=acc_type)
        a_ptrs += BK
        seen += BK
        offsets += BK
        power = power * 2 if FORM != "loaded" else power + tl.load(b).to(tl.int32)
    places = c + (tl.program_id(0) * BM + tl.arange(0, BM))[:, None] * N + columns[None, :]
    tl.store(places, acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


FORMS = ("wrapped", "masked rows", "both masked", "not the first", "counted", "advanced", "doubled", "loaded", "pairs")


@pytest.mark.share(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("m", "k", "first"), [(32, 96, 32), (37, 128, 0), (20, 70, 5), (16, 32, 32)])
def test_rows_and_masks(compare, rng, form, m, k, first):
    """What is masked off is not a number, and past the last row no memory."""
    n, lda = 16, k + 3
    a, b = rng.integers(-4, 5, (m, lda)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)
    a[:, k:] = np.nan
    args = [a, b, np.full((m, n), 77, np.float32), m, n, k, lda, first]
    compare(matmul, args, {"FORM": form, "BM": 16, "BN": 16, "BK": 32}, grid=(-(-m // 16), 1), tolerance=0)


@pytest.mark.share(3)
@pytest.mark.parametrize("form", ["wrapped", "both masked"])
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"), [(128, 64, 256, (64, 32, 64)), (75, 51, 140, (32, 32, 32)), (33, 64, 64, (16, 64, 16))]
)
def test_types_and_tiles(compare, rng, bfloat16, type, form, m, n, k, blocks):
    bm, bn, bk = blocks
    dtype, n = bfloat16 if type == "bfloat16" else type, -(-n // bn) * bn
    a, b = rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (k, n)).astype(dtype)
    out = np.full((m, n), 77, "int32" if type == "int8" else "float32")
    args, sizes = [a, b, out, m, n, k, k, 0], {"FORM": form, "BM": bm, "BN": bn, "BK": bk}
    compare(matmul, args, sizes, grid=(-(-m // bm), n // bn), cpus=CPUS, tolerance=0)


@pytest.fixture
def directs(lower_python):
    def find(form: str) -> list:
        x = np.zeros(1, np.float32)
        constexprs = {"FORM": form, "BM": 16, "BN": 16, "BK": 32}
        plan = plan_function(
            kernel_of(lower_python(matmul, [x, x, x, 1, 1, 1, 1, 0], constexprs), cpu_target("x86-64-v3", ""))
        )
        read_directly(plan)
        return [item.direct for item in dots_of(plan.body)]

    return find


@pytest.mark.parametrize("form", FORMS)
def test_what_is_looked_at(directs, form):
    (direct,) = directs(form)
    if form == "loaded":
        assert direct is None  # what the loop carries is not known before it
        return
    two = dict.fromkeys(("masked rows", "advanced", "not the first"), (2, 0))
    limits, fixed = {**two, "both masked": (3, 1), "doubled": (1, 1)}.get(form, (1, 0))
    assert (len(direct.mask.limits), len(direct.mask.fixed)) == (limits, fixed)
    assert len(direct.carried) == (form in ("counted", "advanced", "doubled"))
    assert direct.checks_rows == (form not in ("masked rows", "both masked", "advanced"))


def test_masks_that_are_not_understood(directs):
    assert directs("one of two") == [None]


def read_twice(a, c, K, BM: tl.constexpr, BK: tl.constexpr):
    """What is copied for the product is kept for its transpose too."""
    rows, ks = tl.arange(0, BM), tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=(k + ks)[None, :] < K, other=0.0)
        acc = tl.dot(x, tl.trans(x), acc)
    tl.store(c + rows[:, None] * BM + rows[None, :], acc)


@pytest.mark.parametrize("depth", [15, 16, 33, 75, 80])
@pytest.mark.parametrize("type", ["float32", "bfloat16"])
def test_what_is_read_twice(compare, rng, bfloat16, type, depth):
    """Its copies were made before it was loaded: of the iteration before."""
    a = rng.integers(-4, 5, (32, depth)).astype(bfloat16 if type == "bfloat16" else type)
    compare(read_twice, [a, np.full((32, 32), 77, np.float32), depth], {"BM": 32, "BK": 16}, cpus=CPUS, tolerance=0)


def moved(a, b, out, place, K, ATOMIC: tl.constexpr, BK: tl.constexpr):
    """Rows begin where memory says, which each iteration changes: they do not go on in the next step."""
    i, j, ks = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, BK)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, K, BK):
        if ATOMIC:
            begin = tl.atomic_add(place, 128)
        else:
            begin = tl.load(place)
            tl.store(place, begin + 128)
        left = tl.load(a + begin + i[:, None] * 1024 + (k + ks)[None, :])
        acc = tl.dot(left, tl.load(b + (k + ks)[:, None] * 16 + j[None, :]), acc)
    tl.store(out + i[:, None] * 16 + j[None, :], acc)


@pytest.mark.parametrize("block", [16, 64])
@pytest.mark.parametrize("atomic", [False, True])
def test_rows_that_memory_moves(compare, rng, atomic, block):
    a, b = rng.integers(-4, 5, (17, 1024)).astype(np.float32), rng.integers(-4, 5, (128, 16)).astype(np.float32)
    args = [a, b, np.full((16, 16), 77, np.float32), np.zeros(1, np.int32), 128]
    compare(moved, args, {"ATOMIC": atomic, "BK": block}, tolerance=0)

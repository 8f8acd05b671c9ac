"""Programs that are neighbours in memory run in step on CPUs, and do what they did; others stay alone."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

GROUPED = ["column", "in place", "loop", "scalars", "branch", "both branches", "turned", "along y", "argmax", "scan"]
ALONE = ["row", "atomic", "printed", "its own length", "long branch", "one place", "product", "volatile"]


@deuteron.jit
def kernel(x, lengths, o, rows, columns, KIND: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, B)
    mask = i < rows
    at = i * columns + p
    if KIND == "column":
        v = tl.load(x + at, mask=mask, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(o + at, e / tl.sum(e, 0), mask=mask)
    elif KIND == "in place":
        tl.store(x + at, tl.load(x + at, mask=mask) + 1.0, mask=mask)
        tl.store(o + at, tl.load(x + at, mask=mask), mask=mask)
    elif KIND == "loop":
        h = 0.0
        for r in range(rows):
            h = 0.5 * h + tl.load(x + r * columns + p)
            tl.store(o + r * columns + p, h)
    elif KIND == "scalars":
        tl.store(o + p, (tl.load(x + p) * 1000).to(tl.int32) // tl.load(lengths + p))
    elif KIND == "branch":
        if p < columns - 3:
            tl.store(o + p, tl.load(x + p) + tl.load(x + columns - 1))
    elif KIND == "both branches":
        v = 1.0
        if p % 3 == 0:
            v = tl.load(x + p)
        elif p % 3 == 1:
            v = -tl.load(x + columns + p) + tl.load(lengths)
        tl.store(o + p, v)
    elif KIND == "turned":
        v = tl.load(x + p * columns + i, mask=i < columns)
        tl.store(o + i * rows + p, v, mask=(i < columns) & (p < rows))
    elif KIND == "along y":
        q = tl.program_id(1)
        tl.store(o + p * columns + q, tl.load(x + p * columns + q) + p * 1000 + q + tl.num_programs(1))
    elif KIND == "argmax":
        tl.store(o + p, tl.argmax(tl.load(x + at, mask=mask, other=-float("inf")), 0).to(tl.float32))
    elif KIND == "scan":
        tl.store(o + at, tl.cumsum(tl.load(x + at, mask=mask, other=0.0), 0, reverse=True), mask=mask)
    elif KIND == "row":
        v = tl.load(x + p * columns + i, mask=i < columns, other=0.0)
        tl.store(o + p, tl.sum(v, 0), mask=p < rows)
    elif KIND == "atomic":
        tl.atomic_add(o + at, tl.load(x + at, mask=mask), mask=mask)
    elif KIND == "printed":
        tl.device_print("program", p)
        tl.store(o + at, tl.load(x + at, mask=mask), mask=mask)
    elif KIND == "its own length":
        h = 0.0
        for r in range(tl.load(lengths + p)):
            h += tl.load(x + r * columns + p)
        tl.store(o + p, h)
    elif KIND == "long branch":
        if p % 2 == 0:
            for r in range(rows):
                tl.store(o + r * columns + p, tl.load(x + r * columns + p))
    elif KIND == "one place":
        tl.store(o + i, tl.load(x + at, mask=mask), mask=mask & (p == 3))
    elif KIND == "product":
        v = tl.load(x + at, mask=mask, other=0.0)
        tl.store(o + at, tl.sum(tl.dot(v[:, None] + tl.zeros((B, 16), tl.float32), tl.zeros((16, 16), tl.float32)), 1))
    else:
        tl.store(o + at, tl.load(x + at, mask=mask, volatile=True), mask=mask)


def _arguments(rows=45, columns=77):
    rng = np.random.default_rng(rows * columns)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    return x, rng.integers(1, rows, columns).astype(np.int32), np.zeros_like(x), rows, columns


def _is_grouped(kind):
    text = generic_asm(compile_for("cpu", kernel, *_arguments(), KIND=kind, B=64), "ttir")
    return "arith.andi" in text and "tt.get_num_programs" in text


@pytest.mark.parametrize("kind", GROUPED)
def test_neighbours_in_memory_run_in_step(kind):
    assert _is_grouped(kind)


@pytest.mark.parametrize("kind", ALONE)
def test_others_run_alone(kind):
    assert not _is_grouped(kind)


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", [*GROUPED, *ALONE[:1], *ALONE[3:6]])
@pytest.mark.parametrize("columns", [1, 20, 33, 77])
def test_elements_are_what_they_were(kind, columns, monkeypatch):
    given = _arguments(columns=columns)
    grid = {"turned": (45,), "row": (45,), "along y": (45, columns)}.get(kind, (columns,))
    arrays = []
    for is_interpreted in (False, True):
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
        monkeypatch.setenv("DEUTERON_INTERPRET", str(int(is_interpreted)))
        deuteron.jit(kernel.fn)[grid](*copies, KIND=kind, B=64 if kind != "row" else 128)
        arrays.append(copies)
    for index in (0, 2):
        np.testing.assert_allclose(arrays[0][index], arrays[1][index], rtol=2e-6, atol=2e-6)


@deuteron.jit
def flat(x, o, n, m, total, IS_CONSTANT: tl.constexpr, B: tl.constexpr):
    """Rows of n or 40 programs, m rows to a page."""
    p = tl.program_id(0)
    i = tl.arange(0, B)
    length = n
    if IS_CONSTANT:
        length = 40
    at = p // length * length * B + i * length + p % length
    mask = (at >= 0) & (at < total)
    tl.store(o + at, tl.load(x + at, mask=mask) * (p // (length * m)) + p, mask=mask)


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("n", [1, 5, 32, 40, 100, 500, -40])
@pytest.mark.parametrize("num_programs", [1, 399])
def test_programs_of_a_row_run_in_step(is_constant, n, num_programs):
    x = np.random.default_rng(n + 50).standard_normal(20_000).astype(np.float32)
    out, expected = np.zeros_like(x), np.zeros_like(x)
    flat[(num_programs,)](x, out, n, 3, x.size, IS_CONSTANT=is_constant, B=16)
    length = 40 if is_constant else n
    programs = np.arange(num_programs)[:, None]
    row, page = (programs // abs(rows) * np.sign(length) for rows in (length, length * 3))
    at = row * length * 16 + np.arange(16) * length + programs % abs(length)
    mask = (at >= 0) & (at < x.size)
    expected[at[mask]] = (x[np.where(mask, at, 0)] * page.astype(np.float32) + programs)[mask]
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-4)


def test_rows_are_found():
    x = np.zeros(640, np.float32)
    text = generic_asm(compile_for("cpu", flat, x, x, 40, 3, 640, IS_CONSTANT=False, B=16), "ttir")
    assert "arith.minsi" in text and "tt.get_num_programs" in text


@deuteron.jit
def channels(x, o, n, m, B: tl.constexpr):
    p = tl.program_id(0)
    at = (p // n % m * B + tl.arange(0, B)) * 40 + p % n
    tl.store(o + p, tl.sum(tl.load(x + at, mask=(at >= 0) & (at < 4096), other=0.0), 0) + p // (n * m) + p % n)


@pytest.mark.parametrize(
    ("n", "m"), [(40, 2), (33, 1), (-40, 2), (1, 5), (0, 3), (-(2**31), 1), (2**30 + 1, 4), (3, -1431655765)]
)
def test_rows_of_no_programs_and_products_that_overflow(n, m, monkeypatch):
    """Of the last three `n * m` is -2**31, 4 and 1, of which rows are no parts."""
    x, results = np.arange(4096, dtype=np.float32), []
    text = generic_asm(compile_for("cpu", channels, x, x, n, m, B=16), "ttir")
    assert "arith.andi" in text and "tt.get_num_programs" in text
    for is_interpreted in (False, True):
        monkeypatch.setenv("DEUTERON_INTERPRET", str(int(is_interpreted)))
        o = np.full(200, np.nan, np.float32)
        deuteron.jit(channels.fn)[(200,)](x, o, n, m, B=16)
        results.append(o)
    np.testing.assert_array_equal(*results)

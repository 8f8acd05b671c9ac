"""Programs whose tiles are short rows of neighbours in memory do what longer ones do; others stay alone."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

WIDENED = ["softmax", "flat", "loop", "both ways", "argmax", "scan", "branch", "turned", "along y", "masks", "in place"]
ALONE = ["row", "across", "another number", "from 8", "id", "next", "other range", "its own length", "row turned"]
ALONE += ["reshaped", "product", "table"]


@deuteron.jit
def kernel(x, o, rows, columns, KIND: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(1 if KIND == "along y" else 0)
    r = tl.arange(0, 64)
    c = p * B + tl.arange(0, B)
    at = r[:, None] * columns + c[None, :]
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    if KIND == "softmax":
        v = tl.load(x + at, mask=mask, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0)[None, :])
        tl.store(o + at, e / tl.sum(e, 0)[None, :], mask=mask)
    elif KIND == "flat":
        for row in range(rows):
            tl.store(o + row * columns + c, tl.load(x + row * columns + c, mask=c < columns) + c, mask=c < columns)
    elif KIND == "loop":
        total, last = tl.zeros((B,), tl.float32), c.to(tl.float32)
        for row in range(rows):
            total += tl.load(x + row * columns + c, mask=c < columns, other=0.0)
            last = total * 0.5 + row
        tl.store(o + c, total + last, mask=c < columns)
    elif KIND == "both ways":
        total = tl.zeros((B,), tl.float32)
        for row in range(rows):
            if row % 2 == 0:
                total += tl.load(x + row * columns + c, mask=c < columns, other=0.0)
            else:
                total = tl.full((B,), 3.0, tl.float32)
        tl.store(o + c, total, mask=c < columns)
    elif KIND == "argmax":
        v = tl.load(x + at, mask=mask, other=-float("inf"))
        tl.store(o + c, tl.argmax(v, 0).to(tl.float32), mask=c < columns)
    elif KIND == "scan":
        tl.store(o + at, tl.cumsum(tl.load(x + at, mask=mask, other=0.0), 0), mask=mask)
    elif KIND == "branch":
        if rows > 3:
            tl.store(o + c, tl.load(x + c, mask=c < columns), mask=c < columns)
    elif KIND == "turned":
        v = tl.trans(tl.load(x + at, mask=mask, other=0.0))
        tl.store(o + c, tl.sum(v, 1) + tl.sum(v * r[None, :], 1), mask=c < columns)
    elif KIND == "along y":
        q = tl.program_id(0)
        tl.store(o + q * columns + c, tl.load(x + q * columns + c, mask=c < columns) + q, mask=c < columns)
    elif KIND == "masks":
        kept = tl.where((r % 3 == 1)[:, None] & mask, tl.load(x + at, mask=mask), (r * 2.0)[:, None])
        tl.store(o + at, kept * tl.num_programs(0), mask=mask & (c % 5 != 2)[None, :])
    elif KIND == "in place":
        tl.store(x + at, tl.load(x + at, mask=mask) + 1.0, mask=mask)
        tl.store(o + at, tl.load(x + at, mask=mask), mask=mask)
    elif KIND == "row":
        v = tl.load(x + at, mask=mask, other=0.0)
        tl.store(o + p * rows + r, tl.sum(v, 1), mask=r < rows)
    elif KIND == "across":
        tl.store(o + at, tl.cumsum(tl.load(x + at, mask=mask, other=0.0), 1), mask=mask)
    elif KIND == "another number":
        d = p * (2 * B) + tl.arange(0, 2 * B)
        tl.store(o + c, tl.load(x + c, mask=c < columns), mask=c < columns)
        tl.store(o + columns + d, tl.load(x + d, mask=d < columns), mask=d < columns)
    elif KIND == "from 8":
        d = p * B + tl.arange(B, 2 * B)
        tl.store(o + d, tl.load(x + d, mask=d < columns), mask=d < columns)
    elif KIND == "id":
        tl.store(o + c, tl.load(x + c, mask=c < columns) + p, mask=c < columns)
    elif KIND == "next":
        tl.store(o + c, tl.load(x + c, mask=c < columns) + p * B, mask=c < columns)
    elif KIND == "other range":
        tl.store(o + c, tl.load(x + c, mask=c < columns) + tl.arange(0, B), mask=c < columns)
    elif KIND == "its own length":
        for row in range(p * B, rows):
            tl.store(o + row * columns + c, tl.load(x + row * columns + c, mask=c < columns), mask=c < columns)
    elif KIND == "row turned":
        v = tl.load(x + at, mask=mask, other=0.0)
        tl.store(o + p * rows + r[:, None], tl.trans(tl.sum(v[None, :, :], 2)), mask=(r < rows)[:, None])
    elif KIND == "reshaped":
        v = tl.load(x + at, mask=mask, other=0.0)
        twice = tl.reshape(tl.permute(tl.join(v, v), (2, 0, 1)), (128, B))
        tl.store(o + c, tl.sum(tl.trans(twice), 1), mask=c < columns)
    elif KIND == "product":
        v = tl.load(x + at, mask=mask, other=0.0)
        tl.store(o + at, tl.dot(tl.zeros((64, 64), tl.float32) + 1.0, v), mask=mask)
    else:
        i = r[:, None] * columns + tl.arange(0, B)[None, :]
        tl.store(o + at, tl.load(x + at, mask=mask) + tl.load(x + i), mask=mask)


def _arguments(rows=45, columns=77):
    x = np.random.default_rng(rows * columns).standard_normal((rows, columns)).astype(np.float32)
    return x, np.zeros_like(x), rows, columns


def _width(kind, block):
    """Of the widest tile of pointers that is stored to."""
    text = generic_asm(compile_for("cpu", kernel, *_arguments(), KIND=kind, B=block), "ttir")
    assert ("arith.andi" in text and "tt.get_num_programs" in text) == ("x32x!tt.ptr" in text or "<32x!tt.ptr" in text)
    return 32 if "x32x!tt.ptr" in text or "<32x!tt.ptr" in text else block


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", WIDENED)
@pytest.mark.parametrize("block", [2, 8, 16])
def test_short_rows_become_longer(kind, block):
    assert _width(kind, block) == 32


@pytest.mark.parametrize("kind", ALONE)
def test_others_are_left_alone(kind):
    assert _width(kind, 8) == 8


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", [*WIDENED, *ALONE[:2], *ALONE[3:-2]])
@pytest.mark.parametrize("columns", [1, 13, 32, 77])
def test_elements_are_what_they_were(kind, columns, monkeypatch):
    given = _arguments(columns=columns)
    count = -(-columns // 8)
    grid = (45, count) if kind == "along y" else (min(count, 5) if kind.startswith("row") else count,)
    arrays = []
    for is_interpreted in (False, True):
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
        monkeypatch.setenv("DEUTERON_INTERPRET", str(int(is_interpreted)))
        deuteron.jit(kernel.fn)[grid](*copies, KIND=kind, B=8)
        arrays.append(copies)
    for index in (0, 1):
        np.testing.assert_allclose(arrays[0][index], arrays[1][index], rtol=3e-5, atol=3e-5)


def test_programs_that_are_not_there_do_nothing():
    """Five programs of 8 elements, of which four become one, and the fifth another one."""
    x, o, rows, columns = _arguments()
    kernel[(5,)](x, o, rows, columns, KIND="flat", B=8)
    np.testing.assert_array_equal(o[:, :40], x[:, :40] + np.arange(40, dtype=np.float32))
    assert not o[:, 40:].any()

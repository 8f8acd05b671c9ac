"""Along which axis programs are split: that for which a block multiplies and loads least."""

from __future__ import annotations

import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import UsageError
from deuteron.frontend import lower_function
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.passes import run_passes
from deuteron.passes.gpu.clusters.cta_split import CTASplit
from deuteron.passes.tile import tile_passes


def split(kernel, num_ctas=2, **constants):
    """The function, and how it is split."""
    signature = {name: "*fp32" for name in kernel.arg_names if name not in constants}
    module = lower_function(kernel, signature | dict.fromkeys(constants, "constexpr"), constants, {})
    run_passes(module, tile_passes())
    (func,) = module.body.block.ops
    return func, CTASplit(func, num_ctas)


@deuteron.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + ks[None, :])
    y = tl.load(b + ks[:, None] * N + columns[None, :])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(x, y))


@deuteron.jit
def chain(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SQUARE: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + ks[None, :])
    y = tl.load(b + ks[:, None] * N + columns[None, :])
    z = tl.dot(x, y)
    if SQUARE:
        tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(z, z))
    else:
        tl.store(c + rows[:, None] * K + ks[None, :], tl.dot(z, y.T))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((128, 64, 32), 0), ((64, 128, 32), 1), ((64, 64, 32), 0), ((64, 64, 256), 0)],
)
def test_the_longer_axis_of_a_product(shape, axis):
    m, n, k = shape
    func, found = split(product, M=m, N=n, K=k)
    assert list(found.effects.values()) == [axis]
    a, b = (op.result for op in func.walk() if isinstance(op, LoadOp))
    assert (found.splits(a), found.splits(b)) == (([0], []) if axis == 0 else ([], [1]))


def test_a_product_of_a_product_is_split_along_its_rows():
    """Along the columns every block would multiply all of the first."""
    func, found = split(chain, M=64, N=128, K=256, SQUARE=False)
    assert list(found.effects.values()) == [0]
    assert [found.splits(op.result) for op in func.walk() if isinstance(op, DotOp)] == [[0], [0]]


def test_what_is_needed_whole_and_in_parts():
    func, found = split(chain, M=64, N=64, K=32, SQUARE=True)
    first, second = (op.result for op in func.walk() if isinstance(op, DotOp))
    assert found.is_whole(first) and found.splits(first) == [0]
    assert not found.is_whole(second) and found.splits(second) == [0]
    a, b = (op.result for op in func.walk() if isinstance(op, LoadOp))
    assert found.is_whole(a) and found.splits(a) == [0]
    assert found.is_whole(b) and found.splits(b) == []


@deuteron.jit
def rows_of(x, out, CASE: tl.constexpr):
    i, j = tl.arange(0, 4), tl.arange(0, 64)
    tile = tl.load(x + i[:, None] * 64 + j[None, :])
    if CASE == "tile":
        tl.store(out + i[:, None] * 64 + j[None, :], tile)
    if CASE == "sums":
        tl.store(out + i, tl.sum(tile, 1))
    if CASE == "one":
        tl.store(out, tl.sum(tile))


@pytest.mark.parametrize(
    ("case", "num_ctas", "axis"), [("tile", 2, 0), ("tile", 8, 1), ("sums", 4, 0), ("sums", 8, None), ("one", 2, None)]
)
def test_an_axis_that_is_too_short_is_not_split(case, num_ctas, axis):
    _, found = split(rows_of, num_ctas, CASE=case)
    assert list(found.effects.values()) == [axis]


@deuteron.jit
def stored_and_loaded(x, out, KIND: tl.constexpr):
    i, j = tl.arange(0, 256), tl.arange(0, 64)
    tl.store(x + i, i.to(tl.float32))
    if KIND == "same":
        tl.store(out + i, tl.load(x + i))
    elif KIND == "reversed":
        tl.store(out + i, tl.load(x + 255 - i))
    elif KIND == "stored again":
        tl.store(x + 255 - i, i.to(tl.float32))
    elif KIND == "a part stored again":
        tl.store(x + j, j.to(tl.float32))
    elif KIND == "elsewhere":
        tl.store(x + 256 + j, j.to(tl.float32))


@pytest.mark.parametrize("kind", ["same", "elsewhere"])
def test_ctas_that_access_what_is_theirs(kind):
    split(stored_and_loaded, KIND=kind)


@pytest.mark.parametrize("kind", ["reversed", "stored again", "a part stored again"])
def test_ctas_that_would_have_to_wait_for_each_other(kind):
    with pytest.raises(UsageError, match="its CTAs do not wait for it"):
        split(stored_and_loaded, KIND=kind)


@deuteron.jit
def rows_in_place(x, stride, n):
    for row in range(n):
        i = row * stride + tl.arange(0, 256)
        tl.store(x + i, tl.load(x + i) * 2)


def test_rows_in_place_are_split():
    signature = {"x": "*fp32", "stride": "i32", "n": "i32"}
    module = lower_function(rows_in_place, signature, {}, {})
    run_passes(module, tile_passes())
    (func,) = module.body.block.ops
    assert list(CTASplit(func, 2).effects.values()) == [0]

"""Words of packed elements that a dot reads are loaded once, where pointers and masks say that they repeat."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.frontend import lower_function
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import shape_of
from deuteron.passes import run_passes
from deuteron.passes.gpu.operands.load_once import LoadOnce
from deuteron.passes.tile import tile_passes


@deuteron.jit
def packed(a, w, out, N, K, CASE: tl.constexpr):
    rows, columns, ks = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 64)
    acc = tl.zeros((16, 32), tl.float32)
    w_ptrs = w + (ks // 8)[:, None] * N + columns[None, :]
    for k in range(0, K, 64):
        if CASE == "mask":
            words = tl.load(w_ptrs, mask=(ks + k < K)[:, None] & (columns < N)[None, :], other=0)
        elif CASE == "volatile":
            words = tl.load(w_ptrs, volatile=True)
        elif CASE == "columns":
            words = tl.load(w + (k + ks)[:, None] * N + columns[None, :] // 4)
        elif CASE == "rows":
            words = tl.load(w + (k + columns)[None, :] * N + ks[:, None] // 8)
        elif CASE == "transposed":
            words = tl.trans(tl.load(w + columns[:, None] * N + (k + ks)[None, :] // 8))
        else:
            words = tl.load(w_ptrs, mask=(columns < N)[None, :], other=0)
        b = (words >> (ks % 8 * 4)[:, None]) & 15
        if CASE == "no dot":
            tl.store(out + ks[:, None] * 32 + columns[None, :], b.to(tl.float32))
        else:
            acc = tl.dot(tl.load(a + rows[:, None] * K + k + ks[None, :]), b.to(tl.float16), acc)
        w_ptrs += 8 * N
    tl.store(out + rows[:, None] * 32 + columns[None, :], acc)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("carried", (8, 32)),
        ("columns", (64, 8)),
        ("transposed", (32, 8)),
        ("mask", (64, 32)),
        ("volatile", (64, 32)),
        ("no dot", (64, 32)),
    ],
)
def test_shapes_of_loads(case, expected):
    signature = {"a": "*fp16", "w": "*i32", "out": "*fp32", "N": "i32", "K": "i32", "CASE": "constexpr"}
    module = lower_function(packed, signature, {"CASE": case}, {})
    run_passes(module, [*tile_passes(), LoadOnce()])
    module.verify()
    loads = [shape_of(op.result.type) for op in module.walk() if isinstance(op, LoadOp)]
    assert expected in loads
    assert (64, 32) not in loads or expected == (64, 32)


@deuteron.jit
def turned(w, out):
    """Rows by numbers that are reshaped, needed along the columns as well: of a reshape not every n-th is known."""
    i = tl.arange(0, 64)
    number = tl.max_constancy(tl.reshape(tl.arange(0, 8)[:, None] * 3 + tl.zeros((8, 8), tl.int32), (64,)), 8)
    along = tl.broadcast_to(number[None, :], (64, 64))
    tile = tl.load(w + along + tl.trans(along) * 64)
    tl.store(out + i[:, None] * 64 + i[None, :], tl.dot(tile, tile))


def test_what_is_needed_along_both_dimensions():
    module = lower_function(turned, {"w": "*fp16", "out": "*fp32"}, {})
    run_passes(module, [*tile_passes(), LoadOnce()])
    assert [shape_of(op.result.type) for op in module.walk() if isinstance(op, LoadOp)] == [(64, 64)]


def test_words_along_k_are_neighbours():
    """Of weights as `[columns, K // 8]`: `range(0, 8) * 8 // 8` would not be known to count up."""
    signature = {"a": "*fp16", "w": "*i32", "out": "*fp32", "N": "i32", "K": "i32", "CASE": "constexpr"}
    module = lower_function(packed, signature, {"CASE": "rows"}, {})
    run_passes(module, [*tile_passes(), LoadOnce()])
    load = next(op for op in module.walk() if isinstance(op, LoadOp) and shape_of(op.result.type) == (8, 32))
    assert AxisInfoAnalysis(module.body.block.first_op).of(load.ptr).contiguity == (8, 1)

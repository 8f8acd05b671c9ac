"""Sums that a loop adds up are reduced after it: each iteration adds what a thread holds to its part."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate
from xdsl.dialects import scf

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.layout.linear import LANE, WARP
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu.layouts.assign_layouts import AssignLayouts
from deuteron.passes.gpu.layouts.reduce_late import ReduceLate
from deuteron.passes.tile import tile_passes


@deuteron.jit
def sums(x, columns, rows, total, n, CASE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    j = tl.arange(0, N)
    of_columns, of_rows, of_all = (
        tl.full([N], 1, x.dtype.element_ty),
        tl.zeros([M], x.dtype.element_ty),
        tl.full([], 2, x.dtype.element_ty),
    )
    for start in range(0, n, M):
        i = start + tl.arange(0, M)
        tile = tl.load(x + i[:, None] * N + j[None, :], mask=i[:, None] < n, other=0)
        if CASE == "scaled":
            of_columns = of_columns * 2 + tl.sum(tile, 0)
        elif CASE == "read":
            of_columns += tl.sum(tile, 0)
            tl.store(columns + start // M * N + j, of_columns)
        elif CASE == "largest":
            of_columns = tl.maximum(of_columns, tl.max(tile, 0))
        else:
            of_columns += tl.sum(tile, 0)
            of_rows += tl.sum(tile * tile, 1)
            of_all += tl.sum(tile)
    tl.store(columns + j, of_columns)
    tl.store(rows + tl.arange(0, M), of_rows)
    tl.store(total, of_all)


@pytest.mark.parametrize(("m", "n", "num_warps"), [(16, 64, 4), (64, 16, 4), (128, 2, 8), (32, 8, 1)])
def test_sums_of_columns_rows_and_all(m, n, num_warps):
    """Vectors along rows; registers, lanes and warps along columns; the loop does not begin at zero."""
    x = aligned(np.random.default_rng(1).integers(-100, 100, (3 * m - 5, n)).astype(np.int32))
    columns, rows, total = (aligned(np.zeros(size, np.int32)) for size in (n, m, 1))
    emulate(sums, x, columns, rows, total, len(x), CASE="added", M=m, N=n, num_warps=num_warps)
    padded = np.zeros((3 * m, n), np.int32)
    padded[: len(x)] = x
    np.testing.assert_array_equal(columns, 1 + padded.sum(0))
    np.testing.assert_array_equal(rows, (padded**2).reshape(3, m, n).sum((0, 2)))
    assert total == 2 + padded.sum()


@pytest.mark.parametrize(
    ("case", "type", "exchanged"),
    [
        *[("added", "i32", 0), ("scaled", "i32", 1), ("read", "i32", 1), ("largest", "i32", 1)],
        *[("added", "fp32", 0), ("added", "fp16", 3)],  # parts of fp16 may grow beyond its largest number
    ],
)
def test_what_is_only_added_is_not_exchanged_in_the_loop(case, type, exchanged):
    signature = dict.fromkeys(("x", "columns", "rows", "total"), f"*{type}") | {"n": "i32"}
    constants = {"CASE": case, "M": 16, "N": 64}
    module = lower_function(sums, signature | dict.fromkeys(constants, "constexpr"), constants, {})
    config = GPUConfig(architecture(90).machine, num_warps=4)
    run_passes(module, [*tile_passes(), AssignLayouts(config), ReduceLate()])
    module.verify()
    reductions = [op for loop in nested_ops(module, scf.ForOp) for op in nested_ops(loop, ReduceOp)]
    layouts = [(layout_of(op.srcs[0].type), op.axis.value.data) for op in reductions]
    crossing = [any(basis[axis] for name in (LANE, WARP) for basis in one.of(name)) for one, axis in layouts]
    assert sum(crossing) == exchanged

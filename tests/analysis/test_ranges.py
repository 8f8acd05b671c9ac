"""In which grids a number is certainly not negative, since nothing on the way to it overflows."""

from __future__ import annotations

import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.axis.ranges import MOST_PROGRAMS, most_programs
from deuteron.frontend import lower_function
from deuteron.ir.tt.memory import StoreOp
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes

ANY = MOST_PROGRAMS


@triton.jit
def of_ids(out_ptr, n, CASE: tl.constexpr):
    i = tl.arange(0, 128)
    x = tl.program_id(0)
    if CASE == "id":
        tl.store(out_ptr + i, x + i * 0)
    if CASE == "block":
        tl.store(out_ptr + i, x * 128 + i)
    if CASE == "second axis":
        tl.store(out_ptr + i, tl.program_id(1) * 128 + i)
    if CASE == "wide":
        tl.store(out_ptr + i, x.to(tl.int64) * 4096 + i)
    if CASE == "large":
        tl.store(out_ptr + i, x * 1000000 + i)
    if CASE == "below":
        tl.store(out_ptr + i, x * 128 + i - 1)
    if CASE == "remainder":
        tl.store(out_ptr + i, x % 64 * 1000000 + i)
    if CASE == "remainder by a large number":
        tl.store(out_ptr + i, (x.to(tl.uint32) % 0xFFFFFFFB).to(tl.int32) * 1000000 + i)
    if CASE == "remainder, or all":
        tl.store(out_ptr + i, x % tl.minimum(tl.program_id(1), 3) * 1000000 + i)
    if CASE == "negative quotient":
        tl.store(out_ptr + i, x // -2 + i)
    if CASE == "argument":
        tl.store(out_ptr + i, tl.maximum(n, 0) + i)


@triton.jit
def of_loops(out_ptr, n, CASE: tl.constexpr):
    i = tl.arange(0, 128)
    if CASE == "blocks":
        for k in range(0, n, 128):
            tl.store(out_ptr + i, k + i)
    if CASE == "odd blocks":
        for k in range(0, n, 96):
            tl.store(out_ptr + i, k + i)
    if CASE == "number of blocks":
        for k in range(tl.cdiv(n, 128)):
            tl.store(out_ptr + i, k * 128 + i)
    if CASE == "number":
        for k in range(n):
            tl.store(out_ptr + i, k * 128 + i)
    if CASE == "from below":
        for k in range(-128, n, 128):
            tl.store(out_ptr + i, k + i)
    if CASE == "carried":
        at = i
        for _ in range(0, n, 128):
            tl.store(out_ptr + i, at)
            at += 128
    if CASE == "carried too far":
        at = i
        for _ in range(n):
            tl.store(out_ptr + i, at)
            at += 128


@pytest.mark.parametrize(
    ("kernel", "case", "expected"),
    [
        (of_ids, "id", ANY),
        (of_ids, "block", 2**24),
        (of_ids, "second axis", ANY),
        (of_ids, "wide", ANY),
        (of_ids, "large", None),
        (of_ids, "below", None),
        (of_ids, "remainder", ANY),
        (of_ids, "remainder by a large number", None),  # it was taken for one by 5
        (of_ids, "remainder, or all", None),  # x % 0 is x
        (of_ids, "negative quotient", None),
        (of_ids, "argument", None),
        (of_loops, "blocks", ANY),
        (of_loops, "odd blocks", None),
        (of_loops, "number of blocks", ANY),
        (of_loops, "number", None),
        (of_loops, "from below", None),
        (of_loops, "carried", ANY),
        (of_loops, "carried too far", None),
    ],
)
def test_grids_in_which_a_number_is_not_negative(kernel, case, expected):
    module = lower_function(kernel, {"out_ptr": "*i64", "n": "i32", "CASE": "constexpr"}, {"CASE": case}, {})
    run_passes(module, tile_passes())
    (store,) = (op for op in module.walk() if isinstance(op, StoreOp))
    assert most_programs(store.value) == expected


@triton.jit
def by_any_step(out_ptr, n, step):
    i, last = tl.arange(0, 128), 3
    for k in range(n, 100, step):
        tl.store(out_ptr + i, k + i + 128 * last)
        last = k


@triton.jit
def adds_by_any_step(out_ptr, n, step):
    i, count = tl.arange(0, 128), 3
    for k in range(n, 100, step):
        tl.store(out_ptr + i, k + i)
        count += 1
    tl.store(out_ptr + 128, count)


@pytest.mark.parametrize("kernel", [by_any_step, adds_by_any_step])
def test_an_index_of_an_unknown_step_is_not_what_the_loop_carries(kernel):
    """What its loop carries last was taken for the beginning, or asked for and not there."""
    module = lower_function(kernel, {"out_ptr": "*i32", "n": "i32", "step": "i32"}, {})
    run_passes(module, tile_passes())
    store = next(op for op in module.walk() if isinstance(op, StoreOp))
    assert most_programs(store.value) is None

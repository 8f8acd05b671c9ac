"""Which stores a load of the next iteration may come before: compared with the addresses themselves."""

import pytest
from xdsl.dialects import scf

import deuteron
import deuteron.language as tl
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.next_iteration import Meeting, meets_next
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes


@deuteron.jit
def moves(p, n, stride, STEP: tl.constexpr, AHEAD: tl.constexpr, FACTOR: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, 16)
    q = p
    for k in tl.range(0, n, STEP, loop_unroll_factor=1):
        at = p + k + FACTOR * i
        if CASE == "carried":
            at = q + FACTOR * i
        if CASE == "row":
            at = p + k * stride + FACTOR * i
        if CASE == "loaded":
            at = p + tl.load(p + n + k).to(tl.int32) + FACTOR * i
        x = tl.load(at)
        tl.store(at + AHEAD, x + 1)
        q += STEP


def apart(step, ahead, factor, case):
    types = {"p": "*fp32", "n": "i32", "stride": "i32"}
    constants = {"STEP": step, "AHEAD": ahead, "FACTOR": factor, "CASE": case}
    module = lower_function(moves, types | dict.fromkeys(constants, "constexpr"), constants, {})
    run_passes(module, tile_passes())
    (loop,), (store,) = nested_ops(module, scf.ForOp), nested_ops(module, StoreOp)
    load = nested_ops(module, LoadOp)[-1]
    return meets_next(store, load, loop, TilePolynomials()).meets is False


@pytest.mark.parametrize("step", [8, 15, 16, 17, 64])
@pytest.mark.parametrize("ahead", [-20, 0, 1, 40, 48, 64])
@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("case", ["plain", "carried"])
def test_ranges_of_addresses(step, ahead, factor, case):
    """Strided tiles count as the ranges that they are in."""
    stored, loaded = (range(begin, begin + 15 * factor + 1) for begin in (ahead, step))
    assert apart(step, ahead, factor, case) == (not set(stored) & set(loaded))


@pytest.mark.parametrize("case", ["row", "loaded"])
def test_what_is_not_known(case):
    assert not apart(64, 0, 1, case)


@deuteron.jit
def recurrence(p, q, n, stride, LAG: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, 16)
    for t in tl.range(n, loop_unroll_factor=1):
        columns = i if CASE != "scaled" else i * stride
        x = tl.load(p + (t - LAG) * stride + columns)
        tl.store(q + t * stride + columns, x + 1)


@pytest.mark.parametrize(("lag", "case", "meets"), [(0, "", None), (1, "", True), (2, "", None), (1, "scaled", None)])
def test_one_array_as_two_arguments(lag, case, meets):
    """Rows are of a length that is not known; of other strides within a tile nothing is."""
    types = {"p": "*fp32", "q": "*fp32", "n": "i32", "stride": "i32", "LAG": "constexpr", "CASE": "constexpr"}
    module = lower_function(recurrence, types, {"LAG": lag, "CASE": case}, {})
    run_passes(module, tile_passes())
    (loop,), (store,), (load,) = (nested_ops(module, kind) for kind in (scf.ForOp, StoreOp, LoadOp))
    assert meets_next(store, load, loop, TilePolynomials()) == Meeting(meets)


@deuteron.jit
def stored_first(p, n, size, AHEAD: tl.constexpr, WRAPS: tl.constexpr):
    i = tl.arange(0, 16)
    for k in tl.range(0, n, 16, loop_unroll_factor=1):
        at = p + ((k + i) % size if WRAPS else k + i)
        tl.store(at + AHEAD, k + i)
        tl.store(p + n, tl.sum(tl.load(at)))


@pytest.mark.parametrize(("ahead", "wraps", "meets"), [(0, False, True), (16, False, False), (0, True, None)])
def test_what_the_same_iteration_stores(ahead, wraps, meets):
    types = {"p": "*i32", "n": "i32", "size": "i32", "AHEAD": "constexpr", "WRAPS": "constexpr"}
    module = lower_function(stored_first, types, {"AHEAD": ahead, "WRAPS": wraps}, {})
    run_passes(module, tile_passes())
    (loop,), (load,) = (nested_ops(module, kind) for kind in (scf.ForOp, LoadOp))
    assert meets_next(nested_ops(module, StoreOp)[0], load, loop, TilePolynomials(), iterations=0) == Meeting(meets)


@deuteron.jit
def rows_in_place(p, q, n, stride, other, AHEAD: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, 16)
    for begin in tl.range(0, n, 16, loop_unroll_factor=1):
        x = tl.load(p + row * stride + begin + i)
        tl.store(q + row * other + begin + AHEAD + i, x + 1)


@pytest.mark.parametrize(("ahead", "meets"), [(0, False), (16, None), (-16, False)])
def test_strides_that_may_be_equal(ahead, meets):
    """That they would meet says nothing of other strides."""
    types = {"p": "*fp32", "q": "*fp32", "n": "i32", "stride": "i32", "other": "i32", "AHEAD": "constexpr"}
    module = lower_function(rows_in_place, types, {"AHEAD": ahead}, {})
    run_passes(module, tile_passes())
    (loop,), (store,), (load,) = (nested_ops(module, kind) for kind in (scf.ForOp, StoreOp, LoadOp))
    found = meets_next(store, load, loop, TilePolynomials())
    assert found.meets is meets
    assert {frozenset(arg.index for arg in pair) for pair in found.equal} == (
        {frozenset((3, 4))} if meets is False else set()
    )

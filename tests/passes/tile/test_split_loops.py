"""Loops that are split where a mask of their scores holds for whole tiles: which, into how many, with equal results."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects import scf

import deuteron
import deuteron.language as tl
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.ir.arith import SelectOp
from deuteron.passes import run_passes
from deuteron.passes.by_name import without
from deuteron.passes.tile import tile_passes


@deuteron.jit
def kernel(q_ptr, k_ptr, out_ptr, begin, end, n, step, CASE: tl.constexpr):
    """Scores of 32 rows of q with keys, 16 at a time, masked in ways that CASE says, summed up with the keys."""
    first = tl.program_id(0) * 32
    rows, columns, dims = first + tl.arange(0, 32), tl.arange(0, 16), tl.arange(0, 16)
    q = tl.load(q_ptr + rows[:, None] * 16 + dims[None, :])
    acc = tl.zeros((32, 16), tl.float32)
    if CASE == "causal":
        end = first + 32
        begin = 0
    if CASE == "without end":
        begin = 0
    if CASE == "went on":
        end = tl.minimum(first, n) // 16 * 16
        for start in range(0, end, 16):
            acc = tl.dot(tl.dot(q, q.T).to(tl.float16), q, acc) + start
        begin, end = end, n
    if CASE == "around a number":
        begin, end = step - 64, step + 32
    if CASE == "later than a number":
        begin, end = step, tl.minimum(step + 100, n)
    last = 0
    if CASE == "up to where a loop ended":
        for _ in range(0, tl.maximum(n, 0) * 64, 64):
            last += 3
    stride = step if CASE == "runtime step" else 16
    at = begin.to(tl.int64) if CASE == "wide" else begin
    for start in range(at, end, stride):
        keys = start + columns
        inside = keys < n
        k = tl.load(k_ptr + keys[:, None] * 16 + dims[None, :], (inside & (keys >= 0))[:, None], 0.0)
        scores = tl.dot(q, k.T)
        if CASE == "causal" or CASE == "anywhere" or CASE == "went on" or CASE == "runtime step" or CASE == "wide":
            seen = rows[:, None] >= keys[None, :]
        elif CASE == "window":
            seen = (rows[:, None] >= keys[None, :]) & (rows[:, None] - keys[None, :] < 40)
        elif CASE == "without end":
            seen = keys[None, :] - rows[:, None] < 2147483647
        elif CASE == "any window":
            seen = (rows[:, None] >= keys[None, :]) & (rows[:, None] - keys[None, :] < step)
        elif CASE == "beyond 32 bits":
            seen = keys[None, :] < step.to(tl.int64) * 64
        elif CASE == "tail":
            seen = inside[None, :]
        elif CASE == "up to the end":
            seen = keys[None, :] < end
        elif CASE == "before the end":
            seen = keys[None, :] < end - 5
        elif CASE == "later":
            seen = rows[:, None] <= keys[None, :]
        elif CASE == "up to a sum":
            seen = keys[None, :] <= rows[:, None] + step - 16
        elif CASE == "from a sum":
            seen = keys[None, :] * 1 >= rows[:, None] + (step + 3)
        elif CASE == "up to where a loop ended":
            seen = keys[None, :] < last
        elif CASE == "around sums":
            seen = (keys[None, :] + step > rows[:, None]) & (rows[:, None] + step > keys[None, :])
        elif CASE == "around a number":
            seen = (rows[:, None] + step >= keys[None, :]) & (rows[:, None] + step - keys[None, :] < 40)
        elif CASE == "later than a number":
            seen = keys[None, :] >= step + 64 - tl.arange(0, 32)[:, None]
        elif CASE == "scaled":
            seen = rows[:, None] >= 2 * keys[None, :]
        elif CASE == "either":
            seen = (rows[:, None] >= keys[None, :]) | (keys[None, :] == 3)
        elif CASE == "far apart":
            seen = tl.program_id(0) * 4194304 + rows[:, None] >= keys[None, :]
        elif CASE == "rows":
            seen = (rows[:, None] >= keys[None, :]) & (rows < n)[:, None]
        else:
            seen = (rows[:, None] + keys[None, :]) % 3 != 0
        scores = tl.where(seen, scores, -7.0)
        acc = tl.dot(scores.to(tl.float16), k, acc)
        acc += start
    tl.store(out_ptr + rows[:, None] * 16 + dims[None, :], acc)


def modules(case):
    names = kernel.arg_names[:-1]
    types = {"q_ptr": "*fp16", "k_ptr": "*fp16", "out_ptr": "*fp32"}
    signature = {name: types.get(name, "i32") for name in names} | {"CASE": "constexpr"}
    before = lower_function(kernel, signature, {"CASE": case}, {})
    after = before.clone()
    run_passes(before, without(tile_passes(), ["split-loops"]))
    run_passes(after, tile_passes())
    return before, after


def loops(module) -> list[int]:
    """How many scores are masked in each loop."""
    found = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    return [sum(isinstance(op, SelectOp) and "tensor" in str(op.result.type) for op in loop.walk()) for loop in found]


SPLIT = {
    "causal": [0, 1],
    "anywhere": [0, 1],
    "later": [1, 0],
    "tail": [0, 1],
    "up to the end": [0, 1],
    "before the end": [0, 1],
    "window": [1, 0, 1],
    "any window": [1, 0, 1],
    "without end": [0, 1],
    "up to a sum": [0, 1],
    "from a sum": [1, 0],
    "around sums": [1, 0, 1],
    "up to where a loop ended": [0, 0, 1],
    "around a number": [1, 0, 1],
    "later than a number": [1, 0],
}
LEFT = ["beyond 32 bits", "went on", "runtime step", "wide", "scaled", "either", "far apart", "rows", "other"]


@pytest.mark.parametrize("case", SPLIT)
def test_what_is_split(case):
    before, after = modules(case)
    assert (sum(loops(before)), loops(after)) == (1, SPLIT[case])


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_alone(case):
    before, after = modules(case)
    assert loops(before) == loops(after)


MOST = {"causal": 2, "up to the end": 1, "before the end": 2, **dict.fromkeys(("tail", "later", "any window"))}


@pytest.mark.parametrize("case", MOST)
def test_how_many_iterations_the_last_loop_has_at_most(case):
    last = [op for op in modules(case)[1].walk() if isinstance(op, scf.ForOp)][-1]
    assert TilePolynomials().most_iterations(last) == MOST[case]


@pytest.mark.parametrize("case", ["up to the end", "before the end", "tail", "anywhere", "window"])
@pytest.mark.parametrize("end", [2**31 - 1, 2**31 - 6, 2**31 - 7, 2**31 - 16, 2**31 - 17, 2**31 - 40])
def test_ends_near_the_largest_number(case, end):
    """An iteration or two after the middle are beyond it."""
    check_same_bits(case, 2**31 - 70, end, 100, 0)


@pytest.mark.parametrize("case", SPLIT)
@settings(max_examples=8, deadline=None)
@example(0, 64, 100, 2**31 - 1)
@example(0, 64, 100, -(2**31))
@example(0, 64, 2**25 + 1, 0)  # times 64 below 0: a loop to there has no iteration
@example(0, 64, 2**26 + 3, 0)  # times 64 192: it has three
@given(
    st.integers(-40, 70),
    st.integers(-60, 110),
    st.integers(-20, 120),
    st.sampled_from([2**31 - 1, 2**31 - 30, -(2**31), -(2**31) + 20, 0, 16, 50]),
)
def test_the_same_bits(case, begin, end, n, step):
    check_same_bits(case, begin, end, n, step)


def check_same_bits(case, begin, end, n, step):
    """Split and as they are."""
    generator = np.random.default_rng(begin + 40)
    q, k = (aligned(generator.standard_normal((160, 16)).astype(np.float16)) for _ in range(2))
    results = []
    for module in COMPILED.setdefault(case, modules(case)):
        out = aligned(np.full((64, 16), np.nan, np.float32))
        run_module(module, [q, k, out, begin, end, n, step], grid=(2, 1, 1))
        results.append(out)
    assert np.array_equal(*results) and not np.isnan(results[0]).any()


COMPILED: dict = {}

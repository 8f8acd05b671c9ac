"""Stores whose addresses are of quotients and remainders, beside all the addresses that they have."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import scf

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.differences import Differences
from deuteron.analysis.aliasing.overlap import Overlap
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import function_of
from deuteron.ir.tt.memory import StoreOp
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes

FIRST = -3  # of what is added to an index, so that some are negative


@deuteron.jit
def stores(
    p,
    PARTS: tl.constexpr,
    FACTORS: tl.constexpr,
    ROWS: tl.constexpr,
    LIMIT: tl.constexpr,
    BELOW: tl.constexpr,
    FIRST: tl.constexpr,
    AHEAD: tl.constexpr,
    OTHER: tl.constexpr,
    MASKED: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    R: tl.constexpr,
):
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None] + FIRST
    if WIDE:
        x = x.to(tl.int64)
    low, middle, high = x % PARTS[0], x // PARTS[0] % PARTS[1], x // PARTS[0] // PARTS[1]
    for k in tl.range(0, ROWS, R, loop_unroll_factor=1):
        r = k + tl.arange(0, R)[None, :]
        at = p + FACTORS[0] * low + FACTORS[1] * middle + FACTORS[2] * high + FACTORS[3] * r
        mask = (r < LIMIT) & (low < BELOW)
        tl.store(at, 1.0, mask)
        tl.store(at + AHEAD + OTHER * r, 2.0, mask if MASKED else None)


def found_in(constants):
    """Of the first store with itself, then with the second one, in the same and in different iterations."""
    types = {"p": "*fp32"} | dict.fromkeys(constants, "constexpr")
    module = lower_function(stores, types, constants, {})
    run_passes(module, tile_passes())
    loops, (first, second) = nested_ops(module, scf.ForOp), nested_ops(module, StoreOp)
    known = Differences(function_of(first))
    return {
        (is_second, is_past): known.overlap(first, second if is_second else first, loops if is_past else ())
        for is_second in (False, True)
        for is_past in (False, True)
    }


def _rounded_to_zero(x, divisor):
    return np.trunc(x / divisor).astype(np.int64) if divisor else x * 0


def _addresses(constants, program, k, is_second):
    """By place, of what a mask lets through."""
    (first, second), factors = constants["PARTS"], constants["FACTORS"]
    x = program * constants["BLOCK"] + np.arange(constants["BLOCK"])[:, None] + constants["FIRST"]
    r = k + np.arange(constants["R"])[None, :]
    by_first = _rounded_to_zero(x, first)
    by_second = _rounded_to_zero(by_first, second)
    low, middle = x - first * by_first, by_first - second * by_second
    at = factors[0] * low + factors[1] * middle + factors[2] * by_second + factors[3] * r
    mask = (r < constants["LIMIT"]) & (low < constants["BELOW"])
    if is_second:
        at, mask = at + constants["AHEAD"] + constants["OTHER"] * r, mask | (not constants["MASKED"])
    return {place: int(at[place]) for place in map(tuple, np.argwhere(mask & (at == at)).tolist())}


def _truth(constants, is_second, is_past):
    """The worst of what any two iterations of a program have in common."""
    ks = range(0, constants["ROWS"], constants["R"])
    worst = Overlap.APART
    for program in range(4):
        tiles = {k: _addresses(constants, program, k, False) for k in ks}
        others = {k: _addresses(constants, program, k, is_second) for k in ks}
        for k, later in ((k, later) for k in ks for later in ks if is_past or k == later):
            places = {}
            for place, at in others[later].items():
                places.setdefault(at, set()).add(place)
            for place, at in tiles[k].items():
                if at in places:
                    worst = Overlap.SAME if worst is not Overlap.MAY and places[at] == {place} else Overlap.MAY
    return worst


_ORDER = [Overlap.APART, Overlap.SAME, Overlap.MAY]


@st.composite
def _cases(draw):
    block, r = draw(st.sampled_from([4, 16])), draw(st.sampled_from([2, 4]))
    parts = draw(st.tuples(st.sampled_from([1, 2, 3, 5, 8, 16, 24]), st.sampled_from([1, 2, 3, 4, 8])))
    rows = draw(st.sampled_from([r, 3 * r, 3 * r - 1]))
    digits = [1, parts[0], parts[0] * parts[1], parts[0] * rows]
    digit = st.sampled_from([*digits, parts[0] * parts[1] * rows, parts[0] + 2, 1, 0, -1, 7])
    natural = (1, parts[0] * rows, parts[0] * parts[1] * rows, parts[0])
    return {
        "PARTS": parts,
        "FACTORS": draw(st.one_of(st.just(natural), st.tuples(digit, digit, digit, digit))),
        "ROWS": rows,
        "LIMIT": draw(st.sampled_from([rows, rows - 1, 1000])),
        "BELOW": draw(st.sampled_from([parts[0], 2, 1000])),
        "FIRST": draw(st.sampled_from([0, 0, 5, FIRST])),
        "AHEAD": draw(st.sampled_from([0, 1, parts[0], 3, -parts[0] * rows])),
        "OTHER": draw(st.sampled_from([0, 0, 1, parts[0]])),
        "MASKED": draw(st.booleans()),
        "WIDE": draw(st.booleans()),
        "BLOCK": block,
        "R": r,
    }


@settings(max_examples=120, deadline=None)
@given(_cases())
def test_beside_all_addresses(constants):
    for pair, found in found_in(constants).items():
        assert _ORDER.index(found) >= _ORDER.index(_truth(constants, *pair)), (constants, pair, found)

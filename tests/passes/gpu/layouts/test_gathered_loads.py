"""Threads hold neighbours of single elements that are near each other, as they are stored."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def gathered(x, out, places, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    column, row = i % 36, i // 36
    if KIND == "clamped":
        at = tl.minimum(tl.maximum(column - 2, 0), 31) + 32 * row
    elif KIND == "odd rows":
        at = column + 37 * row
    elif KIND == "by fractions":
        at = (column.to(tl.float32) * 0.5).to(tl.int32) + 18 * row
    elif KIND == "every second":
        at = 2 * column + 72 * row
    elif KIND == "across":
        at = 100 * column + row
    elif KIND == "loaded":
        at = tl.load(places + i)
    if KIND == "stored apart":
        tl.store(out + 3 * i, tl.load(x + (i + 1) % 36))
    else:
        tl.store(out + i, tl.load(x + at) * 2)


X = np.arange(1 << 14, dtype=np.float32)
PLACES = np.arange(1 << 14, dtype=np.int32)[::-1].copy()


def _places(kind):
    i = np.arange(2048)
    column, row = i % 36, i // 36
    return {
        "clamped": np.clip(column - 2, 0, 31) + 32 * row,
        "odd rows": column + 37 * row,
        "by fractions": column // 2 + 18 * row,
        "every second": 2 * column + 72 * row,
        "across": 100 * column + row,
        "loaded": PLACES[i],
    }[kind]


@pytest.mark.parametrize(
    ("kind", "are_held"),
    [("clamped", True), ("odd rows", True), ("by fractions", True), ("every second", False), ("across", False)],
)
def test_what_threads_hold(kind, are_held):
    out = np.zeros(2048, np.float32)
    kernel = emulate(gathered, X, out, PLACES, KIND=kind, N=1024, grid=(2,))
    np.testing.assert_array_equal(out, 2 * X[_places(kind)])
    assert len(instructions_with(kernel, "st.global.v4.b32")) == (2 if are_held else 0)
    assert len(instructions_with(kernel, "ld.global")) == 8


@pytest.mark.parametrize("kind", ["stored apart", "loaded"])
def test_what_others_decide(kind):
    assert compile_for("cuda:90", gathered, X, X, PLACES, KIND=kind, N=1024)

"""Loads that wait for nothing come before those that other loads tell where to go; every other op stays where it is."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl


@deuteron.jit
def turned(x, table, rows, more, out, CASE: tl.constexpr):
    i = tl.arange(0, 128)
    row = tl.load(rows + tl.program_id(0))
    if CASE == "twice":
        row = tl.load(rows + row)
    scale = tl.load(table + row * 128 + i)
    if CASE == "summed":
        scale += tl.sum(scale, 0)
    if CASE == "stored":
        tl.store(out + 1024 + i, scale)
    at = x + tl.program_id(0) * 128 + i
    value = tl.load(at, volatile=CASE == "volatile")
    if CASE == "both":
        value += tl.load(more + tl.load(rows + 1) * 128 + i)
    tl.store(out + tl.program_id(0) * 128 + i, value * scale)


def loads(text):
    """The arguments that are loaded from, in order."""
    lines = [line for line in text.splitlines() if " = tt.load " in line or "tt.addptr" in line or "tt.splat" in line]
    made_of, found = {}, []
    for line in lines:
        result, _, rest = line.strip().partition(" = ")
        operand = rest.split(" ", 1)[1].split(",")[0].split(" ")[0]
        made_of[result] = made_of.get(operand, operand)
        if "tt.load" in rest:
            found.append(made_of[operand].strip("%"))
    return found


@pytest.mark.parametrize(
    ("case", "order"),
    [
        ("plain", ["rows", "x", "table"]),
        ("twice", ["rows", "x", "rows", "table"]),
        ("summed", ["rows", "table", "x"]),
        ("stored", ["rows", "table", "x"]),
        ("volatile", ["rows", "table", "x"]),
        ("both", ["rows", "x", "rows", "table", "more"]),
    ],
)
def test_what_waits_for_less_comes_first(rng, case, order):
    x, table, more = (aligned(rng.standard_normal((4, 128), np.float32)) for _ in range(3))
    rows, out = aligned(rng.permutation(4).astype(np.int32)), aligned(np.zeros((12, 128), np.float32))
    assert loads(compile_for("cuda:90", turned, x, table, rows, more, out, CASE=case).asm["ttgir"]) == order
    emulate(turned, x, table, rows, more, out, CASE=case, grid=(4,))
    scale = table[rows[rows] if case == "twice" else rows]
    scale = scale + scale.sum(1, keepdims=True) if case == "summed" else scale
    value = x + more[rows[1]] if case == "both" else x
    np.testing.assert_allclose(out[:4], value * scale, rtol=1e-4, atol=1e-4)

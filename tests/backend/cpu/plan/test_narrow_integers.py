"""Integers that are widened, shifted and masked, and fit into what they were: the same numbers, by narrow vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest

import deuteron.language as tl

TYPES = (np.int8, np.uint8, np.int16, np.uint16)


def shifted(x, out, by, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(3):
        value = tl.load(x + k * BLOCK + i)
        if MODE == "known":
            part = (value >> (k % 2 * 4)) & 15
        elif MODE == "by lane":
            part = (value >> (i % 2 * 4)) & 15
        elif MODE == "far":
            part = (value >> (i % 20)) & 255
        elif MODE == "any":
            part = (value >> by) & 240
        else:
            part = (value.to(tl.int32) & 0x1FF) >> 1
        tl.store(out + k * BLOCK + i, part.to(tl.float32) - part.to(tl.int8).to(tl.float32))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("mode", ["known", "by lane", "far", "any", "wide mask"])
def test_numbers(compare, rng, mode, type):
    x = rng.integers(np.iinfo(type).min, np.iinfo(type).max + 1, 3 * 64).astype(type)
    for by in (0, 7, 8, 31, 40, -1) if mode == "any" else (0,):
        compare(shifted, [x, np.zeros(x.size, np.float32), by], {"MODE": mode, "BLOCK": 64}, tolerance=0)


@pytest.mark.parametrize(
    "mode, is_narrow, is_short",
    [("known", True, True), ("by lane", True, True), ("far", False, True), ("any", False, False)],
)
def test_code(lower_python, lower_module, mode, is_narrow, is_short):
    """No lane is widened to be shifted, and none is looked at for whether it is shifted too far, if it is known."""
    arguments = [np.zeros(192, np.uint8), np.zeros(192, np.float32), 3]
    text = lower_module(lower_python(shifted, arguments, {"MODE": mode, "BLOCK": 64}), "znver4").llir
    assert bool(re.search(r"lshr <\d+ x i8>", text)) is is_narrow
    assert ("select <" in text) is not is_short

"""Divisions of what is never negative have no signs, and all are what they were."""

import re

import numpy as np
import pytest
from backend.cuda.launching import emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

N = 256


@deuteron.jit
def divided(quotients, remainders, given, C: tl.constexpr, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = i
    if KIND == "wide":
        x = i.to(tl.int64) * 1000003
    elif KIND == "negative":
        x = i - 300
    elif KIND == "given":
        x = i + given
    elif KIND == "large":
        x = i + 2147480000
    elif KIND == "overflows":
        x = i * 8388608 + 8388607
    elif KIND == "quotient":
        x = i // 3 % 100
    elif KIND == "chosen":
        x = tl.where(i > 300, i, 0 - i)
    tl.store(quotients + i, x // C)
    tl.store(remainders + i, x % C)


def _divisions(kernel):
    text = generic_asm(kernel, "ttgir")
    return {name for name in ("divsi", "divui", "remsi", "remui") if f"arith.{name}" in text}


def _x(kind):
    i = np.arange(2 * N, dtype=np.int32)
    return {
        "": i,
        "wide": i.astype(np.int64) * 1000003,
        "negative": i - 300,
        "given": i - 7,
        "large": i + np.int32(2147480000),
        "overflows": i * np.int32(8388608) + np.int32(8388607),
        "quotient": i // 3 % 100,
        "chosen": np.where(i > 300, i, -i),
    }[kind]


@pytest.mark.parametrize("c", [1, 2, 7, 96, 128, 641, 65535, 2147483647, -3])
@pytest.mark.parametrize(
    ("kind", "is_natural"),
    [
        ("", True),
        ("wide", True),
        ("large", False),
        ("quotient", True),
        ("negative", False),
        ("given", False),
        ("overflows", False),
        ("chosen", False),
    ],
)
def test_quotients_and_remainders(kind, is_natural, c):
    dtype = np.int64 if kind == "wide" else np.int32
    found = [np.zeros(2 * N, dtype) for _ in range(2)]
    kernel = emulate(divided, *found, -7, C=c, KIND=kind, N=N, grid=(2,), num_warps=1)
    x = _x(kind).astype(np.int64)
    quotients = np.sign(x) * (np.abs(x) // abs(c)) * np.sign(c)
    np.testing.assert_array_equal(found[0], quotients)
    np.testing.assert_array_equal(found[1], x - c * quotients)
    names = _divisions(kernel) - ({"divui", "remui"} if kind == "quotient" else set())
    if c != 1:
        assert bool(names & {"divsi", "remsi"}) == (c < 0 or not is_natural)


@pytest.mark.parametrize("given", [0, 1, 3, 16, 641, 2**31 - 1, -1, -3, -16, -(2**31)])
@pytest.mark.parametrize("kind", ["", "negative", "wide"])
def test_by_what_is_given(kind, given):
    """A divisor that is not known may be negative, or 0: threads divide by its size, without a look at the dividend's
    sign, where that is not negative.
    """
    dtype = np.int64 if kind == "wide" else np.int32
    found = [np.zeros(2 * N, dtype) for _ in range(2)]
    kernel = emulate(by_an_argument, *found, given, KIND=kind, N=N, grid=(2,), num_warps=1)
    x = _x(kind).astype(np.int64)
    quotients = np.sign(x) * (np.abs(x) // max(abs(given), 1)) * np.sign(given)
    np.testing.assert_array_equal(found[0], quotients)
    np.testing.assert_array_equal(found[1], x - given * quotients)
    assert bool(re.search(r"\b(div|rem)\.s", kernel.asm["ptx"])) == (kind == "negative")


@deuteron.jit
def by_an_argument(quotients, remainders, given, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = i
    if KIND == "wide":
        x = i.to(tl.int64) * 1000003
    elif KIND == "negative":
        x = i - 300
    tl.store(quotients + i, x // given)
    tl.store(remainders + i, x % given)


def test_by_another_number_for_each_element():
    @deuteron.jit
    def kernel(out, given, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, i // tl.load(given + i))

    numbers = np.array([0, 1, 3, -7] * (N // 4), np.int32)
    out = np.zeros(N, np.int32)
    compiled = emulate(kernel, out, numbers, N=N, num_warps=1)
    assert "div.s32" in compiled.asm["ptx"]
    i = np.arange(N)
    np.testing.assert_array_equal(out, i // np.maximum(abs(numbers), 1) * np.sign(numbers))

"""Every function of libdevice with every type: special values, and numbers of all sizes.

The reference is the interpreter's, in NumPy and in decimals of many digits; in fp64 it may be off by an ulp itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from libdevice_bounds import ABSOLUTE, BOUNDS, BY_ORDER, FAST
from libdevice_kernels import SIZE, arguments, by_types, functions, result_dtype, write_kernel

from deuteron.interpreter.libdevice import compute

GROUPS = by_types()


@pytest.mark.parametrize("types", GROUPS, ids="-".join)
def test_functions(tmp_path, rng, poisoned, types):
    calls = GROUPS[types]
    inputs = arguments(rng, types)
    outputs = [poisoned(result_dtype(functions()[name], overload), SIZE) for name, overload in calls]
    write_kernel(tmp_path, calls)[(1,)](*inputs, *outputs, BLOCK=SIZE)
    wrong = []
    for (name, overload), got in zip(calls, outputs, strict=True):
        with np.errstate(all="ignore"):
            signed = [x.view(f"int{8 * x.itemsize}") if x.dtype.kind == "u" else x for x in inputs]
            expected = compute(overload.symbol, *signed)
        wrong += failures(name, got, expected, inputs)
    assert not wrong, "\n".join(wrong)


def test_an_inverse_root_beside_a_tie(tmp_path, poisoned):
    """The inverse roots of these numbers are near the middle of two neighbours, whatever power of 4 scales them."""
    ulp = 2.0**-23
    numbers = [1 - ulp, 1 - ulp / 2, 1 + ulp, 1 + 2 * ulp, 1.0, 0x113E07 / 2**21]
    x = (np.resize(numbers, SIZE) * 4.0 ** np.resize(np.arange(-9, 10), SIZE)).astype(np.float32)
    out = poisoned("float32", SIZE)
    calls = [(name, overload) for name, overload in GROUPS[("float32",)] if name == "rsqrt_rn"]
    write_kernel(tmp_path, calls)[(1,)](x, out, BLOCK=SIZE)
    for number, root in zip(x.tolist(), out.tolist(), strict=True):
        half = Fraction(ulp) / 4 * Fraction(2) ** math.frexp(root)[1]
        below, above = Fraction(root) - half, Fraction(root) + half
        assert below**2 * Fraction(number) <= 1 <= above**2 * Fraction(number), (number, root)


def test_a_power_of_two_from_which_a_half_is_not_taken_exactly(tmp_path, poisoned):
    """2**24 - 1/2 is no float: expm1 was off by 1.07 units near 17, where one is promised."""
    x = np.resize(np.float32([16.992046, 16.999895, 17.004131, 17.064766, -17.25, 18.5]), SIZE)
    out = poisoned("float32", SIZE)
    calls = [(name, overload) for name, overload in GROUPS[("float32",)] if name == "expm1"]
    write_kernel(tmp_path, calls)[(1,)](x, out, BLOCK=SIZE)
    assert not failures("expm1", out, np.expm1(x.astype(np.float64)), [x])


def failures(name: str, got: np.ndarray, expected: np.ndarray, inputs: list[np.ndarray]) -> list[str]:
    """What is farther from the reference than is promised; at most three for each function."""
    if got.dtype.kind != "f":
        wrong = got != expected.astype(got.dtype)
    elif name.startswith("fast_"):
        wrong = is_wrong_fast(name, got, expected.astype(np.float64), inputs)
    else:
        wrong = is_wrong(name, got, expected.astype(np.float64), inputs)
    places = np.flatnonzero(wrong)[:3]
    return [f"{name}({', '.join(str(x[i]) for x in inputs)}) = {got[i]!r}, not {expected[i]!r}" for i in places]


def is_wrong_fast(name: str, got: np.ndarray, expected: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        is_near = np.abs(got - expected) <= FAST * np.abs(expected) + 2.0**-20 * (name in ("fast_sinf", "fast_cosf"))
        is_near |= (got == expected.astype(np.float32)) | (np.isnan(got) & np.isnan(expected))
        is_near |= np.abs(expected) < 2.0**-125
        is_near |= np.abs(expected) > 2.0**127
    if name == "fast_dividef":
        is_near |= np.abs(inputs[1]) > 2.0**126
    return ~is_near


def is_wrong(name: str, got: np.ndarray, expected: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        rounded = expected.astype(got.dtype)
    bound = np.full(got.shape, BOUNDS.get(name, (0, 0))[got.dtype == np.float64], np.float64)
    if name in BY_ORDER:
        order, x = (np.abs(value.astype(np.float64)) for value in inputs[:2])
        bound = np.where(x < order, np.maximum(bound, np.ceil(2 + 2.5 * order)), bound)
    if got.dtype == np.float64 and bound.any():
        bound += 1
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(got.dtype).max)).astype(np.float64)
        error = np.abs(got.astype(np.float64) - expected)
        is_near = error <= np.maximum(bound, 0.5) * unit + ABSOLUTE.get(name, (0, 0))[got.dtype == np.float64]
    is_near |= (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    is_same_sign = (np.signbit(got) == np.signbit(rounded)) | np.isnan(rounded)
    return ~(is_near & is_same_sign)


def test_bounds_are_of_functions():
    assert set(BOUNDS) <= set(functions())

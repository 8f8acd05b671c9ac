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
FLUSHED = ("exp", "exp2", "exp10")  # of float, whose results below 2**-126 may be 0 on a GPU


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


def test_floats_where_ways_to_compute_them_meet(tmp_path, poisoned):
    """Neighbours of the numbers from which on a function is computed in another way, overflows, or is 0."""
    near = [0.5, 0.5625, 1, 1.5, 2, 2.5, 3, 8, 9.4, 10.06, 13.9, 14.2, 34.9, 35.1, 41.5, 88.4, 88.8, 89.4, 89.5, 90.1]
    near += [91.9, 92.6, 104, 2.0**-126, 2.0**-100, 2.0**-30, 1e-45, 2.9e-39, 4.085e36, 2.0**64, 2.0**126, 3.4e38]
    numbers = np.array([[np.nextafter(np.float32(x), np.float32(y)) for y in (0, x, 3.4e38)] for x in near])
    x = np.resize(np.concatenate([numbers.ravel(), -numbers.ravel()]).astype(np.float32), 2 * SIZE)
    for part in np.split(x, 2):
        calls = [(name, overload) for name, overload in GROUPS["float32",] if name in BOUNDS]
        outputs = [poisoned("float32", SIZE) for _ in calls]
        write_kernel(tmp_path, calls)[(1,)](part, *outputs, BLOCK=SIZE)
        with np.errstate(all="ignore"):
            expected = [compute(overload.symbol, part) for _, overload in calls]
        wrong = [failures(call[0], *both, [part]) for call, *both in zip(calls, outputs, expected, strict=True)]
        assert not any(wrong), "\n".join(sum(wrong, []))


def test_remainders_of_large_quotients(rng, tmp_path, poisoned):
    """Around 2**20, from which on a GPU divides the mantissas, and where quotients are almost whole."""
    y = np.exp2(rng.uniform(-140, 100, SIZE)).astype(np.float32)
    whole = np.exp2(rng.uniform(0, 24, SIZE)).round()
    with np.errstate(all="ignore"):
        x = (whole * y).astype(np.float32)
    x = np.nextafter(x, rng.choice(np.float32([0, np.inf]), SIZE)) * rng.choice(np.float32([-1, 1]), SIZE)
    calls = [call for call in GROUPS["float32", "float32"] if call[0] in ("fmod", "remainder")]
    outputs = [poisoned("float32", SIZE) for _ in calls]
    write_kernel(tmp_path, calls)[(1,)](x, y, *outputs, BLOCK=SIZE)
    for (name, overload), got in zip(calls, outputs, strict=True):
        assert not failures(name, got, compute(overload.symbol, x, y), [x, y])


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
    if name in FLUSHED and got.dtype == np.float32:
        is_near |= (np.abs(expected) < 2.0**-126) & (got == 0)
    is_same_sign = (np.signbit(got) == np.signbit(rounded)) | np.isnan(rounded)
    return ~(is_near & is_same_sign)


def test_bounds_are_of_functions():
    assert set(BOUNDS) <= set(functions())

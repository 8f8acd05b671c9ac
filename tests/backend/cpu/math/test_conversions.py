"""Conversions against ml_dtypes and NumPy: every 16- and 8-bit code, random floats, ties, specials."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deuteron.backend.math import conversions
from deuteron.dtypes import FLOATS, FP8E4B8, FP8E4B15, FP8E4NV, FP8E5, FP16, FloatType

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
WIDTHS = [1, 8, 16]
MINI = {FP8E4NV: (ml_dtypes.float8_e4m3fn, 448.0), FP8E5: (ml_dtypes.float8_e5m2, 57344.0)}
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4e38, 65504, 65519.996, 65520, 448, 464, 465]
)


def random_floats(rng, count=1 << 18) -> np.ndarray:
    """Random bits, and values near the ranges of the small formats, among them exact ties."""
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    small = np.ldexp(rng.standard_normal(count), rng.integers(-28, 20, count)).astype(np.float32)
    ties = (small.view(np.uint32) & np.uint32(0xFFFF_F000)).view(np.float32)
    return np.concatenate([bits, small, ties, SPECIAL.astype(np.float32)])


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits where not NaN, and NaN in the same places."""
    both_nan = np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    bits = f"u{got.itemsize}"
    wrong = ~both_nan & (got.view(bits) != expected.view(bits))
    assert not wrong.any(), (got[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("arch", ["native", "x86-64-v3"])
def test_f32_to_bf16(elementwise, rng, width, arch):
    x = random_floats(rng)
    got = elementwise(conversions.f32_to_bf16, x, result=np.uint16, width=width, arch=arch)
    with np.errstate(all="ignore"):
        assert_same(got.view(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16))


def test_f32_to_bf16_toward_zero(elementwise, rng):
    x = random_floats(rng)
    got = elementwise(lambda b, x: conversions.f32_to_bf16(b, x, toward_zero=True), x, result=np.uint16)
    expected = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    expected[np.isnan(x)] = np.nan
    assert_same((got.astype(np.uint32) << 16).view(np.float32), expected)


@pytest.mark.parametrize("width", WIDTHS)
def test_bf16_to_f32(elementwise, width):
    codes = np.arange(1 << 16, dtype=np.uint16)
    assert_same(
        elementwise(conversions.bf16_to_f32, codes, width=width), codes.view(ml_dtypes.bfloat16).astype(np.float32)
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("arch", "converts_half"), [("x86-64-v3", True), ("x86-64-v3", False), ("x86-64", False)])
def test_fp16(elementwise, rng, width, arch, converts_half):
    x = random_floats(rng)
    got = elementwise(
        lambda b, x: conversions.f32_to_f16(b, x, converts_half), x, result=np.uint16, width=width, arch=arch
    )
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        assert_same(got.view(np.float16), x.astype(np.float16))
    codes = np.arange(1 << 16, dtype=np.uint16)
    wide = elementwise(lambda b, x: conversions.f16_to_f32(b, x, converts_half), codes, width=width, arch=arch)
    assert_same(wide, codes.view(np.float16).astype(np.float32))


@pytest.mark.parametrize("format", MINI)
@pytest.mark.parametrize("width", WIDTHS)
def test_fp8_saturates(elementwise, rng, format, width):
    dtype, largest = MINI[format]
    x = random_floats(rng)
    got = elementwise(lambda b, x: conversions.narrow(b, x, format), x, result=np.uint8, width=width)
    assert_same(got.view(dtype), np.clip(x, -largest, largest).astype(dtype))
    assert set(got[np.isnan(x)]) == {0x7F, 0xFF}


@pytest.mark.parametrize("format", MINI)
def test_fp8_to_f32(elementwise, format):
    codes = np.arange(256, dtype=np.uint8)
    wide = elementwise(lambda b, x: conversions.widen(b, x, format), codes)
    assert_same(wide, codes.view(MINI[format][0]).astype(np.float32))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("arch", ["native", "x86-64-v3"])
@pytest.mark.parametrize("format", [format for format in FLOATS if conversions.is_part_of_half(format)])
def test_fp8_through_half(elementwise, format, arch, width):
    codes = np.arange(256, dtype=np.uint8)
    wanted = elementwise(lambda b, x: conversions.widen(b, x, format), codes)
    got = elementwise(lambda b, x: conversions.widen_through_half(b, x, format), codes, width=width, arch=arch)
    assert_same(got, wanted)
    assert np.isnan(got).any() == format.has_nan


def test_which_are_part_of_half():
    assert not conversions.is_part_of_half(FloatType("mini", "mini", "mini", "mini", 4, 3, 7))  # 0x78 is infinite
    assert [format for format in FLOATS if conversions.is_part_of_half(format)] == [FP8E4NV, FP8E5, FP8E4B8, FP8E4B15]


@pytest.mark.parametrize(("format", "dtype"), [(FP16, np.float16), *((f, d) for f, (d, _) in MINI.items())])
def test_narrowing_toward_zero_gives_the_largest_code_below(elementwise, rng, format, dtype):
    x = random_floats(rng)
    x = x[np.isfinite(x)]
    got = elementwise(lambda b, x: conversions.narrow(b, x, format, toward_zero=True), x, result=f"u{format.bits // 8}")
    codes = np.arange(format.end_code).astype(got.dtype).view(dtype).astype(np.float32)
    expected = codes[np.searchsorted(codes, np.abs(x), side="right") - 1]
    assert_same(got.view(dtype).astype(np.float32), np.copysign(expected, x))


@pytest.mark.parametrize("to_small", ["bf16", "f16"])
def test_double_is_rounded_once(elementwise, rng, to_small):
    """Doubles just beside ties, which rounding to float first would move onto them."""
    base = random_floats(rng, 1 << 16)
    x = np.nextafter(base.astype(np.float64), np.where(rng.random(len(base)) < 0.5, np.inf, -np.inf))

    def emit(b, x):
        odd = conversions.round_to_odd(b, x)
        return conversions.f32_to_bf16(b, odd) if to_small == "bf16" else conversions.f32_to_f16(b, odd, True)

    got = elementwise(emit, x, result=np.uint16)
    if to_small == "f16":
        with np.errstate(all="ignore"):
            assert_same(got.view(np.float16), x.astype(np.float16))
        return
    # of the three bf16 around, the nearest one; there are no ties left in x
    value = (got.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    for step in (np.uint16(1), np.uint16(0xFFFF)):
        other = ((got + step).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        finite = np.isfinite(x) & np.isfinite(value) & np.isfinite(other) & (value != 0)
        assert np.all(np.abs(value - x)[finite] <= np.abs(other - x)[finite])


def test_double_to_f32_toward_zero(elementwise, rng):
    x = np.concatenate(
        [rng.standard_normal(1 << 16) * 10.0 ** rng.integers(-44, 39, 1 << 16), SPECIAL, [1e300, -1e300]]
    )
    got = elementwise(conversions.truncate_to_f32, x)
    finite = np.isfinite(x)
    assert np.all(np.abs(got[finite].astype(np.float64)) <= np.abs(x[finite]))
    above = np.nextafter(np.abs(got[finite]), np.float32(np.inf)).astype(np.float64)
    assert np.all(above > np.abs(x[finite]))
    assert_same(got[~finite], x[~finite].astype(np.float32))


@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("result", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("width", [1, 8])
def test_float_to_int_saturates(elementwise, rng, source, result, width):
    edges = np.array([s * 2.0**e + d for e in range(66) for s in (1, -1) for d in (0, 0.75, -0.75)])
    x = np.concatenate([edges, SPECIAL, rng.standard_normal(1001) * 1e10]).astype(source)
    info = np.iinfo(result)
    got = elementwise(
        lambda b, x: conversions.float_to_int(b, x, f"i{info.bits}", info.kind == "i"), x, result=result, width=width
    )
    whole = [0 if np.isnan(v) else v if np.isinf(v) else int(v) for v in x.astype(np.float64).tolist()]
    expected = np.array([int(min(max(v, info.min), info.max)) for v in whole], result)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("source", ["i1", "i4", "i8", "u1", "u4", "u8"])
@pytest.mark.parametrize("result", [np.float32, np.float64])
@pytest.mark.parametrize("arch", ["native", "x86-64-v3", "x86-64"])
def test_int_to_float(elementwise, rng, source, result, arch):
    info = np.iinfo(source)
    x = rng.integers(info.min, info.max, 4097, dtype=source, endpoint=True)
    kind = LLVM_FLOATS[result]
    got = elementwise(lambda b, x: conversions.int_to_float(b, x, kind, info.kind == "i"), x, result=result, arch=arch)
    np.testing.assert_array_equal(got, x.astype(result))


LLVM_FLOATS = {np.float32: "float", np.float64: "double"}

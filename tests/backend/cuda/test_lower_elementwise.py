"""Arithmetic, functions and conversions between formats, element by element."""

import math

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with

import deuteron
import deuteron.language as tl

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@deuteron.jit
def function(x, out, N: tl.constexpr, NAME: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if NAME == "exp":
        y = tl.exp(v)
    elif NAME == "exp2":
        y = tl.exp2(v)
    elif NAME == "log":
        y = tl.log(v)
    elif NAME == "log2":
        y = tl.log2(v)
    elif NAME == "sqrt":
        y = tl.sqrt(v)
    elif NAME == "rsqrt":
        y = tl.rsqrt(v)
    elif NAME == "erf":
        y = tl.erf(v)
    elif NAME == "floor":
        y = tl.floor(v)
    elif NAME == "ceil":
        y = tl.ceil(v)
    else:
        y = tl.sqrt_rn(v)
    tl.store(out + i, y)


REFERENCES = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf),
    "floor": np.floor,
    "ceil": np.ceil,
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions(rng, name, dtype):
    if name == "sqrt_rn" and dtype == np.float64:
        pytest.skip("the language has it for fp32 only")
    x = rng.uniform(0.01, 8, 512).astype(dtype)
    out = np.full(512, np.nan, dtype)
    emulate(function, x, out, N=512, NAME=name)
    expected = REFERENCES[name](x.astype(np.longdouble if name != "erf" else np.float64))
    # exp of 2**3 loses three bits in x * log2(e)
    tolerance = (4 + 8 * (name == "exp")) * np.finfo(dtype).eps
    np.testing.assert_allclose(out.astype(np.float64), expected.astype(np.float64), rtol=tolerance)


def test_exponentials_are_one_approximation():
    x = aligned(np.zeros(128, np.float32))
    assert instructions_with(compile_for("cuda:90", function, x, x, N=128, NAME="exp2"), "ex2.approx.ftz.f32")
    assert instructions_with(compile_for("cuda:90", function, x, x, N=128, NAME="sqrt"), "sqrt.approx.f32")
    assert instructions_with(compile_for("cuda:90", function, x, x, N=128, NAME="sqrt_rn"), "sqrt.rn.f32")


def test_exponentials_below_the_normal_numbers_are_zero():
    x, out = np.full(128, -126.5, np.float32), np.full(128, np.nan, np.float32)
    x[:2] = -126, -np.inf
    emulate(function, x, out, N=128, NAME="exp2")
    assert out[0] == np.finfo(np.float32).tiny and not out[1:].any()


@deuteron.jit
def divide(x, y, out, N: tl.constexpr, PRECISE: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.div_rn(a, b) if PRECISE else a / b)


def test_division(rng):
    x, y = rng.uniform(1, 9, (2, 256)).astype(np.float32)
    fast, precise = np.zeros(256, np.float32), np.zeros(256, np.float32)
    assert instructions_with(emulate(divide, x, y, fast, N=256, PRECISE=False), "div.full.f32")
    emulate(divide, x, y, precise, N=256, PRECISE=True)
    np.testing.assert_array_equal(precise, x / y)
    np.testing.assert_allclose(fast, x / y, rtol=2.0**-22)


@deuteron.jit
def multiply_add(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v * v + v)


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_fusion_is_an_option(rng, dtype, target):
    x, out = rng.standard_normal(128).astype(dtype), np.zeros(128, dtype)
    assert instructions_with(emulate(multiply_add, x, out, N=128, target=target), "fma.rn")
    emulate(multiply_add, x, out, N=128, enable_fp_fusion=False, target=target)
    np.testing.assert_array_equal(out, (x * x + x).astype(dtype))


@deuteron.jit
def exponentials(x, out, twos, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.exp(tl.load(x + i)))
    tl.store(twos + i, tl.exp2(tl.load(x + i)))


@pytest.mark.parametrize("flushes", [True, False])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_whether_exponentials_flush_is_an_option(flushes, target):
    """exp gives subnormal numbers from -103.97 to -87.34, exp2 from -149 to -126.01."""
    x = np.linspace(-155, -80, 256, dtype=np.float32)
    natural, twos = np.zeros((2, 256), np.float32)
    emulate(exponentials, x, natural, twos, N=256, enable_reflect_ftz=flushes, target=target)
    for out, expected in ((natural, np.exp(x.astype(np.float64))), (twos, np.exp2(x.astype(np.float64)))):
        expected = np.where(expected < 2.0**-126, 0, expected) if flushes else expected
        np.testing.assert_allclose(out, expected, rtol=2.0**-16, atol=2.0**-148)
        assert np.any((out > 0) & (out < 2.0**-126)) != flushes


@deuteron.jit
def cast(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@pytest.mark.parametrize("source", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize("result", [E4M3, E5M2, np.float16, BF16, np.float32])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_float_formats(rng, source, result, target):
    if source == result:
        pytest.skip("no conversion")
    bits = rng.integers(0, 1 << 16, 512).astype(np.uint16).view(np.float16).astype(np.float64)
    x = np.where(np.abs(bits) < 60000, bits, 0).astype(source)
    out = np.zeros(512, result)
    emulate(cast, x, out, N=512, target=target)
    limit = float(ml_dtypes.finfo(result).max)
    wide = x.astype(np.float64)
    limited = np.clip(wide, -limit, limit) if result in (E4M3, E5M2) else wide
    np.testing.assert_array_equal(out.astype(np.float64), limited.astype(result).astype(np.float64))


@pytest.mark.parametrize("source", [E4M3, E5M2])
@pytest.mark.parametrize("target", ["cuda:86", "cuda:89"])
def test_every_fp8_number_is_read_exactly(source, target):
    x, out = np.arange(256, dtype=np.uint8).view(source), np.zeros(256, np.float32)
    emulate(cast, x, out, N=256, target=target)
    np.testing.assert_array_equal(out, x.astype(np.float32))


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("result", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
def test_to_integers_saturates(source, result):
    limits = np.iinfo(result)
    x = np.array([0, 1.9, -1.9, 200.5, -200.5, 65000, -65000, np.inf, -np.inf, np.nan, 3, 4, 5, 6, 7, 8], source)
    out = np.zeros(16, result)
    emulate(cast, x, out, N=16)
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30))
    expected = [min(max(int(value), limits.min), limits.max) for value in wide]
    np.testing.assert_array_equal(out, np.array(expected, result))


@deuteron.jit
def shifts(x, amount, left, right, N: tl.constexpr):
    i = tl.arange(0, N)
    v, by = tl.load(x + i), tl.load(amount + i)
    tl.store(left + i, v << by)
    tl.store(right + i, v >> by)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_shifts_by_the_width_or_more(rng, dtype):
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 128).astype(dtype)
    amount = rng.integers(0, 100, 128).astype(dtype)
    left, right = np.zeros(128, dtype), np.zeros(128, dtype)
    emulate(shifts, x, amount, left, right, N=128)
    np.testing.assert_array_equal(left, np.left_shift(x, amount))
    np.testing.assert_array_equal(right, np.right_shift(x, amount))


@deuteron.jit
def difference(x, y, out, WIDTH: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    fields = tl.load(x + i // 2) >> i % 2 * WIDTH & (1 << WIDTH) - 1
    tl.store(out + i, (fields - (tl.load(y + i // 2) & (1 << WIDTH) - 1)).to(out.dtype.element_ty))


@pytest.mark.parametrize(
    ("result", "width", "converts"),
    [(np.float16, 4, False), (np.float16, 9, False), (np.float16, 10, True), (BF16, 6, False), (BF16, 7, True)],
)
def test_differences_of_few_bits_are_not_converted(rng, result, width, converts):
    x, y = (aligned(rng.integers(-(2**31), 2**31, 256).astype(np.int32)) for _ in range(2))
    out = aligned(np.zeros(512, result))
    kernel = emulate(difference, x, y, out, WIDTH=width, N=512)
    assert ("cvt.rn" in kernel.asm["ptx"]) is converts
    fields = (x.astype(np.int64)[:, None] >> np.array([0, width])).ravel() & (1 << width) - 1
    expected = fields - (np.repeat(y, 2) & (1 << width) - 1)
    np.testing.assert_array_equal(out, expected.astype(np.float32).astype(result))


@deuteron.jit
def unpacked(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    pairs = tl.load(x + i)
    low, high = (pairs << 4).to(tl.int8) >> 4, pairs >> 4
    tl.store(out + tl.arange(0, 2 * N), tl.interleave(low, high).to(out.dtype.element_ty))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_bits_are_put_below_exponents_by_one_instruction(rng, target):
    """ptxas, which makes one of `and` and `xor`, put one of the constants into a register again for each."""
    x, out = rng.integers(-128, 128, 512).astype(np.int8), np.zeros(1024, BF16)
    kernel = emulate(unpacked, x, out, N=512, num_warps=1, target=target)
    np.testing.assert_array_equal(out, np.stack([(x << 4).astype(np.int8) >> 4, x >> 4], 1).ravel())
    assert kernel.asm["ptx"].count("lop3.b32") == 512 // 32

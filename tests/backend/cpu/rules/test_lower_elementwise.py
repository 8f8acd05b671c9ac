"""Arithmetic, comparisons, mathematics and conversions on tiles, for every type."""

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.llvm.compile import optimise

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]


def dtype_of(name, bfloat16):
    return np.dtype(bfloat16 if name == "bfloat16" else name)


def arithmetic(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=1), tl.load(y + i, mask=i < n, other=1)
    results = (a + b, a - b, a * b, tl.maximum(a, b), tl.minimum(a, b), tl.where(a < b, a, b))
    for k in tl.static_range(6):
        tl.store(out + k * n + i, results[k], mask=i < n)


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_arithmetic(compare, rng, bfloat16, name):
    dtype, n = dtype_of(name, bfloat16), 77
    x, y = ((100 * rng.random(n)).astype(dtype) for _ in range(2))
    compare(arithmetic, [x, y, np.zeros(6 * n, dtype), n], {"BLOCK": 128})


def divide(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    # lanes that are off divide by zero: that must not end the program
    a, b = tl.load(x + i, mask=i < n, other=0), tl.load(y + i, mask=i < n, other=0)
    tl.store(out + i, a // b, mask=i < n)
    tl.store(out + n + i, a % b, mask=i < n)


@pytest.mark.parametrize("name", INTEGERS)
def test_division(compare, rng, name):
    info, n = np.iinfo(name), 100
    x, y = (rng.integers(info.min, info.max, n, name, endpoint=True) for _ in range(2))
    y[rng.random(n) < 0.5] = 3
    y[y == 0] = 1
    if info.min < 0:
        y[y == -1] = 1
    compare(divide, [x, y, np.zeros(2 * n, name), n], {"BLOCK": 128})


def divide_floats(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=0), tl.load(y + i, mask=i < n, other=0)
    tl.store(out + i, a / b, mask=i < n)


@pytest.mark.parametrize("name", FLOATS)
def test_float_division(compare, rng, bfloat16, name):
    dtype = dtype_of(name, bfloat16)
    x, y = ((rng.random(50) + 0.5).astype(dtype) for _ in range(2))
    compare(divide_floats, [x, y, np.zeros(50, dtype), 50], {"BLOCK": 64})


def mathematics(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=1.0)
    results = (tl.exp(a), tl.exp2(a), tl.log(a), tl.log2(a), tl.sqrt(a), tl.rsqrt(a), tl.abs(-a), tl.sin(a), tl.cos(a))
    for k in tl.static_range(9):
        tl.store(out + k * n + i, results[k], mask=i < n)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_mathematics(compare, rng, name):
    compare(mathematics, [rng.uniform(0.1, 4, 90).astype(name), np.zeros(9 * 90, name), 90], {"BLOCK": 128})


def bits(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=0), tl.load(y + i, mask=i < n, other=0)
    results = (a & b, a | b, a ^ b, ~a, a << (b & 7), a >> (b & 7))
    for k in tl.static_range(6):
        tl.store(out + k * n + i, results[k], mask=i < n)


@pytest.mark.parametrize("name", INTEGERS)
def test_bits(compare, rng, name):
    info, n = np.iinfo(name), 60
    x, y = (rng.integers(info.min, info.max, n, name) for _ in range(2))
    compare(bits, [x, y, np.zeros(6 * n, name), n], {"BLOCK": 64})


def convert(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, a.to(out.dtype.element_ty), mask=i < n)


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "bool"])
def test_conversions(compare, rng, bfloat16, source, target):
    x = (rng.random(40) * 100 + 0.25).astype(dtype_of(source, bfloat16))
    compare(convert, [x, np.zeros(40, dtype_of(target, bfloat16)), 40], {"BLOCK": 64}, cpus=("native",))


def reinterpret(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty, bitcast=True))


@pytest.mark.parametrize("source, target", [("float32", "int32"), ("int16", "float16"), ("uint8", "int8")])
def test_bitcast(compare, rng, source, target):
    x = (rng.random(64) * 100).astype(source)
    compare(reinterpret, [x, np.zeros(64, target)], {"BLOCK": 64})


def scalar_parameters(out, a, b, flag, half: tl.constexpr):
    tl.store(out, a * 2.5 + b)
    tl.store(out + 1, half)
    if flag:
        tl.store(out + 2, 1.0)


@pytest.mark.parametrize("flag", [True, False])
def test_scalar_parameters(compare, flag):
    compare(scalar_parameters, [np.full(3, 7, np.float32), 1.5, -3, flag], {"half": 0.5})


def grid(out, n):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * tl.num_programs(1) + y) * tl.num_programs(0) + x, x + 10 * y + 100 * z + 1000 * n)


def test_grid(compare):
    compare(grid, [np.zeros(3 * 4 * 5, np.int32), 1], grid=(3, 4, 5))


def all_integers(out, BLOCK: tl.constexpr, INTEGER: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i.to(INTEGER).to(out.dtype.element_ty))


@pytest.mark.parametrize("integer", [tl.int8, tl.uint8, tl.int16, tl.uint16])
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_all_integers_as_narrow_floats(compare, bfloat16, name, integer):
    """Some that the type has, and some that are rounded."""
    count = 1 << integer.primitive_bitwidth
    out = np.zeros(count, dtype_of(name, bfloat16))
    compare(all_integers, [out], {"BLOCK": 256, "INTEGER": integer}, grid=(count // 256,), cpus=["native"], tolerance=0)


def test_what_a_float_has_is_not_rounded(lower_module, lower_python, bfloat16):
    """Integers of 8 bits are numbers of bf16, those of 16 of fp32: only the latter are rounded."""
    sizes = {"BLOCK": 256, "INTEGER": tl.int8}
    text = {
        integer: lower_module(lower_python(all_integers, [np.zeros(4, bfloat16)], sizes | {"INTEGER": integer})).llir
        for integer in (tl.int8, tl.int16, tl.int32)
    }
    assert ["double" in text[integer] for integer in text] == [False, False, True]
    assert ["32767" in text[integer] for integer in text] == [False, True, True]


def concatenated(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=0.0), tl.load(y + i - n, mask=i >= n, other=0.0)
    tl.store(out + i, tl.where(i < n, a, b))


def test_other_is_zero_in_narrow_floats_too(lower_module, lower_python, compare, rng, bfloat16):
    """Lanes that are off are zero already, so that nothing is selected but what the kernel selects."""
    x, y, out = rng.random(37).astype(bfloat16), rng.random(91).astype(bfloat16), np.zeros(128, bfloat16)
    compare(concatenated, [x, y, out, 37], {"BLOCK": 128})
    text = lower_module(lower_python(concatenated, [x, y, out, 37], {"BLOCK": 128})).llir
    assert text.count("select <") == 1


def signs(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.abs(tl.load(x + i)))
    tl.store(out + BLOCK + i, -tl.load(x + i))


def test_signs_of_bf16_are_bits_of_it(compare, bfloat16, lower_python, lower_module):
    """Of every number and infinity, which nothing is widened for."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = np.where(bits & 0x7FFF > 0x7F80, 0, bits).astype(np.uint16).view(bfloat16)
    _, made = compare(signs, [x, np.zeros(1 << 17, bfloat16)], {"BLOCK": 1 << 16}, cpus=("native",))
    expected = np.concatenate([x.view(np.uint16) & 0x7FFF, x.view(np.uint16) ^ 0x8000])
    np.testing.assert_array_equal(made.view(np.uint16), expected)
    arguments = [np.zeros(64, bfloat16), np.zeros(128, bfloat16)]
    text = lower_module(lower_python(signs, arguments, {"BLOCK": 64}), "x86-64-v3").llir
    assert "<8 x i32>" not in optimise(text, "x86-64-v3", "")


def of_two(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(out + i, tl.maximum(a, 1.0))
    tl.store(out + BLOCK + i, tl.minimum(a, 1.0))
    tl.store(out + 2 * BLOCK + i, tl.clamp(a, 1.0, 2.0))


def test_the_other_of_a_signalling_nan(compare, lower_python, lower_module):
    """AArch64's instructions give NaN for one, unless it is made a quiet one before."""
    x = np.array([0x7F800001, 0xFFBFFFFF, 0x7FC00000, 0x40400000], np.uint32).view(np.float32)
    _, out = compare(of_two, [x, np.zeros(12, np.float32)], {"BLOCK": 4}, tolerance=0)
    assert out.tolist() == [1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 2]
    module = lower_python(of_two, [x, out], {"BLOCK": 4})
    for cpu, quiets in (("neoverse-v1", True), ("x86-64-v3", False)):
        text = lower_module(module, cpu).llir
        assert ("llvm.maximumnum" in text, "llvm.maxnum" in text) == (quiets, not quiets)
        assert ("llvm.minimumnum" in text, "llvm.minnum" in text) == (quiets, not quiets)

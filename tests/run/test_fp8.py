"""The five fp8 types: every code read, and conversions from every float in both roundings, exactly."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.dtypes import FLOATS, FloatType
from tests.float_codes import nearest, toward_zero, values

pytestmark = pytest.mark.each_gpu

WIDE = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
NUM_SAMPLES = 1024
each_type = pytest.mark.parametrize(
    "declared", [type for type in FLOATS if type.bits == 8], ids=lambda declared: declared.name
)


def as_type(codes: np.ndarray, declared: FloatType):
    return triton.reinterpret(codes, tl.dtype(declared.dtype_name))


@triton.jit
def widen_kernel(x_ptr, half_ptr, brain_ptr, single_ptr, double_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(half_ptr + i, x.to(tl.float16))
    tl.store(brain_ptr + i, x.to(tl.bfloat16))
    tl.store(single_ptr + i, x)
    tl.store(double_ptr + i, x.to(tl.float64))


@each_type
def test_every_code_is_read(declared):
    outs = [np.zeros(256, dtype) for dtype in WIDE]
    widen_kernel[(1,)](as_type(np.arange(256, dtype=np.uint8), declared), *outs, BLOCK=256)
    for out in outs:
        np.testing.assert_array_equal(out.astype(np.float32), values(declared))


@triton.jit
def narrow_kernel(half_ptr, brain_ptr, single_ptr, double_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    type: tl.constexpr = out_ptr.dtype.element_ty
    row = out_ptr + i
    for x in (tl.load(half_ptr + i), tl.load(brain_ptr + i), tl.load(single_ptr + i), tl.load(double_ptr + i)):
        tl.store(row, x.to(type))
        tl.store(row + n, tl.cast(x, type, fp_downcast_rounding="rtz"))
        row += 2 * n


def samples(rng: np.random.Generator) -> np.ndarray:
    """All over the ranges of the types; ties, and what is next to ties; what is special."""
    spread = np.ldexp(rng.standard_normal(NUM_SAMPLES), rng.integers(-22, 18, NUM_SAMPLES)).astype(np.float32)
    ties = (spread[: NUM_SAMPLES // 2].view(np.uint32) & np.uint32(0xFFF8_0000)).view(np.float32)
    spread[: NUM_SAMPLES // 2] = np.nextafter(ties, ties + rng.integers(-1, 2, ties.size).astype(np.float32))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, 1.75, 1.8125, 1.875, 240, 248, 448, 464, 57344]
    spread[: len(special)] = special
    return spread


@pytest.mark.share(2)
@each_type
def test_conversions_round_once(rng, declared):
    x = samples(rng)
    with np.errstate(over="ignore"):
        sources = [x.astype(dtype) for dtype in WIDE[:3]]
    sources.append(x + np.ldexp(x.astype(np.float64), -40))  # what fp32 does not have
    stored = np.zeros((8, NUM_SAMPLES), np.uint8)
    narrow_kernel[(NUM_SAMPLES // 256,)](*sources, as_type(stored, declared), NUM_SAMPLES, BLOCK=256)
    got = values(declared)[stored]
    for source, to_nearest, to_zero in zip(sources, got[::2], got[1::2], strict=True):
        wide = source.astype(np.float64)
        check_equal(to_nearest, nearest(declared, wide))
        finite = np.isfinite(wide)
        check_equal(to_zero[finite], toward_zero(declared, wide[finite]))


def check_equal(got: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(got, expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[is_number]), np.signbit(expected[is_number]))


@triton.jit
def constants_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    type: tl.constexpr = x_ptr.dtype.element_ty
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    x = tl.where(i % 2 == 0, x, tl.full([BLOCK], -1.5, type))
    tl.store(out_ptr + i, tl.where(i < n // 2, x, tl.zeros([BLOCK], type)))


@each_type
def test_constants(rng, declared):
    x, out = np.flatnonzero(~np.isnan(values(declared))).astype(np.uint8)[:200], np.full(256, 99, np.float32)
    constants_kernel[(1,)](as_type(x, declared), out, 200, BLOCK=256)
    expected = np.where(np.arange(200) % 2, -1.5, values(declared)[x])
    check_equal(out, np.concatenate([expected[:100], np.zeros(156)]))

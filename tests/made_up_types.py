"""A program that declares four more float types, before Deuteron is imported, and runs kernels on them.

    python made_up_types.py          on the executor that the environment names; test_dtypes.py runs it on each

Nothing but the declaration says what they are. ml_dtypes knows three of them, for the other all values are looked at.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from float_codes import nearest, toward_zero, values

ROOT = Path(__file__).resolve().parents[1] / "src" / "deuteron"


def declare() -> tuple:
    """1-3-4 and 1-4-3 as IEEE 754 would have them; and 1-4-3 with bias 11, whose NaN is where minus zero would be;
    and 1-5-2 with bias 31, whose numbers fp16 does not have, under a name that MLIR has for another one.
    """
    spec = importlib.util.spec_from_file_location("deuteron.dtypes", ROOT / "dtypes.py")
    module = sys.modules["deuteron.dtypes"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    e3m4 = module.FloatType("fp8e3", "float8e3", "float8_e3m4", "f8E3M4", 3, 4, 3, dlpack_code=7)
    e4m3 = module.FloatType("fp8e4", "float8e4", "float8_e4m3", "f8E4M3", 4, 3, 7, dlpack_code=8)
    b11 = module.FloatType(
        "fp8e4b11", "float8e4b11", "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", 4, 3, 11, module.Specials.FNUZ
    )
    b31 = module.FloatType("fp8e5b31", "float8e5b31", "float8_e5b31", "f8E8M0FNU", 5, 2, 31)
    module.FLOATS = (*module.FLOATS, e3m4, e4m3, b11, b31)
    return e3m4, e4m3, b11, b31


E3M4, E4M3, B11, B31 = declare()

import deuteron  # noqa: E402
import deuteron.language as tl  # noqa: E402

FP8E4 = tl.constexpr(tl.dtype("fp8e4"))


@deuteron.jit
def narrow(x_ptr, y_ptr, n, BLOCK: tl.constexpr, ROUNDING: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x.to(y_ptr.dtype.element_ty, fp_downcast_rounding=ROUNDING), mask=i < n)


@deuteron.jit
def widen(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(y_ptr.dtype.element_ty))


@deuteron.jit
def bits(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(tl.uint8, bitcast=True))


@deuteron.jit
def show(x_ptr, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, BLOCK)))


@deuteron.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + N * i + j), tl.load(b_ptr + N * i + j)
    tl.store(c_ptr + N * i + j, tl.dot(a, b) * tl.full([N, N], 1.5, FP8E4).to(tl.float32))


def same(got: np.ndarray, expected: np.ndarray) -> None:
    got, expected = (np.asarray(x, np.float64) for x in (got, expected))
    wrong = ~(np.isnan(got) & np.isnan(expected)) & ((got != expected) | (np.signbit(got) != np.signbit(expected)))
    assert not wrong.any(), (got[wrong][:5], expected[wrong][:5])


def samples() -> np.ndarray:
    rng = np.random.default_rng(7)
    spread = np.ldexp(rng.standard_normal(2000), rng.integers(-16, 12, 2000)).astype(np.float32)
    ties = (spread.view(np.uint32) & np.uint32(0xFFF8_0000)).view(np.float32)
    special = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 15.5, 15.74, 15.75, 247.9, 248, -30, 31], np.float32
    )
    return np.concatenate([spread, ties, special])


def check_type(declared, library: type | None) -> None:
    codes, every = np.arange(256, dtype=np.uint8), values(declared)
    type = tl.dtype(declared.dtype_name)

    def array(stored: np.ndarray):
        return deuteron.reinterpret(stored, type) if library is None else stored.view(library)

    wide = np.zeros(256, np.float32)
    widen[(1,)](array(codes), wide, BLOCK=256)
    same(wide, every)
    again = np.zeros(256, np.uint8)
    narrow[(1,)](wide, array(again), 256, BLOCK=256, ROUNDING="rtne")
    same(every[again], nearest(declared, every) if declared.saturates else every)
    bits[(1,)](array(codes), again, BLOCK=256)
    # The interpreter keeps the sign of a NaN, no more.
    assert np.array_equal(again[~np.isnan(every)], codes[~np.isnan(every)])
    for dtype in (np.float32, np.float64):
        x = samples().astype(dtype)
        stored = np.zeros(len(x), np.uint8)
        narrow[(len(x) // 256 + 1,)](x, array(stored), len(x), BLOCK=256, ROUNDING="rtne")
        same(every[stored], nearest(declared, x) if library is None else x.astype(library).astype(np.float32))
        narrow[(len(x) // 256 + 1,)](x, array(stored), len(x), BLOCK=256, ROUNDING="rtz")
        finite = np.isfinite(x)
        same(every[stored][finite], toward_zero(declared, x[finite]))


def check_product(declared) -> None:
    """Numbers small enough that no order of summation rounds."""
    codes = np.random.default_rng(8).integers(0, 0x10, (2, 32, 32)).astype(np.uint8)
    a, b = (deuteron.reinterpret(x, tl.dtype(declared.dtype_name)) for x in codes)
    c = np.zeros((32, 32), np.float32)
    product[(1,)](a, b, c, N=32)
    wide = values(declared)[codes].astype(np.float64)
    assert np.any(c) and np.array_equal(c, wide[0] @ wide[1] * 1.5)


if __name__ == "__main__":
    check_type(E3M4, ml_dtypes.float8_e3m4)
    check_type(E4M3, ml_dtypes.float8_e4m3)
    check_type(B11, ml_dtypes.float8_e4m3b11fnuz)
    check_type(B31, None)
    for declared in (E3M4, E4M3, B11, B31):
        check_product(declared)
    show[(1,)](np.array([1.0625, -3.5], ml_dtypes.float8_e3m4), BLOCK=2)

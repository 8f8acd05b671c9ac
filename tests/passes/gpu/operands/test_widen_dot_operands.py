"""fp8 dots become f16 dots, others stay."""

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl


@deuteron.jit
def square(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + offsets)
    tl.store(out + offsets, tl.dot(tile, tile))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_fp8(dtype):
    text = generic_asm(compile_for("cuda:90", square, np.zeros(1024, dtype), np.zeros(1024, np.float32), N=32), "ttgir")
    (dot,) = [line for line in text.splitlines() if '"tt.dot"' in line]
    assert "xf16" in dot and "xf8" not in dot and '"tt.fp_to_fp"' in text


def test_others():
    text = generic_asm(
        compile_for("cuda:90", square, np.zeros(1024, np.float16), np.zeros(1024, np.float32), N=32), "ttgir"
    )
    assert '"tt.fp_to_fp"' not in text

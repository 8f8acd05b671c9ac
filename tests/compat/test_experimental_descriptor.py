"""triton.tools.experimental_descriptor: descriptors of an address, whose elements the kernel names."""

import ml_dtypes
import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compat.experimental_descriptor import create_1d_tma_descriptor, create_2d_tma_descriptor
from deuteron.errors import CompilationError, UsageError


@deuteron.jit
def negate(x_desc, out_desc, row_desc, ROWS: tl.constexpr, DTYPE: tl.constexpr):
    i = tl.program_id(0) * ROWS
    for j in range(0, 48, 16):
        x = tl._experimental_descriptor_load(x_desc, [i, j], [ROWS, 16], DTYPE).to(tl.float32)
        tl._experimental_descriptor_store(out_desc, (-x).to(DTYPE), [i, j])
    row = tl._experimental_descriptor_load(row_desc, [i], [ROWS], tl.float32)
    tl._experimental_descriptor_store(row_desc, row + 1, [i])


@pytest.fixture(params=["interpreter", "cpu", "cuda:80", "cuda:90"])
def executor(request, monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1" if request.param == "interpreter" else "0")
    monkeypatch.setenv("DEUTERON_EMULATE", "1" if request.param.startswith("cuda") else "0")
    monkeypatch.setenv("DEUTERON_TARGET", request.param if request.param.startswith("cuda") else "cpu")


def of(x, rows, columns=16):
    return create_2d_tma_descriptor(x.ctypes.data, *x.shape, rows, columns, x.itemsize)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float16, tl.float16),
        (ml_dtypes.bfloat16, tl.bfloat16),
        (np.float32, tl.float32),
        (np.int16, tl.int16),
        (np.float64, tl.float64),
        (ml_dtypes.float8_e5m2, tl.float8e5),
    ],
)
def test_the_kernel_says_what_the_elements_are(executor, rng, dtype, name):
    x = (10 * rng.standard_normal((21, 48), np.float32)).astype(dtype)
    out, row = np.zeros_like(x), np.arange(21, dtype=np.float32)
    row_desc = create_1d_tma_descriptor(row.ctypes.data, 21, 8, 4)
    negate[(3,)](of(x, 8), of(out, 8), row_desc, 8, name)
    np.testing.assert_array_equal(out.view(f"u{x.itemsize}"), (-x).view(f"u{x.itemsize}"))
    np.testing.assert_array_equal(row, np.arange(1, 22))


def test_elements_of_another_size_are_refused():
    x, row = np.zeros((8, 48), np.float16), np.zeros(8, np.float32)
    row_desc = create_1d_tma_descriptor(row.ctypes.data, 8, 8, 4)
    with pytest.raises(CompilationError, match=r"asks for .*float32, but the descriptor has blocks of uint16\[8, 16\]"):
        negate[(1,)](of(x, 8), of(x, 8), row_desc, 8, tl.float32)
    wide = np.zeros((8, 48), np.float32)
    with pytest.raises(CompilationError, match=r"got fp32\[8, 16\], but the descriptor has elements of 2 bytes"):
        negate[(1,)](of(wide, 8), of(x, 8), row_desc, 8, tl.float32)


def test_an_array_is_no_address():
    with pytest.raises(UsageError, match=r"Give x.data_ptr\(\) and x.element_size\(\)"):
        create_2d_tma_descriptor(np.zeros((8, 16)), 8, 16, 8, 16, 8)

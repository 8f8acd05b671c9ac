"""What `tl.extra.cpu` has besides libdevice, on every target."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def decode_kernel(packed_ptr, out_ptr, WORDS: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr):
    packed = tl.load(packed_ptr + tl.arange(0, WORDS)[:, None] * (ROWS * N) + tl.arange(0, ROWS * N)[None, :])
    k, n = tl.arange(0, WORDS * ROWS)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + k * N + n, tl.extra.cpu.vnni_decode(packed))


@pytest.mark.parametrize(("dtype", "rows"), [("int8", 4), ("int16", 2)])
def test_words_of_several_rows(poisoned, check, dtype, rows):
    matrix = np.random.default_rng(0).integers(-99, 99, (4 * rows, 8)).astype(dtype)
    packed = np.ascontiguousarray(matrix.reshape(4, rows, 8).transpose(0, 2, 1))
    out = poisoned(dtype, matrix.shape)
    decode_kernel[(1,)](packed, out, 4, 8, rows)
    check(out, matrix)

"""Descriptors whose bases are loaded, which TMA does not copy: 16 bytes at a time all the same."""

import numpy as np
from backend.cuda.launching import aligned, emulate, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def group_product(x, w, out, starts, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first = tl.load(starts)
    count = tl.load(starts + 1) - first
    rows = tl.make_tensor_descriptor(x + first.to(tl.int64) * K, [count, K], [K, 1], [BM, BK])
    columns = tl.make_tensor_descriptor(w + first.to(tl.int64) * 0, [N, K], [K, 1], [BN, BK])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(rows.load([0, k]), columns.load([0, k]).T, acc)
    i, j = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    tl.store(out + i * BN + j, acc)


def test_rows_are_copied_16_bytes_at_a_time(rng):
    """Of 72 halves, which nothing says but that they are the stride."""
    x, w = (aligned(rng.standard_normal(shape).astype(np.float16)) for shape in ((80, 72), (30, 72)))
    out = aligned(np.full((64, 32), np.nan, np.float32))
    kernel = emulate(group_product, x, w, out, np.array([5, 55], np.int32), 30, 72, BM=64, BN=32, BK=32)
    expected = np.zeros((64, 32))
    expected[:50, :30] = x[5:55].astype(float) @ w.T.astype(float)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-2)
    assert instructions_with(kernel, "cp.async.cg.shared.global")
    assert not instructions_with(kernel, "ld.global.b16")

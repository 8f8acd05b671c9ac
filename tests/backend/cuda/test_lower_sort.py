"""Sorting networks: pairs within a warp meet by shuffles, within a thread by nothing; conversions there are none."""

import numpy as np
from backend.cuda.launching import emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl


@deuteron.jit
def sort_rows(x, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    values = tl.load(x + rows * N + tl.arange(0, N)[None, :])
    values = tl.topk(values, K) if K < N else tl.sort(values, descending=True)
    tl.store(out + rows * K + tl.arange(0, K)[None, :], values)


def sorted_by_kernel(rng, m: int, n: int, k: int, num_warps: int):
    x, out = rng.standard_normal((m, n)).astype(np.float32), np.zeros((m, k), np.float32)
    kernel = emulate(sort_rows, x, out, M=m, N=n, K=k, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.sort(x, axis=1)[:, : -k - 1 : -1])
    return kernel


def test_one_warp_needs_no_shared_memory(rng):
    kernel = sorted_by_kernel(rng, 1, 128, 128, num_warps=1)
    assert not instructions_with(kernel, "shared") and kernel.metadata.shared == 0


def test_what_is_left_is_stored_from_where_it_is(rng):
    kernel = sorted_by_kernel(rng, 8, 32, 4, num_warps=4)
    assert '"ttg.convert_layout"' not in generic_asm(kernel, "ttgir")


def test_only_steps_across_warps_wait(rng):
    """128 elements in 4 warps: of 28 steps three are across warps, two at distance 32 and one at 64."""
    kernel = sorted_by_kernel(rng, 1, 128, 128, num_warps=4)
    assert '"ttg.convert_layout"' not in generic_asm(kernel, "ttgir")
    assert len(instructions_with(kernel, "bar.sync")) <= 2 * 3

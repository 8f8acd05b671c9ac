"""What the CTAs of a cluster load together: each a part, for all of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl


@deuteron.jit
def matmul(a, b, c, M, N, K, TRANSPOSED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        if TRANSPOSED:
            y = tl.load(b + columns[:, None] * K + (k + ks)[None, :]).T
        else:
            y = tl.load(b + (k + ks)[:, None] * N + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc)


def arrays(rng, m, n, k, transposed):
    a, b = (aligned(rng.standard_normal(s).astype(np.float16)) for s in ((m, k), (n, k) if transposed else (k, n)))
    return a, b, aligned(np.full((m, n), np.nan, np.float32)), m, n, k


def compiled(args, transposed, tile, **options):
    sizes = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    return compile_for("cuda:90", matmul, *args, TRANSPOSED=transposed, **sizes, **options)


@pytest.mark.share(3)
@pytest.mark.parametrize("asynchronous", ["late", "early", "random"])
@pytest.mark.parametrize(
    ("tile", "num_ctas", "transposed", "copies"),
    [
        ((256, 128, 64), 2, False, 1),  # b in two boxes of 64 columns: one for each block
        ((256, 128, 64), 2, True, 1),  # b in one box of 128 rows: a half of it
        ((128, 256, 64), 2, False, 1),  # a, since each block has 128 columns of b
        ((256, 256, 64), 2, False, 2),
        ((512, 64, 64), 4, True, 1),
    ],
)
def test_a_shared_operand_is_loaded_once(tile, num_ctas, transposed, copies, asynchronous, rng):
    args = arrays(rng, 512, 256, 256, transposed)
    kernel = compiled(args, transposed, tile, num_ctas=num_ctas, num_warps=8)
    emulate_compiled(kernel, *args, grid=(512 // tile[0], 256 // tile[1]), asynchronous=asynchronous)
    a, b, c = (array.astype(np.float64) for array in args[:3])
    np.testing.assert_allclose(c, a @ (b.T if transposed else b), rtol=1e-3, atol=0.02)
    assert len(instructions_with(kernel, ".multicast::cluster")) == copies
    assert generic_asm(kernel, "ttgir").count(f"multicast = {num_ctas} : i32") == 1


def test_buffers_are_free_when_all_blocks_have_read_them(rng):
    args = arrays(rng, 256, 128, 128, False)
    text = generic_asm(compiled(args, False, (256, 128, 64), num_ctas=2, num_warps=8, num_stages=3), "ttgir")
    counts = [int(count) for count in re.findall(r"ttng.init_barrier.*?count = (\d+)", text)]
    assert counts == [1, 16] * 3  # filled by one thread, emptied by the 8 warps of both blocks
    assert text.count("numCTAs = 2 : i32") >= 1
    first, last = text.index('"ttng.cluster_barrier"'), text.rindex('"ttng.cluster_barrier"')
    assert first < text.index('"ttg.warp_specialize"') < text.index('"ttg.warp_return"') < last


def test_blocks_that_share_nothing_do_not_wait_for_each_other(rng):
    """Rows of 40 elements are not known to be aligned: b goes by pointers."""
    text = generic_asm(
        compiled(arrays(rng, 256, 40, 128, False), False, (256, 8, 64), num_ctas=2, num_warps=8), "ttgir"
    )
    assert "multicast = " not in text and '"ttng.cluster_barrier"' not in text

"""Tiles of pointers that a loop with a dot advances: carried as an offset where the step is one for all of them."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, emulate_compiled

import deuteron
import deuteron.language as tl
from deuteron.backend.gpu import advanced_pointers


@deuteron.jit
def matmul(a, b, out, K, stride, GROWING: tl.constexpr, BY_ROW: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, 32)
    a_ptrs = a + i[:, None] * K + k[None, :]
    b_ptrs = b + k[:, None] * stride + i[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, K, 32):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += 32
        if GROWING:
            b_ptrs += (start // 32 + 1) * 32 * stride
        elif BY_ROW:
            b_ptrs += tl.full((64,), 32, tl.int64)[None, :] * stride + i[None, :] * 0
        else:
            b_ptrs += 32 * stride
    tl.store(out + i[:, None] * 64 + i[None, :], acc)
    # where the loop has left them: the row after the last
    tl.store(out + 64 * 64 + i, tl.max(tl.load(b_ptrs).to(tl.float32), 0))


def draw(rng, *shape):
    return aligned(rng.integers(-4, 5, shape).astype(np.float16))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize(("growing", "by_row"), [(False, False), (True, False), (False, True)])
def test_pointers_are_where_they_should_be(rng, target, stages, growing, by_row):
    a, b = draw(rng, 64, 96), draw(rng, 32 * 8, 80)
    out = aligned(np.full((65, 64), np.nan, np.float32))
    options = {"GROWING": growing, "BY_ROW": by_row, "target": target, "num_stages": stages}
    emulate(matmul, a, b, out, 96, 80, **options)
    begins = [0, 32, 96, 192] if growing else [0, 32, 64, 96]
    rows = np.concatenate([b[begin : begin + 32, :64] for begin in begins[:3]])
    np.testing.assert_array_equal(out[:64], a.astype(np.float32) @ rows.astype(np.float32))
    np.testing.assert_array_equal(out[64], b[begins[3] : begins[3] + 32, :64].max(0).astype(np.float32))


def test_a_loop_carries_an_offset_for_each_tile(rng, by_pointers):
    """Those of the copies ahead, and those that are read after the loop."""
    given = draw(rng, 64, 96), draw(rng, 96, 80), draw(rng, 65, 64)
    llir = compile_for("cuda:90", matmul, *given, 96, 80, GROWING=False, BY_ROW=False).asm["llir"]
    assert llir.count("phi i64") == 3 and "phi ptr" not in llir


@deuteron.jit
def odd(a, b, out, M, N, K, first, row, WRAPS: tl.constexpr):
    """The rows of a begin `first` elements after it, in steps of `row`, which may be negative."""
    a += first
    i, k = tl.arange(0, 64), tl.arange(0, 32)
    m, n = (i % M, i % N) if WRAPS else (i, i)
    inside = tl.full((64,), WRAPS, tl.int1)
    a_ptrs = a + (m[:, None] * row + k[None, :]) if WRAPS else a + m[:, None] * row + k[None, :]
    b_ptrs = b + (k[:, None] * N + n[None, :]) if WRAPS else b + k[:, None] * N + n[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, K, 32):
        x = tl.load(a_ptrs, mask=(inside | (i < M))[:, None] & (k[None, :] < K - start), other=0.0)
        y = tl.load(b_ptrs, mask=(inside | (i < N))[None, :] & (k[:, None] < K - start), other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += 32
        b_ptrs += 32 * N
    tl.store(out + i[:, None] * N + i[None, :], acc, mask=(i < M)[:, None] & (i < N)[None, :])


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("is_backwards", [False, True])
def test_what_pointers_are_computed_of_is_kept_where_they_have_no_room(rng, target, wraps, is_backwards, monkeypatch):
    monkeypatch.setattr(advanced_pointers, "MOST_FILLED", 0)
    a, b = draw(rng, 61, 77), draw(rng, 77, 59)
    out = aligned(np.full((61, 59), np.nan, np.float32))
    given = a, b, out, 61, 59, 77, *((60 * 77, -77) if is_backwards else (0, 77))
    kernel = compile_for(target, odd, *given, WRAPS=wraps)
    of_a, of_b, places = 16, 16 if wraps else 8, 2  # in the loop, and after it
    assert kernel.asm["llir"].count('asm "mov.b32 $0, $1;"') == places * (of_a + of_b)
    emulate_compiled(kernel, *given)
    np.testing.assert_array_equal(out, (a[::-1] if is_backwards else a).astype(np.float32) @ b.astype(np.float32))

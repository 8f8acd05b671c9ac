"""Tiles that a loop carries and uses in another layout than the one they are carried in."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu


@triton.jit
def transposed_each_round(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + tile)
    for _ in range(n):
        x = tl.trans(x) + 1
    tl.store(out_ptr + tile, x)


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("block", [2, 16, 64])
def test_a_tile_is_transposed_each_round(draw, poisoned, check, n, block):
    x, out = draw("int32", (block, block), -999, 999), poisoned("int32", (block, block))
    transposed_each_round[(1,)](x, out, n, BLOCK=block)
    check(out, (x.T if n % 2 else x) + n)


@triton.jit
def only_transposed(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + tile)
    for _ in range(n):
        x = tl.trans(x)
    tl.store(out_ptr + tile, x)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_a_round_does_nothing_but_transpose(draw, poisoned, check, n):
    x, out = draw("float16", (32, 32)), poisoned("float16", (32, 32))
    only_transposed[(1,)](x, out, n, BLOCK=32)
    check(out, x.T if n % 2 else x)


@triton.jit
def stored_both_ways(x_ptr, rows_ptr, columns_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    along, across = i[:, None] * BLOCK + i[None, :], i[None, :] * BLOCK + i[:, None]
    x = tl.load(x_ptr + along)
    for k in range(n):
        tl.store(rows_ptr + k * BLOCK * BLOCK + along, x)
        tl.store(columns_ptr + k * BLOCK * BLOCK + across, x)
        x = x * 2


def test_a_carried_tile_is_stored_along_rows_and_columns(draw, poisoned, check):
    x = draw("int32", (32, 32), -99, 99)
    rows, columns = poisoned("int32", (3, 32, 32)), poisoned("int32", (3, 32, 32))
    stored_both_ways[(1,)](x, rows, columns, 3, BLOCK=32)
    expected = np.stack([x, 2 * x, 4 * x])
    check(rows, expected)
    check(columns, expected.transpose(0, 2, 1))


@triton.jit
def swapped_with_its_transpose(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    x, y, z = tl.load(x_ptr + tile), tl.load(y_ptr + tile), tl.zeros([BLOCK, BLOCK], tl.int32)
    for k in range(n):
        x, y, z = tl.trans(y), x, z + tl.trans(x) * k
    tl.store(out_ptr + tile, x)
    tl.store(out_ptr + BLOCK * BLOCK + tile, y)
    tl.store(out_ptr + 2 * BLOCK * BLOCK + tile, z)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_carried_tiles_change_places(draw, poisoned, check, n):
    x, y = draw("int32", (16, 16), -99, 99), draw("int32", (16, 16), -99, 99)
    out = poisoned("int32", (3, 16, 16))
    swapped_with_its_transpose[(1,)](x, y, out, n, BLOCK=16)
    z = np.zeros_like(x)
    for k in range(n):
        x, y, z = y.T, x, z + x.T * k
    check(out, np.stack([x, y, z]))


@triton.jit
def while_transposed(x_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + tile)
    rounds = tl.sum(tl.zeros([BLOCK], tl.int32))
    while tl.max(tl.max(tl.trans(x), axis=1), axis=0) < limit:
        x = tl.trans(x) + x
        rounds += 1
    tl.store(out_ptr + tile, x + rounds)


@pytest.mark.parametrize("limit", [0, 5000])
def test_a_while_loop_carries_a_tile_and_its_transpose(draw, poisoned, check, limit):
    x, out = draw("int32", (16, 16), 1, 99), poisoned("int32", (16, 16))
    while_transposed[(1,)](x, out, limit, BLOCK=16)
    rounds = 0
    while x.max() < limit:
        x, rounds = x.T + x, rounds + 1
    check(out, x + rounds)


@triton.jit
def branches_in_nested_loops(x_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + tile)
    sums = tl.zeros([BLOCK], tl.int32)
    for k in range(n):
        if k % 2 == 0:  # noqa: SIM108  (the branch is what is tested)
            x = tl.trans(x) - sums[None, :]
        else:
            x = x + sums[:, None]
        for j in range(m):
            sums += tl.sum(x, axis=0) + j
            x = tl.trans(x) // 3
    tl.store(out_ptr + tile, x + sums[:, None])


@pytest.mark.parametrize(("n", "m"), [(0, 2), (1, 1), (3, 0), (4, 2)])
def test_branches_and_nested_loops_carry_tiles(draw, poisoned, check, n, m):
    x, out = draw("int32", (16, 16), 0, 9), poisoned("int32", (16, 16))
    branches_in_nested_loops[(1,)](x, out, n, m, BLOCK=16)
    sums = np.zeros(16, np.int32)
    for k in range(n):
        x = x.T - sums[None, :] if k % 2 == 0 else x + sums[:, None]
        for j in range(m):
            sums = sums + x.sum(axis=0, dtype=np.int32) + j
            x = np.trunc(x.T / 3).astype(np.int32)
    check(out, x + sums[:, None])


@triton.jit
def binary_search(sorted_ptr, wanted_ptr, out_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tile = i[:, None] * COLUMNS + j[None, :]
    wanted = tl.load(wanted_ptr + tile)
    low = tl.zeros([ROWS, COLUMNS], tl.int32)
    high = low + n
    while tl.max(tl.max(high - low, axis=1), axis=0) > 0:
        middle = (low + high) // 2
        is_less = tl.load(sorted_ptr + middle, mask=low < high, other=0) < wanted
        open_ = low < high
        low, high = tl.where(open_ & is_less, middle + 1, low), tl.where(open_ & ~is_less, middle, high)
    tl.store(out_ptr + j[None, :] * ROWS + i[:, None], low)


def test_binary_search_with_tiles(draw, poisoned, check):
    numbers, wanted = np.sort(draw("int32", 100, -200, 200)), draw("int32", (16, 8), -250, 250)
    out = poisoned("int32", (8, 16))
    binary_search[(1,)](numbers, wanted, out, 100, ROWS=16, COLUMNS=8)
    check(out, np.searchsorted(numbers, wanted).T)


@triton.jit
def causal_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr
):
    """The blocks of keys on the diagonal are masked in a loop of their own."""
    start = tl.program_id(0) * BLOCK_M
    rows, columns, dims = start + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
    q = tl.load(q_ptr + rows[:, None] * HEAD + dims[None, :])
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD], tl.float32)
    for begin in range(0, start, BLOCK_N):
        k = tl.load(k_ptr + (begin + columns)[None, :] * HEAD + dims[:, None])
        scores = tl.dot(q, k) * scale
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp(scores - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + (begin + columns)[:, None] * HEAD + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    for begin in range(start, start + BLOCK_M, BLOCK_N):
        k = tl.load(k_ptr + (begin + columns)[None, :] * HEAD + dims[:, None])
        scores = tl.dot(q, k) * scale
        scores = tl.where(rows[:, None] >= (begin + columns)[None, :], scores, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp(scores - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + (begin + columns)[:, None] * HEAD + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    tl.store(out_ptr + rows[:, None] * HEAD + dims[None, :], acc / l_i[:, None])


@pytest.mark.parametrize(("block_m", "block_n"), [(64, 32), (32, 32)])
def test_causal_attention_in_two_loops(draw, poisoned, check_norm, block_m, block_n):
    n, head = 128, 32
    q, k, v = (draw("float16", (n, head)) for _ in range(3))
    out = poisoned("float32", (n, head))
    scale = head**-0.5
    causal_attention[(n // block_m,)](q, k, v, out, n, scale, BLOCK_M=block_m, BLOCK_N=block_n, HEAD=head)
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.where(np.tri(n, dtype=bool), q @ k.T * scale, -np.inf)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    check_norm(out, p / p.sum(axis=1, keepdims=True) @ v, 2e-3)

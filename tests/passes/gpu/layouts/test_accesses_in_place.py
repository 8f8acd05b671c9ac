"""Loads and stores in other layouts than coalesced ones: what is scanned, what is stored where it is."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

X = aligned(np.zeros(1 << 14, np.float32))


@deuteron.jit
def narrowed(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0).to(tl.int8), mask=i < n)


def test_what_is_narrowed_is_stored_where_it_is(rng):
    """Four integers of 32 bits in a load; as bytes four in a store, where 16 would go."""
    x, out = aligned(rng.integers(-99, 99, 4096).astype(np.int32)), aligned(np.zeros(4096, np.int8))
    kernel = emulate(narrowed, x, out, 4096 - 16, BLOCK=2048, grid=(2,))
    np.testing.assert_array_equal(out, np.where(np.arange(4096) < 4080, x, 0))
    assert kernel.metadata.shared == 0
    assert len(instructions_with(kernel, "ld.global")) == len(instructions_with(kernel, "st.global")) == 4


@deuteron.jit
def transposed(x, out, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    tl.store(out + j[:, None] * M + i[None, :], tl.trans(tl.load(x + i[:, None] * N + j[None, :])))


def test_what_would_be_scattered_is_converted(rng):
    x, out = aligned(rng.integers(-99, 99, (64, 64)).astype(np.int32)), aligned(np.zeros((64, 64), np.int32))
    kernel = emulate(transposed, x, out, M=64, N=64)
    np.testing.assert_array_equal(out, x.T)
    assert kernel.metadata.shared > 0


@deuteron.jit
def centred(x, means, out, rows, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    total = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + i
        mean = tl.load(means + row, mask=row < rows, other=0.0)
        here = (row[:, None] < rows) & (j[None, :] < WIDTH)
        values = tl.load(x + row[:, None] * WIDTH + j[None, :], mask=here, other=0.0)
        total += values.to(tl.float32) - mean[:, None]
    tl.store(out + j, tl.sum(total, 0))


def test_what_each_row_has_is_loaded_by_those_who_hold_it(rng):
    """A warp has four rows of a tile at once: it reads one sector of their means, where it would exchange four."""
    x, means = aligned(rng.integers(-9, 9, (80, 64)).astype(np.float16)), aligned(rng.standard_normal(80, np.float32))
    out = aligned(np.zeros(64, np.float32))
    kernel = emulate(centred, x, means, out, 80, WIDTH=64, ROWS=32)
    np.testing.assert_allclose(out, (x - means[:, None]).sum(0, dtype=np.float64), atol=1e-3)
    loop = generic_asm(kernel, "ttgir").split('"scf.for"')[1].split("scf.yield")[0]
    assert "convert_layout" not in loop and "barrier" not in loop


@deuteron.jit
def distances(x, y, out, m, n, dims, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for d in range(dims):
        away = tl.load(x + i * dims + d, mask=i < m, other=0)[:, None] - tl.load(y + j * dims + d, mask=j < n, other=0)
        total += away * away
    tl.store(out + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@pytest.mark.parametrize(("shape", "in_shared"), [((32, 32), False), ((32, 64), False), ((64, 64), True)])
def test_what_each_row_has_is_loaded_as_often_as_it_would_be_from_shared_memory(rng, shape, in_shared):
    """Eight rows a thread are as many loads by either way, and need no barrier in each iteration; sixteen go there."""
    x, y = (aligned(rng.standard_normal((rows, 5), np.float32)) for rows in (40, 131))
    out = aligned(np.zeros((40, 131), np.float32))
    grid = (-(-40 // shape[0]), -(-131 // shape[1]))
    kernel = emulate(distances, x, y, out, 40, 131, 5, M=shape[0], N=shape[1], grid=grid)
    np.testing.assert_allclose(out, ((x[:, None] - y) ** 2).sum(-1, dtype=np.float64), rtol=1e-5)
    assert (kernel.metadata.shared > 0) == in_shared


@deuteron.jit
def rotated(q, k, cos, HEADS: tl.constexpr, DIM: tl.constexpr):
    """One row of angles for two tiles, of which a thread holds 8 and 2 neighbours."""
    i = tl.arange(0, DIM)
    angles = tl.load(cos + i)[None, :]
    for_q = q + tl.arange(0, HEADS)[:, None] * DIM + i[None, :]
    for_k = k + tl.arange(0, HEADS // 4)[:, None] * DIM + i[None, :]
    tl.store(for_q, (tl.load(for_q) * angles).to(tl.float16))
    tl.store(for_k, (tl.load(for_k) * angles).to(tl.float16))


def test_what_two_tiles_need_is_loaded_for_each(rng):
    q, k = (aligned(rng.standard_normal((heads, 64)).astype(np.float16)) for heads in (32, 8))
    cos = aligned(rng.standard_normal(64, np.float32))
    expected = [(x * cos).astype(np.float16) for x in (q, k)]
    kernel = emulate(rotated, q, k, cos, HEADS=32, DIM=64, num_warps=8)
    np.testing.assert_array_equal(q, expected[0])
    np.testing.assert_array_equal(k, expected[1])
    assert kernel.metadata.shared == 0


@deuteron.jit
def edges(x, out, width, BLOCK: tl.constexpr):
    """Of bytes: a tap that threads read four at once between taps that they do not."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for tap in tl.static_range(3):
        here = (i + tap >= 1) & (i + tap - 1 < width)
        total += (tap + 1) * tl.load(x + i + tap - 1, mask=here, other=0).to(tl.int32)
    tl.store(out + i, total.to(tl.uint8), mask=i < width)


def test_taps_stay_where_they_are_added(rng):
    """An H100 took 1.2 times as long where the tap in the middle moved to the layout that the others left."""
    x, out = aligned(rng.integers(0, 40, 512).astype(np.uint8)), aligned(np.zeros(512, np.uint8))
    kernel = emulate(edges, x, out, 512, BLOCK=512)
    padded = np.pad(x, 1).astype(np.int64)
    np.testing.assert_array_equal(out, padded[:-2] + 2 * padded[1:-1] + 3 * padded[2:])
    assert kernel.metadata.shared == 0


@deuteron.jit
def found_places(places, x, out, BLOCK: tl.constexpr):
    """Addresses that are loaded, four in a thread, beside bytes that are loaded sixteen at once."""
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.load(places + i), tl.load(x + i))


def test_addresses_that_are_loaded_stay_where_they_are(rng):
    order = aligned(rng.permutation(2048).astype(np.int32))
    x, out = aligned(rng.integers(-99, 99, 2048).astype(np.int8)), aligned(np.zeros(2048, np.int8))
    emulate(found_places, order, x, out, BLOCK=2048)
    np.testing.assert_array_equal(out[order], x)


@deuteron.jit
def multiply(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@deuteron.jit
def recurrence(a, b, out, stride, n, TIME: tl.constexpr, BLOCK: tl.constexpr):
    t, columns = tl.arange(0, TIME), tl.arange(0, BLOCK)
    h = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n, TIME):
        places = (start + t)[:, None] * stride + columns[None, :]
        mask = (start + t < n)[:, None]
        x, y = tl.load(a + places, mask=mask, other=1), tl.load(b + places, mask=mask, other=0)
        factors, sums = tl.associative_scan((x.to(tl.int32), y.to(tl.int32)), 0, multiply)
        result = factors * h[None, :] + sums
        tl.store(out + places, result, mask=mask)
        h = tl.sum(tl.where((t == TIME - 1)[:, None], result, 0), 0)


@pytest.mark.parametrize(
    ("time", "block", "stride", "shuffles"),
    [(32, 64, 64, 0), (32, 32, 64, 1), (16, 16, 16, 1), (32, 64, 67, 0), (8, 256, 256, 0)],
)
def test_columns_are_scanned_by_few_threads(rng, time, block, stride, shuffles):
    n = 3 * time - 5
    a, b = (aligned(rng.integers(-3, 4, (n, stride)).astype(np.int16)) for _ in range(2))
    out = aligned(np.zeros((n, stride), np.int32))
    kernel = emulate(recurrence, a, b, out, stride, n, TIME=time, BLOCK=block)
    h, expected = np.zeros(block, np.int32), np.zeros((n, stride), np.int32)
    for t in range(n):
        h = h * a[t, :block] + b[t, :block]
        expected[t, :block] = h
    np.testing.assert_array_equal(out, expected)
    # Of the scan; of where a row comes after the first one, and of the sum for the next iteration, none.
    assert bool(instructions_with(kernel, "shfl.sync.idx")) == bool(shuffles)


@deuteron.jit
def find_sequences(ends, n, out, STEPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A binary search for each row, and the rows of what it finds."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    low, high = tl.zeros([ROWS], tl.int32), tl.full([ROWS], n, tl.int32)
    for _ in tl.static_range(STEPS):
        middle = (low + high) // 2
        is_after = tl.load(ends + middle, mask=rows < 100, other=0) <= rows
        low, high = tl.where(is_after, middle + 1, low), tl.where(is_after, high, middle)
    found = tl.load(ends + n + low, mask=rows < 100, other=0)
    places = found[:, None] * COLUMNS + columns[None, :]
    tl.store(out + places, tl.broadcast_to(columns[None, :], [ROWS, COLUMNS]), mask=(rows < 100)[:, None])


@pytest.mark.parametrize(("steps", "loads"), [(1, 16), (6, 7)])
def test_many_loads_one_after_the_other_are_not_repeated_in_all_threads_of_a_row(rng, steps, loads):
    """Of 128 rows a thread needs 8; it searches one."""
    n = 2**steps - 1
    ends, rows = np.sort(rng.choice(np.arange(1, 100), n, replace=False)), rng.permutation(100)
    table = aligned(np.concatenate([ends, rows]).astype(np.int32))
    out = aligned(np.full((100, 32), -1, np.int32))
    kernel = emulate(find_sequences, table, n, out, STEPS=steps, ROWS=128, COLUMNS=32)
    found = table[n + np.searchsorted(ends, np.arange(100), side="right")]
    expected = np.full((100, 32), -1, np.int32)
    expected[found] = np.arange(32)
    np.testing.assert_array_equal(out, expected)
    assert kernel.asm["ptx"].count("ld.global") == loads


@deuteron.jit
def stacked(x, out, n, BLOCK: tl.constexpr):
    """As a compiler of programs stacks the turned halves of pairs."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    even, pair = i % 2 < 1, i // 2
    first, second = tl.load(x + 2 * pair, even, other=0.0), tl.load(x + 2 * pair + 1, even, other=0.0)
    third, fourth = tl.load(x + 2 * pair, i % 2 >= 1, other=0.0), tl.load(x + 2 * pair + 1, i % 2 >= 1, other=0.0)
    tl.store(out + i, tl.where(even, first - second, third + fourth))


def test_pairs_are_stored_in_the_vectors_of_their_store(rng):
    x, out = aligned(rng.integers(-9, 9, 2048).astype(np.float32)), aligned(np.zeros(2048, np.float32))
    kernel = emulate(stacked, x, out, 2048, BLOCK=1024, grid=(2,))
    a, b = x.reshape(-1, 2).T
    np.testing.assert_array_equal(out.reshape(-1, 2), np.stack([a - b, a + b], 1))
    assert len(instructions_with(kernel, "st.global")) == 2 and kernel.metadata.shared == 0


@deuteron.jit
def unpacked(q, scales, out, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    fields = tl.load(q + i // 2, mask=i < n, other=0) >> (i % 2 * 4).to(tl.uint8) & 15
    tl.store(out + i, (fields * tl.load(scales + i // GROUP, mask=i < n, other=0.0)).to(tl.float16), mask=i < n)


def test_scales_move_where_what_they_scale_moved(rng):
    """Sixteen neighbours for the bytes, eight for the halves: the scales go to the first, then both to the second."""
    q, scales = aligned(rng.integers(0, 255, 2048).astype(np.uint8)), aligned(rng.integers(1, 9, 32).astype(np.float32))
    out = aligned(np.zeros(4096, np.float16))
    kernel = emulate(unpacked, q, scales, out, 4096 - 16, GROUP=128, BLOCK=2048, grid=(2,))
    fields = np.stack([q & 15, q >> 4], 1).ravel() * scales.repeat(128)
    np.testing.assert_array_equal(out, np.where(np.arange(4096) < 4080, fields, 0))
    assert kernel.metadata.shared == 0


@deuteron.jit
def masks_beside(x, biases, out, positive, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.load(x + i) + tl.load(biases + i // 64)
    tl.store(out + i, y)
    tl.store(positive + i, y > 0)


def test_a_store_that_is_not_alone_stays_where_its_value_is(rng):
    """Eight bytes in a thread would load a bias less, but the floats are stored in fours."""
    x, biases = aligned(rng.integers(-9, 9, 1024).astype(np.float32)), aligned(np.arange(16, dtype=np.float32) - 8)
    out, positive = aligned(np.zeros(1024, np.float32)), aligned(np.zeros(1024, np.bool_))
    kernel = emulate(masks_beside, x, biases, out, positive, BLOCK=1024)
    np.testing.assert_array_equal(out, x + biases.repeat(64))
    np.testing.assert_array_equal(positive, out > 0)
    assert kernel.metadata.shared == 0


@deuteron.jit
def decayed(q, k, gates, out, depth, N: tl.constexpr, BK: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in range(0, depth, BK):
        at = i[:, None] * depth + start + j[None, :]
        gate = tl.load(gates + at)
        first = tl.load(q + at).to(tl.float32) * tl.exp(gate)
        second = tl.load(k + at).to(tl.float32) * tl.exp(-gate)
        acc += tl.dot(first.to(tl.float16), tl.trans(second.to(tl.float16)))
    tl.store(out + i[:, None] * N + i[None, :], acc)


@pytest.mark.parametrize(("num_stages", "converted"), [(1, 1), (3, 3)])
def test_what_an_operand_is_computed_of_is_loaded_where_it_is(rng, num_stages, converted):
    """Four gates in an access of 16 bytes, of eight halves that they belong to. Copied ahead they would be loaded from
    there; the sum is converted for its store.
    """
    q, k = (aligned(rng.standard_normal((64, 128)).astype(np.float16)) for _ in range(2))
    gates, out = aligned(-rng.random((64, 128), np.float32)), aligned(np.zeros((64, 64), np.float32))
    kernel = emulate(decayed, q, k, gates, out, 128, N=64, BK=64, num_stages=num_stages)
    first, second = (x.astype(np.float64) * np.exp(sign * gates) for x, sign in ((q, 1), (k, -1)))
    np.testing.assert_allclose(out, first @ second.T, rtol=1e-2, atol=2e-2 * np.sqrt(128))
    assert kernel.asm["ttgir"].count('"ttg.convert_layout"') == converted


@deuteron.jit
def tapped(x, weights, out, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.arange(0, 8), tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + j[None, :]
    tl.store(out + at, tl.load(x + at) * tl.load(weights + j * STRIDE)[None, :])


@pytest.mark.parametrize(("stride", "loads"), [(1, 2), (4, 4)])
def test_numbers_at_a_stride_are_loaded_by_neighbours_and_exchanged(rng, stride, loads):
    """Of 256 halves a thread loads eight neighbours; at every fourth place four, which it exchanges."""
    x, weights = (aligned(rng.integers(-9, 9, n).astype(np.float16)) for n in (2048, 1024))
    out = aligned(np.zeros(2048, np.float16))
    kernel = emulate(tapped, x, weights, out, STRIDE=stride, BLOCK=256, num_warps=2)
    np.testing.assert_array_equal(out.reshape(8, 256), x.reshape(8, 256) * weights[: 256 * stride : stride])
    assert (kernel.metadata.shared > 0) == (stride > 1)
    assert len(instructions_with(kernel, "ld.global")) - 4 == {1: 1, 4: 4}[stride]


@deuteron.jit
def wrapped(x, out, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    left, right = tl.load(x + (i + n - 1) % n), tl.load(x + (i + 1) % n)
    tl.store(out + i, tl.load(x + i, mask=i < n) + left + right, mask=i < n)


def test_neighbours_that_wrap_around_are_loaded_where_they_are_needed(rng):
    x, out = aligned(rng.integers(-9, 9, 1000, np.int8)), aligned(np.zeros(1000, np.int8))
    kernel = emulate(wrapped, x, out, 1000, N=1024, num_warps=4)
    assert "convert_layout" not in kernel.asm["ttgir"]
    np.testing.assert_array_equal(out, x + np.roll(x, 1) + np.roll(x, -1))

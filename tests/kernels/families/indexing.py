"""Rows by index: embeddings and their gradient, sums of segments, gathers, jagged rows, transposes."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, wide


@triton.jit
def embedding_forward_kernel(
    table_ptr, index_ptr, out_ptr, n, dim: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    index = tl.load(index_ptr + m, mask=m < n, other=0)
    mask = (m < n)[:, None] & (d < dim)[None, :]
    rows = tl.load(table_ptr + index[:, None] * dim + d[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + m[:, None] * dim + d[None, :], rows, mask=mask)


@triton.jit
def embedding_backward_kernel(
    gradient_ptr, index_ptr, table_ptr, n, dim: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Rows of one index add up in the table's gradient."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    index = tl.load(index_ptr + m, mask=m < n, other=0)
    mask = (m < n)[:, None] & (d < dim)[None, :]
    gradient = tl.load(gradient_ptr + m[:, None] * dim + d[None, :], mask=mask, other=0.0)
    tl.atomic_add(table_ptr + index[:, None] * dim + d[None, :], gradient, mask=mask)


@triton.jit
def segment_sum_kernel(x_ptr, begin_ptr, out_ptr, dim, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    """A segment of rows for each program, of any length."""
    segment = tl.program_id(0)
    begin, end = tl.load(begin_ptr + segment), tl.load(begin_ptr + segment + 1)
    d = tl.arange(0, BLOCK_D)
    total = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    while begin < end:
        t = begin + tl.arange(0, BLOCK_T)
        mask = (t < end)[:, None] & (d < dim)[None, :]
        total += tl.load(x_ptr + t[:, None] * dim + d[None, :], mask=mask, other=0.0)
        begin += BLOCK_T
    tl.store(out_ptr + segment * dim + d, tl.sum(total, 0), mask=d < dim)


@triton.jit
def segment_scan_combine(value_a, flag_a, value_b, flag_b):
    return tl.where(flag_b != 0, value_b, value_a + value_b), flag_a | flag_b


@triton.jit
def segmented_cumsum_kernel(x_ptr, flag_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A flag begins a segment."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    flags = tl.load(flag_ptr + offsets, mask=offsets < n, other=0).to(tl.int32)
    sums, _ = tl.associative_scan((x, flags), 0, segment_scan_combine)
    tl.store(out_ptr + offsets, sums, mask=offsets < n)


@triton.jit
def beam_gather_kernel(x_ptr, beam_ptr, out_ptr, beams: tl.constexpr, n, BLOCK: tl.constexpr):
    """Each beam goes on from the one that it came from."""
    batch, beam = tl.program_id(0), tl.program_id(1)
    source = tl.load(beam_ptr + batch * beams + beam)
    for i in range(0, n, BLOCK):
        offsets = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + (batch * beams + source) * n + offsets, mask=offsets < n)
        tl.store(out_ptr + (batch * beams + beam) * n + offsets, x, mask=offsets < n)


@triton.jit
def permute_columns_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr, BM: tl.constexpr):
    """The same permutation of each row, of values that are there already."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    at = rows[:, None] * N + columns[None, :]
    x = tl.load(x_ptr + at)
    index = tl.load(index_ptr + columns)
    index = tl.broadcast_to(index[None, :], (BM, N))
    tl.store(out_ptr + at, tl.gather(x, index, axis=1))


@triton.jit
def jagged_to_padded_kernel(
    values_ptr, begin_ptr, out_ptr, most, dim, padding, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr
):
    row = tl.program_id(1)
    begin = tl.load(begin_ptr + row)
    length = tl.load(begin_ptr + row + 1) - begin
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    d = tl.arange(0, BLOCK_D)
    inside = (d < dim)[None, :]
    at = (begin + t)[:, None] * dim + d[None, :]
    values = tl.load(values_ptr + at, mask=(t < length)[:, None] & inside, other=padding)
    tl.store(out_ptr + (row * most + t)[:, None] * dim + d[None, :], values, mask=(t < most)[:, None] & inside)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(x_ptr + rm[:, None] * N + rn[None, :], mask=mask)
    tl.store(out_ptr + rn[:, None] * M + rm[None, :], tl.trans(x), mask=tl.trans(mask))


@triton.jit
def masked_row_argmax_kernel(x_ptr, valid_ptr, value_ptr, index_ptr, n, BLOCK: tl.constexpr):
    """The largest of a long row where it counts, and the first place where it is."""
    row = tl.program_id(0)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for i in range(0, n, BLOCK):
        columns = i + tl.arange(0, BLOCK)
        valid = tl.load(valid_ptr + row * n + columns, mask=columns < n, other=0) != 0
        x = tl.load(x_ptr + row * n + columns, mask=valid, other=float("-inf"))
        better = x > best
        best = tl.where(better, x, best)
        place = tl.where(better, columns, place)
    value = tl.max(best, 0)
    tl.store(value_ptr + row, value)
    tl.store(index_ptr + row, tl.min(tl.where(best == value, place, n), 0))


@case
def embedding(rng: np.random.Generator) -> Case:
    table, index = normal(rng, (11, 20)), rng.integers(0, 11, 30)
    out, gradient, total = poisoned((30, 20)), normal(rng, (30, 20)), np.zeros((11, 20), np.float32)
    expected = np.zeros((11, 20))
    np.add.at(expected, index, wide(gradient))
    options = {"dim": 20, "BLOCK_M": 8, "BLOCK_N": 16}
    launches = [
        Launch(embedding_forward_kernel, (4, 2), (table, index, out, 30), options),
        Launch(embedding_backward_kernel, (4, 2), (gradient, index, total, 30), options),
    ]
    return Case(launches, [(out, table[index], 0), (total, expected, 1e-5)])


@case
def segment_sum(rng: np.random.Generator) -> Case:
    begins = np.array([0, 5, 5, 30, 41], np.int32)
    x, out = normal(rng, (41, 10)), poisoned((4, 10))
    expected = np.stack([wide(x)[a:b].sum(0) for a, b in zip(begins, begins[1:], strict=False)])
    launch = Launch(segment_sum_kernel, (4,), (x, begins, out, 10), {"BLOCK_T": 8, "BLOCK_D": 16, "num_warps": 1})
    return Case([launch], [(out, expected, 1e-5)])


@case
def segmented_cumsum(rng: np.random.Generator) -> Case:
    n = 200
    x, flags, out = rng.integers(-9, 9, n).astype(np.int32), (rng.random(n) < 0.1).astype(np.int8), poisoned(n, "int32")
    expected, total = np.empty(n), 0
    for i in range(n):
        total = x[i] if flags[i] else total + x[i]
        expected[i] = total
    return Case([Launch(segmented_cumsum_kernel, (1,), (x, flags, out, n), {"BLOCK": 256})], [(out, expected, 0)])


@case
def beam_gather(rng: np.random.Generator) -> Case:
    x, beams, out = normal(rng, (2, 4, 70), "float16"), rng.integers(0, 4, (2, 4)), poisoned((2, 4, 70), "float16")
    launch = Launch(beam_gather_kernel, (2, 4), (x, beams, out), {"beams": 4, "n": 70, "BLOCK": 32})
    return Case([launch], [(out, np.stack([x[i][beams[i]] for i in range(2)]), 0)])


@case
def permute_columns(rng: np.random.Generator) -> Case:
    x, index, out = normal(rng, (8, 64)), rng.permutation(64).astype(np.int32), poisoned((8, 64))
    return Case([Launch(permute_columns_kernel, (2,), (x, index, out), {"N": 64, "BM": 4})], [(out, x[:, index], 0)])


@case
def jagged_to_padded(rng: np.random.Generator) -> Case:
    begins, most = np.array([0, 3, 3, 12], np.int64), 10
    values, out = normal(rng, (12, 6)), poisoned((3, most, 6))
    expected = np.full(out.shape, -1.0)
    for row in range(3):
        part = values[begins[row] : begins[row + 1]]
        expected[row, : len(part)] = part
    args = values, begins, out, most, 6, -1.0
    return Case([Launch(jagged_to_padded_kernel, (2, 3), args, {"BLOCK_T": 8, "BLOCK_D": 8})], [(out, expected, 0)])


@case
def transpose(rng: np.random.Generator) -> Case:
    x, out = normal(rng, (45, 70), "float16"), poisoned((70, 45), "float16")
    return Case([Launch(transpose_kernel, (2, 3), (x, out, 45, 70), {"BM": 32, "BN": 32})], [(out, x.T, 0)])


@case
def masked_row_argmax(rng: np.random.Generator) -> Case:
    x, valid = np.round(normal(rng, (4, 150)), 1), (rng.random((4, 150)) < 0.8).astype(np.uint8)
    value, index = poisoned(4), poisoned(4, "int32")
    kept = np.where(valid, x, -np.inf)
    launch = Launch(masked_row_argmax_kernel, (4,), (x, valid, value, index, 150), {"BLOCK": 64})
    return Case([launch], [(value, kept.max(1), 0), (index, kept.argmax(1), 0)])

"""Sorts, counts of digits, scans with indices and with segments."""

import triton
import triton.language as tl


@triton.jit
def argsort_rows(x_ptr, values_ptr, index_ptr, N: tl.constexpr, ROWS: tl.constexpr):
    """By keys that hold the value, made an integer whose order is the float's, and the place."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + n[None, :])
    bits = x.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    keys = (bits.to(tl.int64) << 32) | n[None, :].to(tl.int64)
    keys = tl.sort(keys, dim=1)
    places = (keys & 0xFFFFFFFF).to(tl.int32)
    bits = (keys >> 32).to(tl.int32)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(values_ptr + r[:, None] * N + n[None, :], bits.to(tl.float32, bitcast=True))
    tl.store(index_ptr + r[:, None] * N + n[None, :], places)


@triton.jit
def larger(value_a, index_a, value_b, index_b):
    is_a = (value_a > value_b) | ((value_a == value_b) & (index_a > index_b))
    return tl.where(is_a, value_a, value_b), tl.where(is_a, index_a, index_b)


@triton.jit
def cumulative_max(x_ptr, values_ptr, index_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=-float("inf"))
    values, index = tl.associative_scan((x, i), 0, larger)
    tl.store(values_ptr + row * N + i, values, mask=i < N)
    tl.store(index_ptr + row * N + i, index.to(tl.int64), mask=i < N)


@triton.jit
def add_scans(value_a, flag_a, value_b, flag_b):
    return tl.where(flag_b != 0, value_b, value_a + value_b), flag_a | flag_b


@triton.jit
def segmented_scan(x_ptr, flags_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Sums that begin anew at each flag, in rows."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    flags = tl.load(flags_ptr + row * N + i, mask=i < N, other=0).to(tl.int32)
    out, _ = tl.associative_scan((x, flags), 0, add_scans)
    tl.store(out_ptr + row * N + i, out, mask=i < N)


@triton.jit
def radix_counts(x_ptr, counts_ptr, n, shift, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """A pass of a radix sort: how many of each block have each digit; counts [BINS, blocks]."""
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    digits = (x >> shift) & (BINS - 1)
    counts = tl.histogram(digits, BINS)
    tl.store(counts_ptr + tl.arange(0, BINS) * tl.num_programs(0) + block, counts)

"""Quantisation by groups and by tokens, and 4 bit floats read back through a table."""

import triton
import triton.language as tl


@triton.jit
def quantise_groups(x_ptr, out_ptr, scales_ptr, groups, GROUP: tl.constexpr, ROWS: tl.constexpr):
    """fp8 with a scale for each 128 elements of a row."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, GROUP)
    mask = (rows < groups)[:, None]
    x = tl.load(x_ptr + rows[:, None] * GROUP + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-10)
    scale = largest / 448.0
    q = tl.clamp(x / scale[:, None], -448.0, 448.0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * GROUP + columns[None, :], q, mask=mask)
    tl.store(scales_ptr + rows, scale, mask=rows < groups)


@triton.jit
def quantise_tokens_int8(x_ptr, out_ptr, scales_ptr, stride_x, stride_out, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    x = tl.load(x_ptr + row * stride_x + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x)), 1e-10) / 127
    q = x * (127 / tl.maximum(tl.max(tl.abs(x)), 1e-10))
    q = tl.floor(q + 0.5).to(tl.int8)
    tl.store(out_ptr + row * stride_out + columns, q, mask=mask)
    tl.store(scales_ptr + row, scale)


@triton.jit
def dequantise_nf4(packed_ptr, absmax_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    """Two numbers of four bits in a byte, looked up, times the largest of their 64."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    packed = tl.load(packed_ptr + places, mask=mask, other=0)
    high = tl.load(table_ptr + (packed >> 4).to(tl.int32))
    low = tl.load(table_ptr + (packed & 15).to(tl.int32))
    scale = tl.load(absmax_ptr + places * 2 // GROUP, mask=mask, other=0.0)
    out = tl.interleave(high * scale, low * scale)
    wide = tl.program_id(0) * BLOCK * 2 + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + wide, out.to(out_ptr.dtype.element_ty), mask=wide < 2 * n)

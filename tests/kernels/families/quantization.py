"""Quantising and back: int8 by rows, fp8 by groups and by blocks, int4 in pairs, mxfp4."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import ml_dtypes
import numpy as np
from tests.kernels.case import Case, Launch, case, dtype_of, normal, poisoned, wide

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@triton.jit
def quantize_rows_kernel(x_ptr, q_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    """int8: the largest of a row is 127; halves go away from 0."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x)) / 127.0, 1e-10)
    scaled = x / scale
    rounded = tl.where(scaled >= 0, tl.floor(scaled + 0.5), tl.ceil(scaled - 0.5))
    tl.store(q_ptr + row * n + columns, rounded.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def dequantize_rows_kernel(q_ptr, scale_ptr, out_ptr, n, total, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < total
    q = tl.load(q_ptr + offsets, mask=mask)
    scale = tl.load(scale_ptr + offsets // n, mask=mask)
    tl.store(out_ptr + offsets, q * scale, mask=mask)


@triton.jit
def group_fp8_kernel(x_ptr, q_ptr, scale_ptr, group, eps, low, high, BLOCK: tl.constexpr):
    """A group of neighbours for each program."""
    g = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < group
    x = tl.load(x_ptr + g * group + columns, mask=mask, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x)), eps)
    scale = largest / high
    tl.store(q_ptr + g * group + columns, tl.clamp(x / scale, low, high).to(q_ptr.dtype.element_ty), mask=mask)
    tl.store(scale_ptr + g, scale)


@triton.jit
def block_dequantize_kernel(x_ptr, s_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    """A scale for each square block of a weight."""
    pid_m, pid_n = tl.program_id(axis=0), tl.program_id(axis=1)
    rows = pid_m * BLOCK + tl.arange(0, BLOCK)
    columns = pid_n * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * N + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    s = tl.load(s_ptr + pid_m * tl.cdiv(N, BLOCK) + pid_n)
    tl.store(y_ptr + at, x * s, mask=mask)


@triton.jit
def int4_dequantize_kernel(q_ptr, scale_ptr, zero_ptr, out_ptr, n_columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Two values in a byte, the lower four bits first; a scale and a zero for each group of a row."""
    row = tl.program_id(0)
    pairs = tl.arange(0, BLOCK // 2)
    packed = tl.load(q_ptr + row * (n_columns // 2) + pairs, mask=pairs * 2 < n_columns, other=0)
    values = tl.interleave(packed & 0xF, packed >> 4).to(tl.float32)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    of_group = row * tl.cdiv(n_columns, GROUP) + columns // GROUP
    scale = tl.load(scale_ptr + of_group, mask=mask, other=1.0)
    zero = tl.load(zero_ptr + of_group, mask=mask, other=0)
    out = (values - zero.to(tl.float32)) * scale
    tl.store(out_ptr + row * n_columns + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def int4_pack_kernel(q_ptr, packed_ptr, n, BLOCK: tl.constexpr):
    """Eight values of 0 to 15 in a word, the first in the lowest bits."""
    words = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    nibbles = tl.arange(0, 8)
    at = words[:, None] * 8 + nibbles[None, :]
    q = tl.load(q_ptr + at, mask=at < n, other=0).to(tl.uint32)
    packed = tl.xor_sum(q << (nibbles[None, :] * 4).to(tl.uint32), axis=1)
    tl.store(packed_ptr + words, packed.to(tl.int32, bitcast=True), mask=words * 8 < n)


@triton.jit
def mxfp4_quantize_kernel(x_ptr, q_ptr, scale_ptr, n_blocks, BLOCKS: tl.constexpr):
    """Blocks of 32 values: a power of two, eight bits of exponent, and two values of e2m1 in a byte."""
    blocks = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    lanes = tl.arange(0, 32)
    mask = blocks[:, None] < n_blocks
    x = tl.load(x_ptr + blocks[:, None] * 32 + lanes[None, :], mask=mask, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(x), axis=1)
    exponent = ((largest.to(tl.int32, bitcast=True) >> 23) & 0xFF) - 2
    exponent = tl.maximum(exponent, 0)
    scale = (tl.maximum(254 - exponent, 1) << 23).to(tl.float32, bitcast=True)
    y = tl.minimum(tl.abs(x * scale[:, None]), 6.0)
    step = tl.where(y < 2.0, 0.5, tl.where(y < 4.0, 1.0, 2.0))
    ratio = y / step
    low = tl.floor(ratio)
    tie = ratio - low == 0.5
    is_odd = (low.to(tl.int32) & 1) == 1
    rounded = tl.where(tie, low + is_odd.to(tl.float32), tl.floor(ratio + 0.5)) * step
    code = tl.where(rounded < 2.0, rounded * 2, tl.where(rounded < 4.0, rounded + 2, rounded * 0.5 + 4)).to(tl.uint8)
    code |= (x < 0).to(tl.uint8) << 3
    even, odd = tl.split(tl.reshape(code, (BLOCKS, 16, 2)))
    tl.store(q_ptr + blocks[:, None] * 16 + tl.arange(0, 16)[None, :], even | (odd << 4), mask=mask)
    tl.store(scale_ptr + blocks, exponent.to(tl.uint8), mask=blocks < n_blocks)


@triton.jit
def mxfp4_dequantize_kernel(q_ptr, scale_ptr, table_ptr, out_ptr, n_blocks, BLOCKS: tl.constexpr):
    """By a table of the sixteen values."""
    blocks = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    bytes_ = tl.arange(0, 16)
    mask = blocks[:, None] < n_blocks
    packed = tl.load(q_ptr + blocks[:, None] * 16 + bytes_[None, :], mask=mask, other=0).to(tl.int32)
    scale = (tl.load(scale_ptr + blocks, mask=blocks < n_blocks, other=127).to(tl.int32) << 23).to(
        tl.float32, bitcast=True
    )
    low = tl.load(table_ptr + (packed & 15)) * scale[:, None]
    high = tl.load(table_ptr + (packed >> 4)) * scale[:, None]
    at = blocks[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out_ptr + at, tl.interleave(low, high).to(out_ptr.dtype.element_ty), mask=mask)


@case
def quantize_rows(rng: np.random.Generator) -> Case:
    x, q, scale, back = normal(rng, (5, 90)), poisoned((5, 90), "int8"), poisoned(5), poisoned((5, 90))
    expected = np.abs(wide(x)).max(1) / 127
    codes = wide(x) / expected[:, None]
    launches = [
        Launch(quantize_rows_kernel, (5,), (x, q, scale, 90), {"BLOCK": 128}),
        Launch(dequantize_rows_kernel, (4,), (q, scale, back, 90, 450), {"BLOCK": 128}),
    ]
    return Case(launches, [(scale, expected, 1e-6), (q, codes, 0.501 / 127), (back, wide(x), 0.501 / 127)])


@case
def group_fp8(rng: np.random.Generator) -> Case:
    group, n = 48, 6
    x = normal(rng, (n, group), "bfloat16", 10)
    q, scale = poisoned((n, group), "float8_e4m3fn"), poisoned(n)
    expected = (np.abs(wide(x)).max(1) / 448).astype(np.float32)
    args = x, q, scale, group, 1e-10, -448.0, 448.0
    codes = (x.astype(np.float32) / expected[:, None]).astype(ml_dtypes.float8_e4m3fn)
    launch = Launch(group_fp8_kernel, (n,), args, {"BLOCK": 64, "num_warps": 1})
    return Case([launch], [(scale, expected, 1e-6), (q, wide(codes), 1e-1)])


@case
def block_dequantize(rng: np.random.Generator) -> Case:
    m, n, block = 40, 50, 16
    x, y = normal(rng, (m, n)).astype(dtype_of("float8_e4m3fn")), poisoned((m, n), "bfloat16")
    s = np.abs(normal(rng, (3, 4)))
    scales = np.repeat(np.repeat(wide(s), block, 0), block, 1)[:m, :n]
    launch = Launch(block_dequantize_kernel, (3, 4), (x, s, y, m, n), {"BLOCK": block})
    return Case([launch], [(y, wide(x) * scales, 1e-2)])


@case
def int4_dequantize(rng: np.random.Generator) -> Case:
    rows, n, group = 3, 96, 32
    q, scale = rng.integers(0, 16, (rows, n)).astype(np.uint8), np.abs(normal(rng, (rows, 3), "float16"))
    zero, out = rng.integers(0, 16, (rows, 3)).astype(np.uint8), poisoned((rows, n), "float16")
    packed = q[:, ::2] | (q[:, 1::2] << 4)
    expected = (wide(q) - np.repeat(wide(zero), group, 1)) * np.repeat(wide(scale), group, 1)
    launch = Launch(int4_dequantize_kernel, (rows,), (packed, scale, zero, out, n), {"GROUP": group, "BLOCK": 128})
    return Case([launch], [(out, expected, 1e-3)])


@case
def int4_pack(rng: np.random.Generator) -> Case:
    q, packed = rng.integers(0, 16, 203).astype(np.int32), poisoned(26, "int32")
    words = np.pad(q, (0, 5)).reshape(26, 8).astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))
    expected = np.bitwise_or.reduce(words, axis=1).view(np.int32)
    return Case([Launch(int4_pack_kernel, (2,), (q, packed, 203), {"BLOCK": 16})], [(packed, expected, 0)])


@case
def mxfp4(rng: np.random.Generator) -> Case:
    """Quantised and back: no further off than half a step; what is representable comes back as it was."""
    n = 11
    signs = rng.choice([-1, 1], (n, 32))
    exponents = rng.integers(-20, 20, n)
    x = (signs * E2M1[rng.integers(0, 8, (n, 32))] * 2.0 ** exponents[:, None]).astype(np.float32)
    x[:, 5] = 6 * 2.0**exponents
    q, scale, out = poisoned((n, 16), "uint8"), poisoned(n, "uint8"), poisoned((n, 32))
    table = np.concatenate([E2M1, -E2M1]).astype(np.float32)
    launches = [
        Launch(mxfp4_quantize_kernel, (3,), (x, q, scale, n), {"BLOCKS": 4}),
        Launch(mxfp4_dequantize_kernel, (3,), (q, scale, table, out, n), {"BLOCKS": 4}),
    ]
    return Case(launches, [(scale, exponents + 127, 0), (out, x, 0)])

"""Gated activations, forward and backward, a row of a matrix for each program."""

from __future__ import annotations

import math

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, sigmoid, silu, wide


@triton.jit
def silu_of(x):
    return x * tl.sigmoid(x)


@triton.jit
def tanh_of(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def swiglu_forward_kernel(a_ptr, b_ptr, c_ptr, row_stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    a = tl.load(a_ptr + row * row_stride + columns, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row * row_stride + columns, mask=mask, other=0)
    tl.store(c_ptr + row * row_stride + columns, silu_of(a).cast(b.dtype) * b, mask=mask)


@triton.jit
def swiglu_backward_kernel(dc_ptr, a_ptr, b_ptr, row_stride, n_columns, BLOCK: tl.constexpr):
    """The gradients take the place of `a` and `b`."""
    row = tl.program_id(0).to(tl.int64)
    dc_ptr += row * row_stride
    a_ptr += row * row_stride
    b_ptr += row * row_stride
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    dc = tl.load(dc_ptr + columns, mask=mask, other=0)
    a = tl.load(a_ptr + columns, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + columns, mask=mask, other=0)
    gate = tl.sigmoid(a)
    activated = a * gate
    db = dc * activated
    da = dc * (activated * (1 - gate) + gate) * b
    tl.store(a_ptr + columns, da, mask=mask)
    tl.store(b_ptr + columns, db, mask=mask)


@triton.jit
def geglu_forward_kernel(a_ptr, b_ptr, c_ptr, row_stride, n_columns: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    a = tl.load(a_ptr + row * row_stride + columns, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row * row_stride + columns, mask=mask, other=0)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    activated = 0.5 * a * (1 + tanh_of(inner))
    tl.store(c_ptr + row * row_stride + columns, activated.to(b.dtype) * b, mask=mask)


@triton.jit
def geglu_backward_kernel(
    dc_ptr, a_ptr, b_ptr, da_ptr, db_ptr, row_stride, n_columns: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    offsets = row * row_stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n_columns
    dc = tl.load(dc_ptr + offsets, mask=mask, other=0)
    a = tl.load(a_ptr + offsets, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask, other=0)
    scale = 0.7978845608028654
    t = tanh_of(scale * (a + 0.044715 * a * a * a))
    tl.store(db_ptr + offsets, dc * (0.5 * a * (1 + t)), mask=mask)
    slope = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * scale * (1 + 3 * 0.044715 * a * a)
    tl.store(da_ptr + offsets, dc * slope * b, mask=mask)


@triton.jit
def gelu_bias_kernel(x_ptr, bias_ptr, out_ptr, n, n_columns, BLOCK: tl.constexpr):
    """By the error function; the bias is that of a column."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x += tl.load(bias_ptr + offsets % n_columns, mask=mask, eviction_policy="evict_last").to(tl.float32)
    y = x * 0.5 * (1.0 + tl.math.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def tanh_softcap_kernel(x_ptr, n, cap, BLOCK: tl.constexpr, IS_RELU: tl.constexpr = False):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    x = cap * tanh_of(x / cap) if not IS_RELU else tl.maximum(x, 0.0)
    tl.store(x_ptr + offsets, x, mask=offsets < n)


def gelu_tanh(a):
    return 0.5 * a * (1 + np.tanh(0.7978845608028654 * (a + 0.044715 * a**3)))


@case
def swiglu_forward(rng: np.random.Generator) -> Case:
    a, b, c = normal(rng, (5, 300), "float16"), normal(rng, (5, 300), "float16"), poisoned((5, 300), "float16")
    launch = Launch(swiglu_forward_kernel, (5,), (a, b, c, 300, 300), {"BLOCK": 512})
    return Case([launch], [(c, silu(wide(a)) * wide(b), 2e-3)])


@case
def swiglu_backward(rng: np.random.Generator) -> Case:
    dc, a, b = (normal(rng, (4, 200)) for _ in range(3))
    s = sigmoid(wide(a))
    expected = wide(dc) * (silu(wide(a)) * (1 - s) + s) * wide(b), wide(dc) * silu(wide(a))
    launch = Launch(swiglu_backward_kernel, (4,), (dc, a, b, 200, 200), {"BLOCK": 256, "num_warps": 2})
    return Case([launch], [(a, expected[0], 1e-5), (b, expected[1], 1e-5)])


@case
def geglu_forward(rng: np.random.Generator) -> Case:
    a, b, c = (normal(rng, (3, 130), "bfloat16") for _ in range(3))
    launch = Launch(geglu_forward_kernel, (3,), (a, b, c, 130), {"n_columns": 130, "BLOCK": 256})
    return Case([launch], [(c, gelu_tanh(wide(a)) * wide(b), 1e-2)])


@case
def geglu_backward(rng: np.random.Generator) -> Case:
    dc, a, b = (normal(rng, (3, 130)) for _ in range(3))
    da, db = poisoned(a.shape), poisoned(a.shape)
    h = 1e-5
    slope = (gelu_tanh(wide(a) + h) - gelu_tanh(wide(a) - h)) / (2 * h)
    launch = Launch(geglu_backward_kernel, (3,), (dc, a, b, da, db, 130), {"n_columns": 130, "BLOCK": 256})
    return Case([launch], [(da, wide(dc) * slope * wide(b), 1e-5), (db, wide(dc) * gelu_tanh(wide(a)), 1e-5)])


@case
def gelu_bias(rng: np.random.Generator) -> Case:
    x, bias, out = normal(rng, (7, 45), "float16"), normal(rng, 45, "float16"), poisoned((7, 45), "float16")
    z = wide(x) + wide(bias)
    gaussian = np.vectorize(math.erf)(z / np.sqrt(2))
    launch = Launch(gelu_bias_kernel, (3,), (x, bias, out, x.size, 45), {"BLOCK": 128})
    return Case([launch], [(out, 0.5 * z * (1 + gaussian), 2e-3)])


@case
def softcap(rng: np.random.Generator) -> Case:
    x, y = normal(rng, 500, scale=20), normal(rng, 500)
    expected = 30 * np.tanh(wide(x) / 30), np.maximum(wide(y), 0)
    launches = [
        Launch(tanh_softcap_kernel, (2,), (x, 500, 30.0), {"BLOCK": 256}),
        Launch(tanh_softcap_kernel, (2,), (y, 500, 30.0), {"BLOCK": 256, "IS_RELU": True}),
    ]
    return Case(launches, [(x, expected[0], 1e-5), (y, expected[1], 0)])

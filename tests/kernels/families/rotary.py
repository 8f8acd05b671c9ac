"""Rotary position embedding."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, wide


@triton.jit
def rope_kernel(
    q_ptr,
    q_stride,
    k_ptr,
    k_stride,
    cos_ptr,
    sin_ptr,
    length,
    Q_HEADS: tl.constexpr,
    K_HEADS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BACKWARD: tl.constexpr = False,
):
    """All heads of one token, in place: the halves of a head turn together."""
    token = tl.program_id(0).to(tl.int64)
    half = tl.arange(0, D // 2)
    cos = tl.load(cos_ptr + token % length * (D // 2) + half)
    sin = tl.load(sin_ptr + token % length * (D // 2) + half)
    turn(q_ptr + token * q_stride, cos, sin, Q_HEADS, D, BLOCK_Q, BACKWARD)
    turn(k_ptr + token * k_stride, cos, sin, K_HEADS, D, BLOCK_K, BACKWARD)


@triton.jit
def turn(x_ptr, cos, sin, HEADS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, BACKWARD: tl.constexpr):
    heads = tl.arange(0, BLOCK)
    first = heads[:, None] * D + tl.arange(0, D // 2)[None, :]
    mask = heads[:, None] < HEADS
    a = tl.load(x_ptr + first, mask=mask, other=0).to(sin.dtype)
    b = tl.load(x_ptr + first + D // 2, mask=mask, other=0).to(sin.dtype)
    if BACKWARD:
        sin = -sin
    tl.store(x_ptr + first, a * cos - b * sin, mask=mask)
    tl.store(x_ptr + first + D // 2, b * cos + a * sin, mask=mask)


@triton.jit
def interleaved_rope_kernel(
    x_ptr, out_ptr, position_ptr, base, stride_token, stride_head, D: tl.constexpr, LOG2_BASE: tl.constexpr
):
    """Neighbours turn together; angles are computed from the position, in the program."""
    token, head = tl.program_id(0), tl.program_id(1)
    at = token * stride_token + head * stride_head + tl.arange(0, D)
    pairs = tl.reshape(tl.load(x_ptr + at).to(tl.float32), (D // 2, 2))
    a, b = tl.split(pairs)
    frequency = tl.exp2(tl.arange(0, D // 2).to(tl.float32) * (-2.0 * LOG2_BASE / D))
    angle = tl.load(position_ptr + token).to(tl.float32) * frequency
    cos, sin = tl.cos(angle), tl.sin(angle)
    out = tl.interleave(a * cos - b * sin, b * cos + a * sin)
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty))


def rotated(x, cos, sin):
    a, b = np.split(wide(x), 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


@case
def rope(rng: np.random.Generator) -> Case:
    tokens, length, d, heads = 6, 3, 16, (5, 2)
    q, k = (normal(rng, (tokens, h, d)) for h in heads)
    cos, sin = (f(normal(rng, (length, d // 2))).astype(np.float32) for f in (np.cos, np.sin))
    at = np.arange(tokens) % length
    turned = [rotated(x, wide(cos)[at, None], wide(sin)[at, None]) for x in (q, k)]
    options = {"Q_HEADS": 5, "K_HEADS": 2, "D": d, "BLOCK_Q": 8, "BLOCK_K": 2}
    args = q, 5 * d, k, 2 * d, cos, sin, length
    return Case([Launch(rope_kernel, (tokens,), args, options)], [(q, turned[0], 1e-5), (k, turned[1], 1e-5)])


@case
def rope_backward(rng: np.random.Generator) -> Case:
    """Forward and back is nothing."""
    q, k = normal(rng, (4, 3, 32), "float16"), normal(rng, (4, 1, 32), "float16")
    angle = normal(rng, (4, 16))
    options = {"Q_HEADS": 3, "K_HEADS": 1, "D": 32, "BLOCK_Q": 4, "BLOCK_K": 1}
    args = q, 96, k, 32, np.cos(angle), np.sin(angle), 4
    launches = [Launch(rope_kernel, (4,), args, options), Launch(rope_kernel, (4,), args, options | {"BACKWARD": True})]
    return Case(launches, [(q, wide(q), 3e-3), (k, wide(k), 3e-3)])


@case
def interleaved_rope(rng: np.random.Generator) -> Case:
    x, out = normal(rng, (5, 2, 32), "float16"), poisoned((5, 2, 32), "float16")
    positions = rng.integers(0, 500, 5).astype(np.int32)
    log2_base = float(np.log2(10000))
    angle = wide(positions)[:, None, None] * 2.0 ** (np.arange(16) * (-2 * log2_base / 32))
    a, b = wide(x)[..., ::2], wide(x)[..., 1::2]
    expected = np.stack([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)
    args = x, out, positions, 10000.0, 64, 32
    launch = Launch(interleaved_rope_kernel, (5, 2), args, {"D": 32, "LOG2_BASE": log2_base, "num_warps": 1})
    return Case([launch], [(out, expected.reshape(5, 2, 32), 2e-3)])

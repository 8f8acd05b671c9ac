"""One step of an optimizer over a long vector of parameters."""

from __future__ import annotations

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, wide


@triton.jit
def adamw_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, n, lr, beta1, beta2, eps, decay, step, MAXIMIZE: tl.constexpr, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr + offsets, mask=mask)
    g = tl.load(g_ptr + offsets, mask=mask)
    if MAXIMIZE:
        g = -g
    m = tl.load(m_ptr + offsets, mask=mask)
    v = tl.load(v_ptr + offsets, mask=mask)
    p *= 1 - lr * decay
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    t = step.to(tl.float32)
    m_hat = m / (1 - tl.exp2(t * tl.log2(beta1)))
    v_hat = v / (1 - tl.exp2(t * tl.log2(beta2)))
    p -= lr * m_hat / (tl.sqrt_rn(v_hat) + eps)
    tl.store(p_ptr + offsets, p, mask=mask)
    tl.store(m_ptr + offsets, m, mask=mask)
    tl.store(v_ptr + offsets, v, mask=mask)


@triton.jit
def lion_kernel(p_ptr, g_ptr, m_ptr, n, lr, beta1, beta2, decay, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    p = tl.load(p_ptr + offsets, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + offsets, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + offsets, mask=mask)
    p = p * (1 - lr * decay)
    d = m * beta1 + g * (1 - beta1)
    p = p - lr * tl.where(d > 0, 1.0, tl.where(d < 0, -1.0, 0.0))
    tl.store(p_ptr + offsets, p, mask=mask)
    tl.store(m_ptr + offsets, m * beta2 + g * (1 - beta2), mask=mask)


@case
def adamw(rng: np.random.Generator) -> Case:
    p, g, m = (normal(rng, 700) for _ in range(3))
    v = np.abs(normal(rng, 700))
    lr, b1, b2, eps, decay, step = 0.01, 0.9, 0.999, 1e-8, 0.1, 7
    new_m, new_v = b1 * wide(m) + (1 - b1) * wide(g), b2 * wide(v) + (1 - b2) * wide(g) ** 2
    update = lr * new_m / (1 - b1**step) / (np.sqrt(new_v / (1 - b2**step)) + eps)
    expected = wide(p) * (1 - lr * decay) - update
    args = p, g, m, v, 700, lr, b1, b2, eps, decay, step
    launch = Launch(adamw_kernel, (3,), args, {"MAXIMIZE": False, "BLOCK": 256})
    return Case([launch], [(p, expected, 1e-4), (m, new_m, 1e-5), (v, new_v, 1e-5)])


@case
def lion(rng: np.random.Generator) -> Case:
    p, g, m = normal(rng, 300, "bfloat16"), normal(rng, 300, "bfloat16"), normal(rng, 300)
    d = wide(m) * 0.9 + wide(g) * 0.1
    expected = wide(p) * (1 - 0.01 * 0.1) - 0.01 * np.sign(d), wide(m) * 0.99 + wide(g) * 0.01
    launch = Launch(lion_kernel, (2,), (p, g, m, 300, 0.01, 0.9, 0.99, 0.1), {"BLOCK": 256})
    return Case([launch], [(p, expected[0], 1e-2), (m, expected[1], 1e-5)])

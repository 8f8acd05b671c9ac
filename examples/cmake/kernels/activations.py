"""Functions that kernels share: one that is edited here is compiled into all kernels that call it, and no others."""

import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x / (1.0 + tl.exp(-x))

"""RMS norm of rows: out = x * weight / sqrt(mean(x^2) + eps), one program a row."""

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, out, n, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    row = tl.program_id(0) * n
    values = tl.load(x + row + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values) / n + eps)
    tl.store(out + row + columns, values * scale * tl.load(weight + columns, mask=inside), mask=inside)

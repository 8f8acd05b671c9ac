"""SwiGLU: out = silu(gate) * up."""

import triton
import triton.language as tl
from activations import silu


@triton.jit
def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    value = silu(tl.load(gate + places, mask=inside).to(tl.float32)) * tl.load(up + places, mask=inside)
    tl.store(out + places, value, mask=inside)

"""How many registers tiles fill at once: what a loop takes from before it lives until its end."""

import numpy as np
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl
from deuteron.ir.nested import nested_ops
from deuteron.ir.text import parse_module
from deuteron.ir.tt.function import FuncOp
from deuteron.passes.gpu.slices.live_tiles import live_registers

X = np.zeros(1 << 16, np.float32)
TILE = 64 * 64 // 32  # registers, where a warp is alone


@deuteron.jit
def held(x, y, out, n, N: tl.constexpr, IS_HELD: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    first = tl.load(x + at)
    total = first if IS_HELD else tl.exp(first)
    for k in range(n):
        total = tl.exp(total) * tl.load(y + k * N * N + at)
    tl.store(out + at, total + tl.trans(first) if IS_HELD else total)


def live_of(is_held: bool) -> int:
    text = compile_for("cuda:90", held, X, X, X, 5, N=64, IS_HELD=is_held, num_warps=1).asm["ttgir"]
    (func,) = nested_ops(parse_module(text, "held.ttgir"), FuncOp)
    return live_registers(func)


def test_tiles_that_live_over_a_loop():
    assert live_of(False) == 2 * TILE
    assert live_of(True) == 3 * TILE

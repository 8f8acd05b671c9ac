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


@deuteron.jit
def gathered(x, rows, out, n, N: tl.constexpr, IS_STORED: tl.constexpr):
    at = tl.arange(0, N)
    offsets = tl.load(rows + at)[:, None] * n + at[None, :]
    tile = tl.load(x + offsets)
    tl.store(out + offsets, tl.exp(tile) + (offsets if IS_STORED else 0))


def gathered_registers(is_stored: bool) -> int:
    rows = np.zeros(64, np.int32)
    text = compile_for("cuda:90", gathered, X, rows, X, 5, N=64, IS_STORED=is_stored, num_warps=1).asm["ttgir"]
    (func,) = nested_ops(parse_module(text, "gathered.ttgir"), FuncOp)
    return live_registers(func)


def test_offsets_are_computed_with_addresses():
    assert gathered_registers(False) < gathered_registers(True) - TILE // 2

"""Where warpgroups take turns, and that each that is taken is passed on."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate
from ir_text import generic_asm
from xdsl.context import Context
from xdsl.dialects import scf

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.ir.builder import Builder
from deuteron.ir.text import parse_module
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttng.turns import PassTurnOp, TakeTurnOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.warp_groups.order_warp_groups import OrderWarpGroups

X = aligned(np.zeros((256, 128), np.float16))


@deuteron.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, HEAD: tl.constexpr, BLOCK_N: tl.constexpr, PLAIN: tl.constexpr):
    rows, dims, columns = tl.arange(0, 128), tl.arange(0, HEAD), tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + rows[:, None] * HEAD + dims[None, :])
    acc = tl.zeros((128, HEAD), tl.float32)
    total = tl.zeros((128,), tl.float32)
    for start in range(0, n, BLOCK_N):
        k = tl.load(k_ptr + (start + columns)[None, :] * HEAD + dims[:, None])
        p = tl.dot(q, k)
        if not PLAIN:
            p = tl.exp2(p - tl.max(p, 1)[:, None])
            total += tl.sum(p, 1)
            acc = acc * 0.5
        v = tl.load(v_ptr + (start + columns)[:, None] * HEAD + dims[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc)
    out = acc + total[:, None]
    tl.store(out_ptr + rows[:, None] * HEAD + dims[None, :], out.to(tl.float16))


def turns(num_warps=8, head=128, block=128, plain=False, target="cuda:90"):
    given = {"HEAD": head, "BLOCK_N": block, "PLAIN": plain, "num_warps": num_warps, "num_stages": 2}
    text = generic_asm(compile_for(target, attention, X, X, X, X, 256, **given), "ttgir")
    loop = text[text.index('"scf.for"') :]
    loop = loop[: loop.index('"scf.yield"')]
    return [text.count(f'"ttng.{name}_turn"') for name in ("take", "pass")], loop


def test_a_turn_is_from_the_first_dot_to_the_last():
    counts, loop = turns()
    assert counts == [2, 2]
    order = [
        loop.index(f'"ttng.{name}"') for name in ("take_turn", "warp_group_dot", "pass_turn", "warp_group_dot_wait")
    ]
    assert order == sorted(order)
    assert loop[order[0] : order[2]].count('"ttng.warp_group_dot"') == 2


@pytest.mark.parametrize("given", [{"head": 64}, {"num_warps": 4}, {"num_warps": 16}, {"target": "cuda:80"}])
def test_where_there_are_none(given):
    assert turns(**given)[0] == [0, 0]


@pytest.mark.parametrize("where, num_turns", [(0, 2), (1, 0)])
def test_warpgroups_do_not_wait_for_each_other_within_a_turn(where, num_turns):
    """A deadlock in seed 7100170 of the fuzzer: one at the barrier, the other one at its turn."""
    given = {"HEAD": 128, "BLOCK_N": 128, "PLAIN": False, "num_warps": 8, "num_stages": 2}
    module = parse_module(compile_for("cuda:90", attention, X, X, X, X, 256, **given).asm["ttgir"])
    for op in list(module.walk()):
        if isinstance(op, TakeTurnOp | PassTurnOp):
            op.detach()
    loop = next(op for op in module.walk() if isinstance(op, scf.ForOp))
    dots = [op for op in loop.body.block.ops if isinstance(op, WarpGroupDotOp)]
    Builder.before(dots[where]).insert(BarrierOp())
    OrderWarpGroups(GPUConfig(architecture(90).machine, num_warps=8)).apply(Context(), module)
    assert sum(isinstance(op, TakeTurnOp) for op in module.walk()) == num_turns


@pytest.mark.parametrize("n", [0, 128, 384])
def test_the_results_are_right(rng, n):
    q, k, v = (aligned(rng.standard_normal((rows, 128)).astype(np.float16)) for rows in (128, max(n, 1), max(n, 1)))
    out = aligned(np.full((128, 128), np.nan, np.float16))
    constants = {"HEAD": 128, "BLOCK_N": 128, "PLAIN": False}
    kernel = emulate(attention, q, k, v, out, n, **constants, num_warps=8, num_stages=2)
    assert '"ttng.take_turn"' in generic_asm(kernel, "ttgir")
    acc, total = np.zeros((128, 128)), np.zeros((128, 1))
    for start in range(0, n, 128):
        scores = q.astype(np.float64) @ k[start : start + 128].astype(np.float64).T
        p = np.exp2(scores - scores.max(1, keepdims=True))
        acc, total = acc * 0.5 + p @ v[start : start + 128].astype(np.float64), total + p.sum(1, keepdims=True)
    np.testing.assert_allclose(out.astype(np.float64), acc + total, rtol=2e-2, atol=2e-2)

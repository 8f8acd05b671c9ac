"""Blocks copied iterations ahead: how many buffers, where a loop waits and copies, and which loads stay. Beside copies
by cp.async, and for dots that are issued an iteration later.
"""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.backend.tensor_descriptor import TensorDescriptor, flatten
from deuteron.compiler import ASTSource, CompiledKernel, compile

pytestmark = pytest.mark.usefixtures("unsplit")


@deuteron.jit
def dot(x, y, z, K, BLOCK: tl.constexpr, KIND: tl.constexpr):
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, BLOCK):
        if KIND == "branch":
            if k > 0:
                acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
        elif KIND == "stored":
            acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
            x.store([0, k], tl.zeros((64, BLOCK), tl.float16))
        else:
            acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    z.store([0, 0], acc)


TYPES = {"x": "tensordesc<fp16[64,32]>", "y": "tensordesc<fp16[32,64]>", "z": "tensordesc<fp32[64,64]>", "K": "i32"}
ALIGNED = {(index,): [["tt.divisibility", 16]] for index in range(3)}


def compiled(num_stages: int, kind: str = "", num_warps: int = 4) -> CompiledKernel:
    source = ASTSource(dot, TYPES, {"BLOCK": 32, "KIND": kind}, ALIGNED)
    return compile(source, "cuda:90", {"num_stages": num_stages, "num_warps": num_warps})


def loop_ops(text: str) -> list[str]:
    body = re.search(r'"scf\.for".*?"scf\.yield"', text, re.DOTALL)[0]
    names = re.findall(r'"ttn?g\.(\w+)"', body)
    return [name for name in names if name not in ("memdesc_index", "ring_next")]


def buffers(text: str) -> list[str]:
    return re.findall(r"\"ttg.local_alloc\"\(\).*-> !ttg.memdesc<(\w+)x[fi]\d+,", text)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_as_many_buffers_and_barriers_as_stages(stages: int):
    """Dots by wgmma are in flight until the next ones are issued."""
    text = generic_asm(compiled(stages), "ttgir")
    assert buffers(text)[:3] == [f"{stages}x64x32", f"{stages}x32x64", f"{stages}x1"]


def test_a_loop_waits_multiplies_and_copies():
    text = generic_asm(compiled(3), "ttgir")
    copies = ["async_tma_copy_global_to_local"] * 2
    assert loop_ops(text) == [
        "wait_barrier",
        "warp_group_dot",
        "warp_group_dot_wait",
        "barrier_expect",
        "barrier",
        copies[0],
        copies[1],
    ]
    assert text.count("size = 8192 : i32") == 3, "one barrier for both blocks, in the loop and twice before it"


def test_dots_of_warps_copy_first():
    """With two warps the instruction is mma.sync, whose operands are loaded before the next copies."""
    ops = loop_ops(generic_asm(compiled(3, num_warps=2), "ttgir"))
    assert ops[0] == "wait_barrier"
    assert ops.index("async_tma_copy_global_to_local") < ops.index("local_load")


@pytest.mark.parametrize(("stages", "kind"), [(1, ""), (3, "branch"), (3, "stored")])
def test_loads_that_stay(stages: int, kind: str):
    assert "init_barrier" in loop_ops(generic_asm(compiled(stages, kind), "ttgir"))


@pytest.mark.share(3)
@pytest.mark.parametrize("asynchronous", ["late", "early", "random"])
@pytest.mark.parametrize(("stages", "num_warps"), [(2, 4), (3, 4), (5, 4), (3, 8), (3, 2)])
@pytest.mark.parametrize("depth", [0, 32, 40, 224])
def test_numbers(rng: np.random.Generator, stages: int, num_warps: int, depth: int, asynchronous: str):
    """Depth 0: the tensors have columns, and the loop does not run."""
    columns = max(depth, 8)
    x = aligned(rng.standard_normal((64, columns)).astype(np.float16))
    y = aligned(rng.standard_normal((columns, 64)).astype(np.float16))
    z = aligned(np.full((64, 64), np.nan, np.float32))
    blocks = zip((x, y, z), ([64, 32], [32, 64], [64, 64]), strict=True)
    descriptors = [TensorDescriptor.from_tensor(array, block) for array, block in blocks]
    kernel = compiled(stages, num_warps=num_warps)
    emulate_compiled(kernel, *flatten([*descriptors, depth]), asynchronous=asynchronous)
    expected = x[:, :depth].astype(np.float64) @ y[:depth].astype(np.float64)
    np.testing.assert_allclose(z, expected, rtol=1e-4, atol=1e-3)


D = 64
BY_TMA, BY_THREADS = D, D + 4  # what rows are apart: a map takes multiples of 16 bytes, cp.async also of 8
KINDS = {"TMA": (BY_TMA, BY_TMA), "keys by threads": (BY_THREADS, BY_TMA), "values by threads": (BY_TMA, BY_THREADS)}


@deuteron.jit
def attention(
    q, k, v, out, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, K_ROW: tl.constexpr, V_ROW: tl.constexpr
):
    """One tile of rows."""
    rows, keys, dims = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    top = tl.full((M,), float("-inf"), tl.float32)
    total, acc = tl.zeros((M,), tl.float32), tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        here = start + keys
        y = tl.load(k + here[:, None] * K_ROW + dims[None, :], mask=here[:, None] < n, other=0.0)
        scores = tl.where(here[None, :] < n, tl.dot(x, tl.trans(y)), float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p, alpha = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
        z = tl.load(v + here[:, None] * V_ROW + dims[None, :], mask=here[:, None] < n, other=0.0)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(z.dtype), z, acc * alpha[:, None])
        top = new_top
    tl.store(out + rows[:, None] * D + dims[None, :], acc / tl.maximum(total, 1e-30)[:, None])


def attention_arrays(rng: np.random.Generator, m: int, n: int, kind: str) -> list[np.ndarray]:
    """Queries, keys, values, their rows as far apart as the kind says, and a poisoned output."""
    sizes = ((m, D), *((max(n, 1), row) for row in KINDS[kind]))
    drawn = [aligned(rng.standard_normal(size).astype(np.float16)) for size in sizes]
    return [*drawn, aligned(np.full((m, D), np.nan, np.float32))]


def compiled_attention(arrays: list[np.ndarray], n: int, kind: str, **options: int) -> CompiledKernel:
    rows = dict(zip(("K_ROW", "V_ROW"), KINDS[kind], strict=True))
    return compile_for("cuda:90", attention, *arrays, n, M=len(arrays[0]), N=32, D=D, **rows, **options)


def check_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, out: np.ndarray, n: int) -> None:
    q, k, v = (values.astype(np.float64) for values in (q, k[:n, :D], v[:n, :D]))
    scores = q @ k.T
    p = np.exp(scores - scores.max(1, keepdims=True)) if n else scores
    expected = p @ v / p.sum(1, keepdims=True) if n else np.zeros(out.shape)
    np.testing.assert_allclose(out, expected, atol=2e-3 * max(np.abs(expected).max(), 1e-30))


def test_delayed_dots_wait_for_a_ring_of_their_own(rng: np.random.Generator):
    """After the dot that they overlap with, before the copies: one barrier orders those of both rings."""
    text = generic_asm(compiled_attention(attention_arrays(rng, 64, 64, "TMA"), 64, "TMA"), "ttgir")
    copy, wait = ["barrier_expect", "async_tma_copy_global_to_local"], "warp_group_dot_wait"
    dot = ["wait_barrier", "warp_group_dot"]
    ops = [name for name in loop_ops(text) if name != "memdesc_trans"]
    assert ops == [*dot, *dot, copy[0], "barrier", copy[1], *copy, wait, wait]
    assert buffers(text) == ["3x32x64", "3x1", "3x32x64", "3x1"]
    assert text.count("init_barrier") == text.count("inval_barrier") == 6


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_an_iteration_later_for_delayed_dots(rng: np.random.Generator, kind: str, stages: int):
    """Keys are copied for one iteration more before the first: once each, then for the first and in the loop."""
    text = generic_asm(compiled_attention(attention_arrays(rng, 64, 64, kind), 64, kind, num_stages=stages), "ttgir")
    keys, values = (("threads" if row == BY_THREADS else "TMA") for row in KINDS[kind])
    counts = {"TMA": 0, "threads": 0}
    counts[keys] += stages + 1
    counts[values] += stages
    assert text.count('"ttng.async_tma_copy_global_to_local"') == counts["TMA"]
    assert text.count('"ttg.async_copy_global_to_local"') == counts["threads"]
    assert text.count('"ttg.async_wait"') == (4 if counts["threads"] else 0)


@pytest.mark.share(3)
@pytest.mark.parametrize("asynchronous", ["late", "early", "random"])
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_delayed_dots(rng: np.random.Generator, kind: str, stages: int, asynchronous: str):
    arrays = attention_arrays(rng, 64, 200, kind)
    kernel = compiled_attention(arrays, 200, kind, num_stages=stages)
    emulate_compiled(kernel, *arrays, 200, asynchronous=asynchronous)
    check_attention(*arrays, 200)


@pytest.mark.share(3)
@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("n", [0, 1, 32, 33, 64, 96])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_of_delayed_dots(rng: np.random.Generator, kind: str, n: int, num_warps: int):
    """Two warpgroups, which may be in different iterations; loops that do not run, or whose first is the last."""
    arrays = attention_arrays(rng, 16 * num_warps, n, kind)
    kernel = compiled_attention(arrays, n, kind, num_warps=num_warps)
    emulate_compiled(kernel, *arrays, n)
    check_attention(*arrays, n)


@deuteron.jit
def attention_of_tiles(
    q, k, v, out, n, tiles, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, K_ROW: tl.constexpr, V_ROW: tl.constexpr
):
    for tile in range(tiles):
        attention(q + tile * M * D, k, v, out + tile * M * D, n, M, N, D, K_ROW, V_ROW)


@pytest.mark.parametrize("n", [0, 32, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_barriers_begin_again_where_an_outer_loop_does(rng: np.random.Generator, kind: str, n: int):
    arrays = attention_arrays(rng, 192, n, kind)
    rows = dict(zip(("K_ROW", "V_ROW"), KINDS[kind], strict=True))
    kernel = emulate(attention_of_tiles, *arrays, n, 3, M=64, N=32, D=D, **rows, num_stages=3)
    assert "pendings = 1" in generic_asm(kernel, "ttgir")
    check_attention(*arrays, n)


@pytest.mark.parametrize(("num_warps", "stages"), [(4, 2), (4, 3), (8, 3)])
def test_ptxas_keeps_delayed_dots_in_flight(rng: np.random.Generator, num_warps: int, stages: int):
    arrays = attention_arrays(rng, 16 * num_warps, 64, "TMA")
    resources = compiled_attention(arrays, 64, "TMA", num_warps=num_warps, num_stages=stages).metadata.resources
    assert resources["warnings"] == [] and resources["spill_bytes"] == 0


@pytest.mark.parametrize(("m", "num_warps", "is_delayed"), [(64, 4, True), (128, 4, False), (256, 16, False)])
def test_dots_that_need_too_many_registers_are_not_delayed(m: int, num_warps: int, is_delayed: bool):
    """With 128 rows 128 registers for the sum, 64 for the scores, and 32 for what they become; half of it with 256 rows
    of 16 warps, but then a thread has no more than 128.
    """
    arrays = [aligned(np.zeros((m, 128), np.float16)) for _ in range(4)]
    given = {"M": m, "N": 64, "D": 128, "K_ROW": 128, "V_ROW": 128, "num_warps": num_warps, "num_stages": 3}
    kernel = compile_for("cuda:90", attention, *arrays, 64, **given)
    assert ("pendings = 1" in generic_asm(kernel, "ttgir")) == is_delayed
    assert kernel.metadata.resources["spill_bytes"] == 0

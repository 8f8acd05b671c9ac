"""Blocks copied iterations ahead: how many buffers, where a loop waits and copies, and which loads stay."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate_compiled

import deuteron
import deuteron.language as tl
from deuteron.backend.tensor_descriptor import TensorDescriptor, flatten
from deuteron.compiler import ASTSource, CompiledKernel, compile


@deuteron.jit
def product(x, y, z, K, BLOCK: tl.constexpr, KIND: tl.constexpr):
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
    source = ASTSource(product, TYPES, {"BLOCK": 32, "KIND": kind}, ALIGNED)
    return compile(source, "cuda:90", {"num_stages": num_stages, "num_warps": num_warps})


def loop_ops(text: str) -> list[str]:
    body = re.search(r'"scf\.for".*?"scf\.yield"', text, re.DOTALL)[0]
    names = re.findall(r'"ttn?g\.(\w+)"', body)
    return [name for name in names if name != "memdesc_index"]


def buffers(text: str) -> list[str]:
    return re.findall(r"\"ttg.local_alloc\"\(\).*-> !ttg.memdesc<(\w+)x[fi]\d+,", text)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_as_many_buffers_and_barriers_as_stages(stages: int):
    """Products of warpgroups are in flight until the next ones are issued."""
    text = compiled(stages).asm["ttgir"]
    assert buffers(text)[:3] == [f"{stages}x64x32", f"{stages}x32x64", f"{stages}x1"]


def test_a_loop_waits_multiplies_and_copies():
    text = compiled(3).asm["ttgir"]
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
    assert text.count("size = 8192 : i32") == 3, "one barrier for both blocks, in the loop and twice in front of it"


def test_products_of_warps_copy_first():
    """With two warps the instruction is mma.sync, whose operands are loaded before the next copies."""
    ops = loop_ops(compiled(3, num_warps=2).asm["ttgir"])
    assert ops[0] == "wait_barrier"
    assert ops.index("async_tma_copy_global_to_local") < ops.index("local_load")


@pytest.mark.parametrize(("stages", "kind"), [(1, ""), (3, "branch"), (3, "stored")])
def test_loads_that_stay(stages: int, kind: str):
    assert "init_barrier" in loop_ops(compiled(stages, kind).asm["ttgir"])


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

"""Blocks of tensors through shared memory: the ops, what is waited for, and what products read in place."""

import re

import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource, compile


def op_names(text: str) -> list[str]:
    names = re.findall(r'"(ttn?g\.\w+)"', text)
    return [name.partition(".")[2] for name in names]


@deuteron.jit
def copy(x, y):
    y.store([0, 0], x.load([16, 32]))


def compiled(kernel, x: str, y: str, **given) -> str:
    attrs = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    source = ASTSource(kernel, {"x": f"tensordesc<{x}>", "y": f"tensordesc<{y}>"}, {}, attrs)
    return compile(source, given.pop("target", "cuda:90"), given).asm["ttgir"]


def test_a_load_waits_for_its_barrier_and_a_store_for_having_been_read():
    text = compiled(copy, "fp16[16,64]", "fp16[16,64]")
    names = [name for name in op_names(text) if name != "barrier"]
    load = [
        "local_alloc",
        "local_alloc",
        "init_barrier",
        "fence_mbarrier_init_release_cluster",
        "fence_async_shared",
        "barrier_expect",
        "async_tma_copy_global_to_local",
        "wait_barrier",
        "inval_barrier",
        "local_load",
    ]
    store = ["local_alloc", "fence_async_shared", "async_tma_copy_local_to_global", "async_tma_store_wait"]
    assert names == [*load, *store]
    assert '"ttng.barrier_expect"' in text and "size = 2048 : i32" in text
    assert "read_only" in text


def test_threads_wait_between_the_fence_and_the_store():
    names = op_names(compiled(copy, "fp16[16,64]", "fp16[16,64]"))
    end = names.index("async_tma_copy_local_to_global")
    assert names[end - 2 : end] == ["fence_async_shared", "barrier"]


@pytest.mark.parametrize("target", ["cuda:80", "cuda:89"])
def test_elsewhere_there_are_pointers(target: str):
    text = compiled(copy, "fp16[16,64]", "fp16[16,64]", target=target)
    assert "async_tma" not in text
    assert '"tt.load"' in text and '"tt.store"' in text


@deuteron.jit
def product(x, y):
    a, b = x.load([0, 0]), x.load([64, 0])
    y.store([0, 0], tl.dot(a, b.T).to(tl.float16))


def test_products_read_where_blocks_were_copied_to():
    text = compiled(product, "fp16[64,64]", "fp16[64,64]")
    names = op_names(text)
    assert "local_load" not in names
    assert names.count("wait_barrier") == names.count("barrier_expect") == 1, "loads side by side wait together"
    assert names.count("async_tma_copy_global_to_local") == 2
    assert "size = 16384 : i32" in text


@deuteron.jit
def exchange(x, y):
    """What is stored is loaded again."""
    x.store([0, 0], y.load([0, 0]))
    y.store([0, 0], x.load([0, 0]))


def test_what_is_loaded_again_is_waited_for_until_it_is_done():
    assert "read_only" not in compiled(exchange, "fp16[16,64]", "fp16[16,64]")


@deuteron.jit
def add(x, y):
    y.atomic_add([0, 0], x.load([0, 0]))


def test_reductions():
    assert "async_tma_reduce" in op_names(compiled(add, "fp32[16,64]", "fp32[16,64]"))

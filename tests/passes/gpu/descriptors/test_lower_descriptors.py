"""Blocks of tensors through shared memory: the ops, what is waited for, and what dots read in place."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate_compiled, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.backend.tensor_descriptor import TensorDescriptor, flatten
from deuteron.compiler import ASTSource, compile


def op_names(text: str) -> list[str]:
    names = re.findall(r'"(ttn?g\.\w+)"', text)
    return [name.partition(".")[2] for name in names]


@deuteron.jit
def copy(x, y):
    y.store([0, 0], x.load([16, 32]))


def compiled_kernel(kernel, x: str, y: str, **given):
    attrs = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    source = ASTSource(kernel, {"x": f"tensordesc<{x}>", "y": f"tensordesc<{y}>"}, {}, attrs)
    return compile(source, given.pop("target", "cuda:90"), given)


def compiled(kernel, x: str, y: str, **given) -> str:
    return generic_asm(compiled_kernel(kernel, x, y, **given), "ttgir")


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
def dot(x, y):
    a, b = x.load([0, 0]), x.load([64, 0])
    y.store([0, 0], tl.dot(a, b.T).to(tl.float16))


def test_dots_read_where_blocks_were_copied_to():
    text = compiled(dot, "fp16[64,64]", "fp16[64,64]")
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


@deuteron.jit
def fill(x, y):
    i = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    for n in range(8):
        y.store([16 * n, 0], (i + n).to(tl.float16))


@deuteron.jit
def fill_some(x, y):
    i = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    for n in range(8):
        for m in range(n):
            if m % 2 == 0:
                y.atomic_add([16 * n, 0], (i + m).to(tl.float16))


@deuteron.jit
def fill_twice(x, y):
    i = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    for n in range(8):
        y.store([16 * n, 0], (i + n).to(tl.float16))
        x.store([16 * n, 0], (i - n).to(tl.float16))


@deuteron.jit
def move(x, y):
    for n in range(8):
        y.store([16 * n, 0], x.load([16 * n, 0]))


@deuteron.jit
def shift(x, y):
    for n in range(8):
        y.store([16 * n, 0], y.load([16 * n + 16, 0]))


STORE = ["async_tma_store_wait", "barrier", "local_store", "fence_async_shared", "barrier"]


@pytest.mark.parametrize(
    ("kernel", "copies"), [(fill, "async_tma_copy_local_to_global"), (fill_some, "async_tma_reduce")]
)
def test_a_loop_goes_on_while_a_block_is_stored(kernel, copies):
    names = op_names(compiled(kernel, "fp16[16,64]", "fp16[16,64]"))
    assert names == ["local_alloc", *STORE, copies, "async_tma_store_wait", "local_dealloc"]


@pytest.mark.parametrize("kernel", [fill_twice, move, shift])
def test_what_shares_its_memory_or_is_loaded_again_is_waited_for_at_once(kernel):
    """Two stores share memory, so do a load and a store of one iteration; and a block that was stored is loaded."""
    text = compiled(kernel, "fp16[16,64]", "fp16[16,64]")
    names = [name for name in op_names(text) if name.startswith("async_tma") and "global_to_local" not in name]
    assert names == ["async_tma_copy_local_to_global", "async_tma_store_wait"] * (len(names) // 2)
    assert '"ttg.local_dealloc"' not in text


@pytest.mark.parametrize("asynchronous", ["late", "early", "random"])
def test_blocks_that_are_stored_while_the_loop_goes_on(asynchronous):
    y = aligned(np.full((130, 64), -1, np.float16))
    kernel = compiled_kernel(fill, "fp16[16,64]", "fp16[16,64]")
    made = TensorDescriptor(y, [130, 64], [64, 1], [16, 64])
    emulate_compiled(kernel, *flatten([made, made]), asynchronous=asynchronous)
    assert instructions_with(kernel, "cp.async.bulk.tensor")
    n, row, column = np.ogrid[:8, :16, :64]
    np.testing.assert_array_equal(y[:128].reshape(8, 16, 64), (row * 64 + column + n).astype(np.float16))
    np.testing.assert_array_equal(y[128:], -1)


@deuteron.jit
def written_over(x, y, n, CASE: tl.constexpr):
    """Blocks at the same place, or a row further on, in a row or in a loop."""
    i = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    y.store([0, 0], i.to(tl.float16))
    if CASE == "twice":
        y.store([0, 0], (i + 1).to(tl.float16))
    if CASE == "apart":
        y.store([16, 0], (i + 1).to(tl.float16))
    if CASE == "again":
        for k in range(n):
            y.store([0, 0], (i + k).to(tl.float16))
    if CASE == "moved":
        for k in range(n):
            y.store([k, 0], (i + k).to(tl.float16))
    if CASE == "tiles":
        for k in range(1, n):
            for j in range(n):
                y.store([16 * k, 64 * j], (i + k).to(tl.float16))
    if CASE == "halves":
        for k in range(n):
            y.store([k // 2 * 16, 0], (i + k).to(tl.float16))
            y.store([k // 2 * 16 + 16, 0], (i - k).to(tl.float16))
    if CASE == "added":
        for k in range(n):
            y.atomic_add([0, 0], (i * 0 + k).to(tl.float16))


CASES = {"twice": 1, "apart": 0, "again": 1, "moved": 1, "tiles": 1, "halves": 1, "added": 1}


@pytest.mark.parametrize(("case", "waits"), CASES.items())
def test_blocks_over_others_wait_until_these_are_done(case, waits):
    """TMA keeps no order between them."""
    attrs = {(index,): [["tt.divisibility", 16]] for index in range(2)}
    signature = {"x": "tensordesc<fp16[16,64]>", "y": "tensordesc<fp16[16,64]>", "n": "i32", "CASE": "constexpr"}
    kernel = compile(ASTSource(written_over, signature, {"CASE": case}, attrs), "cuda:90", {})
    found = generic_asm(kernel, "ttgir")
    assert found.count("ttng.async_tma_store_wait") - found.count("read_only") == waits


@deuteron.jit
def told(x, y, flags, n, CASE: tl.constexpr):
    """Others may be told, by an atomic, that blocks are there."""
    i = (tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]).to(tl.float16)
    if CASE == "before":
        tl.atomic_add(flags, 1, sem="acquire")
    if CASE == "each":
        for k in range(n):
            y.store([16 * k, 0], i)
            tl.atomic_add(flags + k, 1)
    elif CASE == "all":
        for k in range(n):
            y.store([16 * k, 0], i)
    else:
        y.store([0, 0], i)
    if CASE == "release" or CASE == "all":
        tl.atomic_xchg(flags, 1, sem="release", scope="sys")
    if CASE == "relaxed":
        tl.atomic_xchg(flags, 1, sem="relaxed")


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("release", ["copy", "wait until done", "atomic"]),
        ("each", ["copy", "wait until done", "atomic"]),
        ("all", ["wait", "copy", "wait until done", "atomic"]),
        ("before", ["atomic", "copy", "wait"]),
        ("relaxed", ["copy", "wait", "atomic"]),
    ],
)
def test_a_block_is_there_when_others_are_told_that_it_is(case, names):
    attrs = {(index,): [["tt.divisibility", 16]] for index in range(3)}
    signature = {"x": "tensordesc<fp16[16,64]>", "y": "tensordesc<fp16[16,64]>", "flags": "*i32", "n": "i32"}
    kernel = compile(ASTSource(told, {**signature, "CASE": "constexpr"}, {"CASE": case}, attrs), "cuda:90", {})
    words = {"async_tma_copy_local_to_global": "copy", "async_tma_store_wait": "wait", "atomic_rmw": "atomic"}
    lines = [line for line in generic_asm(kernel, "ttgir").splitlines() if any(f".{op}" in line for op in words)]
    found = [next(word for op, word in words.items() if f".{op}" in line) for line in lines]
    is_done = [word == "wait" and "read_only" not in line for word, line in zip(found, lines, strict=True)]
    assert [word + " until done" * done for word, done in zip(found, is_done, strict=True)] == names


@pytest.mark.parametrize("case", ["twice", "again", "moved", "halves", "added"])
def test_the_last_of_blocks_at_the_same_place_stays(case, monkeypatch):
    attrs = {(index,): [["tt.divisibility", 16]] for index in range(2)}
    signature = {"x": "tensordesc<fp16[16,64]>", "y": "tensordesc<fp16[16,64]>", "n": "i32", "CASE": "constexpr"}
    kernel = compile(ASTSource(written_over, signature, {"CASE": case}, attrs), "cuda:90", {})
    first, n, wide = np.arange(16)[:, None] * 64 + np.arange(64)[None, :], 3, np.full((80, 64), -1)
    wide[:16] = first
    if case == "twice":
        wide[:16] = first + 1
    if case == "added":
        wide[:16] += sum(range(n))
    for k in range(n if case in ("again", "moved", "halves") else 0):
        begin = {"again": 0, "moved": k, "halves": k // 2 * 16}[case]
        wide[begin : begin + 16] = first + k
        if case == "halves":
            wide[begin + 16 : begin + 32] = first - k
    for seed in range(4):
        y = aligned(np.full((80, 64), -1, np.float16))
        made = TensorDescriptor(y, [80, 64], [64, 1], [16, 64])
        monkeypatch.setenv("DEUTERON_EMULATOR_SEED", str(seed))
        emulate_compiled(kernel, *flatten([made, made]), n)
        np.testing.assert_array_equal(y, wide.astype(np.float16))

"""What is planned: how many loops, what is kept in memory and who shares it, whatever the tile's size."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import Dot, For, Nest, Transpose
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.roots import Keep, ReduceRoot, StoreRoot
from deuteron.backend.cpu.plan.tiles.buffers import assign_buffers
from deuteron.backend.cpu.plan.vectors.axes import choose_axis
from deuteron.backend.cpu.target import cpu_target


@pytest.fixture
def plan(lower_python):
    """The plan of a kernel and the bytes of its scratch memory."""

    def make(kernel, args, constexprs):
        made = plan_function(kernel_of(lower_python(kernel, args, constexprs), cpu_target("x86-64-v3", "")))
        return made, assign_buffers(made)

    return make


def kinds(nest: Nest) -> list[type]:
    return [type(root) for root in nest.roots]


X = np.zeros(1, np.float32)


def softmax(x, out, n, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * n + j, mask=j < n, other=-float("inf"))
    p = tl.exp(a - tl.max(a, 0))
    tl.store(out + row * n + j, p / tl.sum(p, 0), mask=j < n)


def test_softmax_is_three_loops_and_one_buffer(plan):
    made, scratch_bytes = plan(softmax, [X, X, 7], {"BLOCK": 1024})
    assert [kinds(item) for item in made.body.items] == [[ReduceRoot], [Keep, ReduceRoot], [StoreRoot]]
    assert scratch_bytes == 4 * 1024


def copies(x, out, COUNT: tl.constexpr):
    i = tl.arange(0, 64)
    for k in tl.static_range(COUNT):
        tl.store(out + k * 64 + i, tl.load(x + k * 64 + i) + k)


def test_of_many_stores_a_loop_has_some(plan):
    """So that not all of them are compared with each other."""
    made, _ = plan(copies, [X, X], {"COUNT": 70})
    assert [len(item.roots) for item in made.body.items] == [32, 32, 6]


def test_code_does_not_grow_with_the_tile(lower_python, lower_module):
    sizes = [len(lower_module(lower_python(softmax, [X, X, 7], {"BLOCK": block})).llir) for block in (1024, 16384)]
    assert sizes[1] <= 1.2 * sizes[0]


def add(x, y, out, other, n, SHIFT: tl.constexpr):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, a + b, mask=i < n)
    tl.store((out if SHIFT else other) + i + SHIFT, a - b, mask=i < n)


def test_elementwise_work_is_one_loop_without_memory(plan):
    made, scratch_bytes = plan(add, [X, X, X, X, 7], {"SHIFT": 0})
    assert [kinds(item) for item in made.body.items] == [[StoreRoot, StoreRoot]]
    assert scratch_bytes == 0


def test_overlapping_stores_are_done_one_after_the_other(plan):
    made, _ = plan(add, [X, X, X, X, 7], {"SHIFT": 1})
    assert [kinds(item)[-1] for item in made.body.items] == [StoreRoot, StoreRoot]


def swapped_pairs(x, out, STEP: tl.constexpr):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    a, b = tl.load(x + STEP * i), tl.load(x + STEP * i + 1)
    tl.store(out + STEP * i, b)
    tl.store(out + STEP * i + 1, a)


def in_two_stores(x, out, other, n, IS_SAME: tl.constexpr, DISTANCE: tl.constexpr):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    a = tl.load(x + i, mask=i < n)
    tl.store((x if IS_SAME else other) + (i + DISTANCE), a + 1, mask=i < n)
    tl.store(out + i // 2, a, mask=i < n)
    tl.store(out + n + i // 2, a, mask=i < n)


@pytest.mark.parametrize(
    "is_same, distance, kept_bytes", [(True, 0, 4096), (True, 8, 4096), (False, 0, 4096), (False, 8, 0)]
)
def test_what_is_loaded_is_kept_over_stores_to_what_may_be_the_same_array(plan, is_same, distance, kept_bytes):
    """Another array with the same offsets may be it: then the kernel computes in place."""
    assert plan(in_two_stores, [X, X, X, 7], {"IS_SAME": is_same, "DISTANCE": distance})[1] == kept_bytes


@pytest.mark.parametrize("step, num_nests", [(2, 1), (3, 1), (1, 2)])
def test_stores_that_take_turns_are_one_loop(plan, step, num_nests):
    made, _ = plan(swapped_pairs, [X, X], {"STEP": step})
    assert len(made.body.items) == num_nests


def rows_of_a_table(indices, table, out, M: tl.constexpr, N: tl.constexpr):
    rows, j = tl.arange(0, M), tl.arange(0, N)[None, :]
    at = table + tl.load(indices + rows)[:, None] * N + j
    total = tl.sum(tl.load(at), 1)[:, None]
    tl.debug_barrier()
    tl.store(out + rows[:, None] * N + j, tl.load(at) - total)


def test_addresses_of_rows_are_computed_again(plan):
    _, scratch_bytes = plan(rows_of_a_table, [np.zeros(1, np.int64), X, X], {"M": 4, "N": 128})
    assert scratch_bytes < 4 * 128


def largest_of_pairs(x, out, N: tl.constexpr):
    """Of floats, which are not exchanged."""
    i = tl.arange(0, N)
    pairs = tl.reshape(tl.load(x + i), (N // 8, 2, 4))
    below = pairs - tl.max(pairs, 1, keep_dims=True)
    tl.store(out + i, tl.reshape(below + tl.min(pairs, 1)[:, None, :], (N,)))


def test_reductions_of_pairs_are_computed_where_they_are_read(plan):
    made, _ = plan(largest_of_pairs, [X, X], {"N": 256})
    assert [kinds(item) for item in made.body.items] == [[Keep], [Keep], [StoreRoot]]


def chain(x, out, LENGTH: tl.constexpr):
    i = tl.arange(0, 1024)
    a = tl.load(x + i)
    for step in tl.static_range(LENGTH):
        a = a * a + step
    tl.store(out + i, a)


@pytest.mark.parametrize("length, unroll", [(1, 4), (8, 2), (100, 1)])
def test_long_bodies_are_not_repeated(plan, length, unroll):
    made, _ = plan(chain, [X, X], {"LENGTH": length})
    chosen = choose_axis(made, made.body.items[0], 64, 4)
    assert (chosen.lanes, chosen.unroll) == (16 * unroll, 1)  # the registers of one vector


def matmul(a, b, c, K, N: tl.constexpr):
    i = tl.arange(0, N)
    a_ptrs = a + i[:, None] * K + i[None, :]
    b_ptrs = b + i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for _ in range(0, K, N):
        acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        a_ptrs += N
        b_ptrs += N * N
    tl.store(c + i[:, None] * N + i[None, :], acc)


def test_matmul_accumulates_in_place_and_keeps_no_pointers(plan):
    made, scratch_bytes = plan(matmul, [X, X, X, 64], {"N": 32})
    fill, loop, store = made.body.items
    assert kinds(fill) == [Keep] and isinstance(loop, For) and kinds(store) == [StoreRoot]
    assert [type(item) for item in loop.body.items] == [Nest, Nest, Dot]  # of A and of B
    # The sums, and A and B of two steps; rows of A are 64 bytes apart.
    assert scratch_bytes == 4 * (32 * 32 + 32 * (2 * 32 + 16) + 2 * 32 * 32)


def attention(q, k, v, out, n, M: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, M), tl.arange(0, D)
    at = i[:, None] * D + d[None, :]
    query = tl.load(q + at)
    high = tl.zeros([M], tl.float32) - float("inf")
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    for start in range(0, n, M):
        scores = tl.dot(query, tl.trans(tl.load(k + start * D + at))) * 0.125
        new = tl.maximum(high, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        alpha = tl.exp(high - new)
        total = total * alpha + tl.sum(p, 1)
        acc = tl.dot(p, tl.load(v + start * D + at), acc * alpha[:, None])
        high = new
    tl.store(out + at, acc / total[:, None])


def test_attention_copies_nothing_in_its_loop(plan):
    made, _ = plan(attention, [X, X, X, X, 64], {"M": 64, "D": 32})
    loop = next(item for item in made.body.items if isinstance(item, For))
    items = loop.body.items
    assert sum(isinstance(item, Transpose) for item in items) == 1
    assert sum(isinstance(item, Dot) for item in items) == 2
    for nest in items:
        if isinstance(nest, Nest):
            for root in nest.roots:
                is_copy = isinstance(root, Keep) and root.value is None and root.sources[0] in made.places
                assert not is_copy, root


def column_major(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] + i[None, :] * N
    tl.store(out + at, tl.load(x + at) * 2)


def row_major(x, out, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * stride + i[None, :]
    tl.store(out + at, tl.load(x + at) * 2)


@pytest.mark.parametrize("kernel, args, axis", [(column_major, [X, X], 0), (row_major, [X, X, 9], 1)])
def test_the_contiguous_dimension_is_vectorised(plan, kernel, args, axis):
    made, _ = plan(kernel, args, {"N": 64})
    assert choose_axis(made, made.body.items[0], 64, 1).axis == axis


def two_phases(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.exp(tl.load(x + i))
    s = tl.sum(a, 0)
    b = tl.exp(a / s)
    t = tl.sum(b, 0)
    c = tl.exp(b / t)
    u = tl.sum(c, 0)
    tl.store(out + i, c / u)


def test_tiles_that_die_give_their_memory_on(plan):
    assert plan(two_phases, [X, X], {"N": 256})[1] == 4 * 256

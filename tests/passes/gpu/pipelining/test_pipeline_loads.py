"""Which loads are copied ahead, into how many buffers, and where a loop copies and waits."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

pytestmark = pytest.mark.usefixtures("by_pointers")

X = aligned(np.zeros(1 << 12, np.float16))
SUM = aligned(np.zeros(1 << 12, np.float32))


@deuteron.jit
def dot(a, b, out, K, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    square = i[:, None] * BLOCK + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK, num_stages=STAGES):
        acc = tl.dot(tl.load(a + k * BLOCK + square), tl.load(b + k * BLOCK + square), acc)
    tl.store(out + square, acc)


def compiled(kernel, *args, target="cuda:80", **given):
    return generic_asm(compile_for(target, kernel, *args, **given), "ttgir")


def loop_ops(text):
    """The names of the ops of the only loop that touch shared memory, or wait."""
    body = re.search(r'"scf\.for".*?"scf\.yield"', text, re.DOTALL)[0]
    named = re.findall(r'"tt(?:ng?|g)?\.(\w+)"', body)
    order = ("async_wait", "async_copy_global_to_local", "async_commit_group", "barrier", "local_load", "dot", "load")
    return [name for name in named if name in (*order, "warp_group_dot", "local_alloc")]


def buffers(text):
    return [int(count) for count in re.findall(r"\"ttg.local_alloc\"\(\).*-> !ttg.memdesc<(\d+)x\d+x\d+x", text)]


def waits(text):
    return [int(num) for num in re.findall(r'"ttg.async_wait"\(\) <\{num = (\d+)', text)]


def test_one_wait_and_one_barrier_in_each_iteration():
    text = compiled(dot, X, X, SUM, 128, BLOCK=32, STAGES=None, num_stages=4)
    copies = ["async_copy_global_to_local"] * 2
    reads = ["local_load"] * 2
    assert loop_ops(text) == ["async_wait", "barrier", *copies, "async_commit_group", *reads, "dot"]


@pytest.mark.parametrize("stages, slots", [(3, 3), (4, 3)])
def test_dots_of_warpgroups_get_one_slot_less_where_memory_has_no_room_for_all(stages, slots):
    text = compiled(dot, X, X, SUM, 128, BLOCK=128, STAGES=stages, num_warps=8, target="cuda:90")
    assert "warp_group_dot" in loop_ops(text)
    assert buffers(text) == [slots, slots]


def test_dots_of_warpgroups_are_issued_before_the_copies():
    text = compiled(dot, X, X, SUM, 128, BLOCK=64, STAGES=None, target="cuda:90")
    ops = loop_ops(text)
    assert ops[:3] == ["async_wait", "barrier", "warp_group_dot"]
    assert ops[-3:] == ["async_copy_global_to_local"] * 2 + ["async_commit_group"]


@deuteron.jit
def decayed(a, b, out, K, DECAYS: tl.constexpr):
    i = tl.arange(0, 64)
    square = i[:, None] * 64 + i[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        if DECAYS:
            acc *= 0.5
        acc = tl.dot(tl.load(a + k * 64 + square), tl.load(b + k * 64 + square), acc)
    tl.store(out + square, acc)


@pytest.mark.parametrize(
    ("stages", "decays", "copies_first"), [(2, True, True), (3, True, False), (2, False, False), (3, False, False)]
)
def test_two_slots_are_filled_before_dots_that_are_waited_for_anyway(rng, stages, decays, copies_first):
    given = {"DECAYS": decays, "num_stages": stages}
    ops = loop_ops(compiled(decayed, X, X, SUM, 128, target="cuda:90", **given))
    assert (ops.index("async_copy_global_to_local") < ops.index("warp_group_dot")) == copies_first
    a, b = (aligned(rng.standard_normal((256, 64)).astype(np.float16)) for _ in range(2))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    emulate(decayed, a, b, out, 256, target="cuda:90", grid=(1,), **given)
    parts = (x.astype(np.float64).reshape(4, 64, 64) for x in (a, b))
    scales = 0.5 ** np.arange(3, -1, -1) if decays else np.ones(4)
    np.testing.assert_allclose(out, (np.matmul(*parts) * scales[:, None, None]).sum(0), atol=1e-2)


@pytest.mark.parametrize(("target", "expected"), [("cuda:80", [2, 3, 4, 5]), ("cuda:90", [2, 3, 4, 5])])
def test_number_of_buffers(target, expected):
    for stages, count in zip((2, 3, 4, 5), expected, strict=True):
        text = compiled(dot, X, X, SUM, 128, BLOCK=64, STAGES=None, num_stages=stages, target=target)
        assert buffers(text) == [count, count]
        assert waits(text) == [count - 2, 0]


@pytest.mark.parametrize("stages", [0, 1])
def test_one_stage_copies_nothing_ahead(stages):
    assert "async" not in compiled(dot, X, X, SUM, 128, BLOCK=32, STAGES=None, num_stages=stages)


def test_where_one_slot_more_costs_a_resident_program_there_is_one_less():
    """64 KB a slot: a third does not fit into 163 KB."""
    text = compiled(dot, X, X, SUM, 256, BLOCK=128, STAGES=None, num_stages=3, num_warps=8, target="cuda:80")
    assert buffers(text) == [2, 2]


def test_the_hint_of_a_loop_goes_before_the_option():
    assert buffers(compiled(dot, X, X, SUM, 128, BLOCK=32, STAGES=5, num_stages=1)) == [5, 5]
    assert "async" not in compiled(dot, X, X, SUM, 128, BLOCK=32, STAGES=1, num_stages=3)


@pytest.mark.parametrize(("target", "block", "slots"), [("cuda:80", 128, 2), ("cuda:86", 64, 6), ("cuda:90", 128, 3)])
@pytest.mark.parametrize("stages", [8, 20])
def test_of_more_stages_than_there_is_room_for_there_are_as_many_as_fit(target, block, slots, stages):
    text = compiled(dot, X, X, SUM, 256, BLOCK=block, STAGES=None, num_stages=stages, num_warps=8, target=target)
    assert buffers(text) == [slots, slots]


@pytest.mark.parametrize("stages", [2, 10])
def test_tiles_of_which_not_two_fit_are_loaded_in_their_iteration(stages):
    kernel = compile_for("cuda:86", dot, X, X, SUM, 128, BLOCK=128, STAGES=None, num_stages=stages, num_warps=8)
    assert "async" not in kernel.asm["ttgir"]
    assert "shared memory has no room for two iterations" in kernel.asm["ttgir"]
    assert kernel.metadata.shared <= 101376


@deuteron.jit
def sums(x, out, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.range(0, n, BLOCK, num_stages=STAGES):
        total += tl.load(x + k + i)
    tl.store(out + i, total)


def test_a_loop_without_a_dot_is_pipelined_where_it_asks_for_it():
    assert "async" not in compiled(sums, SUM, SUM, 1024, BLOCK=256, STAGES=None)
    assert "ttg.async_copy_global_to_local" in compiled(sums, SUM, SUM, 1024, BLOCK=256, STAGES=3)


@deuteron.jit
def variant(a, b, out, index, K, BLOCK: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    square = i[:, None] * BLOCK + i[None, :]
    acc, row = tl.zeros((BLOCK, BLOCK), tl.float32), 0
    for k in range(0, K, BLOCK):
        x = tl.load(a + k * BLOCK + square)
        if CASE == "other":
            y = tl.load(b + k * BLOCK + square, mask=square < K, other=1.0)
        elif CASE == "index":
            rows = tl.load(index + k + i)
            y = tl.load(b + rows[:, None] * BLOCK + i[None, :])
        elif CASE == "list":
            row = tl.load(index + row)
            y = tl.load(b + row + square)
        elif CASE == "volatile":
            y = tl.load(b + k * BLOCK + square, volatile=True)
        elif CASE == "narrow":
            y = tl.load(b + (k * BLOCK + square) * 3)
        else:
            y = tl.load(b + k * BLOCK + square)
        acc = tl.dot(x, y, acc)
        if CASE == "store":
            tl.store(b + k * BLOCK + square, x)
        if CASE == "barrier":
            tl.store(b + k * BLOCK + square, x)
            tl.debug_barrier()
        if CASE == "atomic":
            tl.atomic_add(index, 1)
    tl.store(out + square, acc)


INDEX = aligned(np.zeros(1 << 12, np.int32))


@pytest.mark.parametrize(
    ("case", "copied", "prefetched"),
    [
        ("plain", 2, 0),
        ("other", 1, 1),
        ("narrow", 1, 1),
        ("index", 2, 3),  # copies are two iterations ahead, what their addresses need is three
        ("list", 1, 0),
        ("volatile", 0, 0),
        ("store", 1, 0),
        ("barrier", 1, 0),
        ("atomic", 0, 0),
    ],
)
def test_what_is_not_copied_ahead(case, copied, prefetched):
    text = compiled(variant, X, X, SUM, INDEX, 128, BLOCK=32, CASE=case)
    assert loop_ops(text).count("async_copy_global_to_local") == copied
    before_loop = text[: text.index('"scf.for"')]
    assert before_loop.count('"tt.load"') == prefetched


def test_large_tiles_do_not_wait_in_registers():
    text = compiled(variant, X, X, SUM, INDEX, 128, BLOCK=128, CASE="narrow")
    assert '"tt.load"' not in text[: text.index('"scf.for"')]
    assert loop_ops(text).count("load") == 1


@deuteron.jit
def two_loops(a, b, out, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    square = i[:, None] * BLOCK + i[None, :]
    a_ptrs, acc = a + square, tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b + square), acc)
        a_ptrs += BLOCK * BLOCK
    for _ in range(K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b + square), acc)
        a_ptrs -= BLOCK * BLOCK
    tl.store(out + square, acc)


def test_a_loop_that_goes_on_where_one_ended():
    text = compiled(two_loops, X, X, SUM, 4, BLOCK=32)
    assert text.count('"ttg.async_copy_global_to_local"') == 2 * (2 * 2 + 2)


def test_iterations_that_certainly_come_are_not_masked():
    def masked(text):
        return re.findall(r'"ttg\.async_copy_global_to_local".*operandSegmentSizes = array<i32: 1, 1, (\d)', text)

    known = masked(compiled(known_bounds, X, X, SUM, BLOCK=32, num_stages=4))
    assert known == ["0"] * 6 + ["1"] * 2


@deuteron.jit
def known_bounds(a, b, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    square = i[:, None] * BLOCK + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, 4 * BLOCK, BLOCK):
        acc = tl.dot(tl.load(a + k * BLOCK + square), tl.load(b + k * BLOCK + square), acc)
    tl.store(out + square, acc)


@deuteron.jit
def dot_of_what_is_left(a, b, out, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    square = i[:, None] * BLOCK + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(tl.program_id(0) * BLOCK, K, BLOCK):
        mask = i[None, :] < 256 - k
        acc = tl.dot(tl.load(a + k * BLOCK + square, mask=mask, other=0.0), tl.load(b + k * BLOCK + square), acc)
    tl.store(out + square, acc)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_masks_are_as_constant_before_a_loop_that_begins_anywhere(target):
    text = compiled(dot_of_what_is_left, X, X, SUM, 64, BLOCK=32, num_stages=3, target=target)
    assert text.count('"ttg.async_copy_global_to_local"') == 6


@deuteron.jit
def folded(a, b, out, K, C, first, BEGINS: tl.constexpr):
    """Columns by their quotients and remainders, as of a convolution."""
    i, j = tl.arange(0, 64), tl.arange(0, 32)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(first if BEGINS else 0, K, 32):
        at = k + j
        x = tl.load(a + i[:, None] * C + (at // C * 64 * C + at % C)[None, :], mask=(at < K)[None, :], other=0.0)
        y = tl.load(b + at[:, None] * 64 + i[None, :], mask=(at < K)[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("begins", [False, True])
def test_columns_by_quotients_are_neighbours_in_iterations_ahead(rng, target, begins):
    """What is ahead may be beyond the largest number, and was said to be of no sign then: a copy had no neighbours."""
    a, b = (aligned(rng.integers(-4, 5, shape).astype(np.float16)) for shape in ((3, 64, 48), (144, 64)))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    emulate(folded, a, b, out, 144, 48, 32, BEGINS=begins, target=target, num_stages=3)
    rows = a.transpose(1, 0, 2).reshape(64, 144)[:, 32 * begins :].astype(np.float32)
    np.testing.assert_array_equal(out, rows @ b[32 * begins :].astype(np.float32))


@deuteron.jit
def odd(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM) % M, tl.arange(0, BN) % N, tl.arange(0, BK)
    a_ptrs, b_ptrs = a + (m[:, None] * K + k[None, :]), b + (k[:, None] * N + n[None, :])
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a_ptrs, mask=k[None, :] < K - start, other=0.0)
        y = tl.load(b_ptrs, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], acc)


@pytest.mark.parametrize(("blocks", "warps", "ahead"), [
    ((64, 64, 32), 4, 2),
    ((64, 128, 32), 4, 2),
    ((128, 128, 32), 8, 2),
    ((128, 128, 32), 4, 0),
    ((128, 256, 64), 8, 0),
])  # fmt: skip
def test_all_that_is_not_copied_goes_into_registers_or_nothing(blocks, warps, ahead):
    sizes = dict(zip(("BM", "BN", "BK"), blocks, strict=True))
    text = compiled(odd, X, X, SUM, 1001, 999, 777, target="cuda:90", num_warps=warps, **sizes)
    assert text[: text.index('"scf.for"')].count('"tt.load"') == ahead

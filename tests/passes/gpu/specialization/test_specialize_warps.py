"""Which kernels are given warps that copy, what these do, and what is left to the others."""

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.emulator import run_kernel

pytestmark = pytest.mark.usefixtures("by_pointers")

HALF, SINGLE = np.zeros(1 << 16, np.float16), np.zeros(1 << 16, np.float32)
NAMES = re.compile(
    r'"(ttg\.(?:warp_\w+|async_copy\w+)|ttng\.(?:wait_barrier|arrive_barrier|async_\w+|barrier_expect|warp_group_dot\w*|fence\w+)'
    r'|scf\.\w+|tt\.(?:load|store|reduce)|ttg\.local_(?:alloc|load))"'
)
SHORT = {
    "ttng.wait_barrier": "wait",
    "ttng.arrive_barrier": "arrive",
    "ttng.async_copy_mbarrier_arrive": "arrive later",
    "ttg.async_copy_global_to_local": "copy",
    "ttng.barrier_expect": "expect",
    "ttng.async_tma_copy_global_to_local": "copy block",
    "ttng.warp_group_dot": "dot",
    "ttng.warp_group_dot_wait": "dot wait",
    "ttng.fence_async_shared": "fence",
    "scf.for": "{",
    "scf.yield": "}",
}


def regions(kernel) -> tuple[list[str], list[str]]:
    """The ops that matter in the default region and in the partition."""
    _, found, text = generic_asm(kernel, "ttgir").partition('"ttg.warp_specialize"')
    assert found, "not specialised"
    default, partition = text.split('"ttg.warp_yield"')
    return tuple([SHORT.get(name, name) for name in NAMES.findall(part)] for part in (default, partition))


def is_specialized(kernel) -> bool:
    return kernel.metadata.extra_warps > 0


@deuteron.jit
def matmul(a, b, out, n, M: tl.constexpr, N: tl.constexpr, CASE: tl.constexpr = "", ASKED: tl.constexpr = True):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for step in tl.range(n, warp_specialize=ASKED):
        x = tl.load(a + step * N + rows[:, None] * 4096 + columns[None, :])
        y = tl.load(b + step * N * N + columns[:, None] * N + columns[None, :])
        if CASE == "stored":
            tl.store(a + step * N + rows[:, None] * 4096 + columns[None, :], x + 1)
        if CASE == "barrier":
            tl.debug_barrier()
        if CASE == "cast":
            y = (y.to(tl.float32) * 2).to(tl.float16)
        if CASE == "sum":
            acc += tl.sum(x.to(tl.float32), 1)[:, None]
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


def compiled(case="", target="cuda:90", num_warps=8, **options):
    return compile_for(target, matmul, HALF, HALF, SINGLE, 4, M=128, N=64, CASE=case, num_warps=num_warps, **options)


def test_one_region_copies_and_the_other_multiplies():
    default, partition = regions(compiled())
    assert default == ["{", "wait", "fence", "dot", "dot wait", "arrive", "}", "dot wait", "arrive", "tt.store"]
    assert partition == ["{", "wait", "copy", "copy", "arrive later", "}", "ttg.warp_return"]


def test_both_loads_of_a_dot_arrive_at_one_barrier_for_each_buffer():
    text = generic_asm(compiled(num_stages=4), "ttgir")
    assert text.count('"ttng.init_barrier"') == 8
    assert "<4x128x64xf16" in text and "<4x64x64xf16" in text and text.count("<4x1xi64") > 2


def test_what_is_only_needed_for_copies_is_not_in_the_default_region():
    default, _ = generic_asm(compiled(), "ttgir").split('"ttg.warp_yield"')
    _, loop = default.split('"scf.for"')
    assert "!tt.ptr<f16>" not in loop.split('"scf.yield"')[0]


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("", {"target": "cuda:80"}),
        ("", {"num_stages": 1}),
        ("barrier", {}),
    ],
)
def test_others_are_left_as_they_are(case, options):
    assert not is_specialized(compiled(case, **options))


def test_what_the_kernel_stores_to_is_loaded_where_it_was():
    default, partition = regions(compiled("stored"))
    assert "tt.load" in default and partition.count("copy") == 1


@pytest.mark.parametrize("num_warps", [4, 8])
def test_dots_alone_are_only_specialised_where_it_is_asked_for(num_warps):
    assert is_specialized(compiled(num_warps=num_warps))
    assert not is_specialized(compiled(num_warps=num_warps, ASKED=False))


@pytest.mark.parametrize("case", ["cast", "sum"])
def test_tiles_are_loaded_from_buffers_where_they_are_not_multiplied_as_they_are(case):
    default, _ = regions(compiled(case))
    assert "ttg.local_load" in default and "tt.load" not in default
    assert default.index("wait") < default.index("ttg.local_load") < default.index("arrive")


@deuteron.jit
def two_loops(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=True):
        x, y = tl.load(a + step * N * N + square), tl.load(b + step * N * N + square)
        acc = tl.dot(x, y, acc)
    acc = acc * 2
    for step in range(n, 2 * n):
        x, y = tl.load(a + step * N * N + square), tl.load(b + step * N * N + square)
        acc = tl.dot(x, y, acc)
    tl.store(out + square, acc)


def test_two_loops_share_a_ring():
    kernel = compile_for("cuda:90", two_loops, HALF, HALF, SINGLE, 4, N=128, num_warps=8, num_stages=3)
    front, _ = generic_asm(kernel, "ttgir").split('"ttg.warp_specialize"')
    assert front.count('"ttg.local_alloc"') == 4
    default, partition = regions(kernel)
    assert default.count("wait") == partition.count("wait") == 2


@deuteron.jit
def attention(q, k, v, out, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ASKED: tl.constexpr = False):
    rows, columns, dims = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, n, BN, warp_specialize=ASKED):
        y = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        z = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        p = tl.exp(tl.dot(x, y)).to(tl.float16)
        acc = tl.dot(p, z, acc)
    tl.store(out + rows[:, None] * D + dims[None, :], acc)


def test_dots_wait_for_their_own_tiles_and_the_second_is_delayed_with_its_tile():
    given = {"D": 64, "BM": 128, "BN": 64, "ASKED": True, "num_warps": 8, "num_stages": 3}
    default, partition = regions(compile_for("cuda:90", attention, HALF, HALF, HALF, SINGLE, 256, **given))
    inside = default[default.index("{") : default.index("}")]
    dot = ["wait", "fence", "dot"]
    assert inside == ["{", *dot, *dot, "dot wait", "arrive", "dot wait", "arrive"]
    assert "tt.load" in default[: default.index("{")], "what is read in every iteration is loaded once"
    assert [partition.count(name) for name in ("wait", "copy", "arrive later")] == [4, 4, 4]


@pytest.mark.parametrize(
    ("dim", "block", "num_warps", "wanted"), [(64, 128, 8, True), (64, 64, 8, False), (128, 64, 4, False)]
)
def test_attention_is_specialised_where_there_are_registers_for_one_program_only(dim, block, num_warps, wanted):
    given = {"D": dim, "BM": 128, "BN": block, "num_warps": num_warps, "num_stages": 2}
    kernel = compile_for("cuda:90", attention, HALF, HALF, HALF, SINGLE, 256, **given)
    assert is_specialized(kernel) == wanted


@deuteron.jit
def gathered(a, b, index, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=True):
        rows = tl.load(index + step * N + i)
        x, y = tl.load(a + rows[:, None] * N + i[None, :]), tl.load(b + i[:, None] * N + i[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * N + i[None, :], acc)


def test_addresses_that_are_loaded_as_tiles_are_left():
    indices = np.zeros(4096, np.int32)
    assert not is_specialized(compile_for("cuda:90", gathered, HALF, HALF, indices, SINGLE, 4, N=128, num_warps=8))


@deuteron.jit
def blocks(a, b, out, K, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.make_tensor_descriptor(a, [N, K], [K, 1], [N, 64])
    y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [64, N])
    acc = tl.zeros((N, N), tl.float32)
    for k in tl.range(0, K, 64, warp_specialize=True):
        acc = tl.dot(x.load([0, k]), y.load([k, 0]), acc)
    tl.store(out + i[:, None] * N + i[None, :], acc)


def test_blocks_of_tensors_are_copied_by_tma_and_need_no_fence():
    kernel = compile_for("cuda:90", blocks, HALF, HALF, SINGLE, 256, N=128, num_warps=8)
    default, partition = regions(kernel)
    assert default == ["{", "wait", "dot", "dot wait", "arrive", "}", "dot wait", "arrive", "tt.store"]
    assert partition == ["{", "wait", "expect", "copy block", "copy block", "}", "ttg.warp_return"]
    assert generic_asm(kernel, "ttgir").count("<{count = 1 : i32}>") == 3, "one arrival fills a buffer"


@deuteron.jit
def block_and_rows(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.make_tensor_descriptor(a, [N, 8 * N], [8 * N, 1], [N, N])
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=True):
        y = tl.load(b + step * N * N + (i ^ 5)[:, None] * N + i[None, :])
        acc = tl.dot(x.load([0, step * N]), y, acc)
    tl.store(out + i[:, None] * N + i[None, :], acc)


def test_a_dot_reads_one_operand_by_tma_and_one_by_threads_copies():
    default, partition = regions(compile_for("cuda:90", block_and_rows, HALF, HALF, SINGLE, 4, N=64))
    assert not {"copy", "copy block"} & {*default}
    assert [name for name in partition if "copy" in name] == ["copy", "copy block"]


@deuteron.jit
def persistent(a, b, out, tiles, n, M: tl.constexpr, N: tl.constexpr, FLATTEN: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [4096, 64], [64, 1], [M, 64])
    y = tl.make_tensor_descriptor(b, [64, N], [N, 1], [64, N])
    z = tl.make_tensor_descriptor(out, [4096, N], [N, 1], [M, N])
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        acc = tl.zeros((M, N), tl.float32)
        for k in range(n):
            acc = tl.dot(x.load([tile * M, k * 64]), y.load([k * 64, 0]), acc)
        z.store([tile * M, 0], acc)


@pytest.mark.parametrize(
    ("flatten", "num_warps", "tile", "wanted"),
    [
        (True, 4, (128, 64), True),
        (False, 4, (128, 64), False),
        (True, 8, (128, 128), True),
        (False, 8, (128, 128), False),  # two programs of 64 accumulators a thread overlap by themselves
        (False, 8, (128, 256), True),
        (True, 2, (64, 64), False),  # no warpgroup
    ],
)
def test_rounds_that_follow_each_other_without_a_gap(flatten, num_warps, tile, wanted):
    sizes = dict(zip(("M", "N"), tile, strict=True))
    kernel = compile_for("cuda:90", persistent, HALF, HALF, SINGLE, 9, 4, **sizes, FLATTEN=flatten, num_warps=num_warps)
    assert is_specialized(kernel) == wanted


def test_a_flattened_loop_whose_rounds_do_not_go_on_is_left():
    """Its dots are in no inner loop."""
    kernel = compile_for("cuda:90", flat, HALF, HALF, SINGLE, 4, N=64, num_warps=4)
    assert not is_specialized(kernel)


@deuteron.jit
def flat(a, b, out, n, N: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [4096, N], [N, 1], [N, N])
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, flatten=True):
        acc = tl.dot(x.load([step * N, 0]), x.load([step * N, 0]), acc)
    square = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + square, acc)


@deuteron.jit
def jagged(a, b, lengths, out, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(tl.load(lengths + tl.program_id(0)), warp_specialize=True):
        acc = tl.dot(tl.load(a + step * N * N + square), tl.load(b + step * N * N + square), acc)
    tl.store(out + square, acc)


def test_a_scalar_that_decides_is_loaded_by_both():
    lengths = np.zeros(16, np.int32)
    kernel = compile_for("cuda:90", jagged, HALF, HALF, lengths, SINGLE, N=128, num_warps=8)
    assert all("tt.load" in region for region in regions(kernel))
    same = compile_for("cuda:90", jagged, HALF, HALF, lengths, lengths.view(np.float32), N=128, num_warps=8)
    assert is_specialized(same), "arguments of a kernel do not overlap"


@deuteron.jit
def queued(a, b, last, following, counts, out, n, N: tl.constexpr):
    """The next place is stored before the loop, after all threads that store have been waited for."""
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    begin = tl.load(last)
    tl.store(following, begin + tl.sum(tl.load(counts + tl.arange(0, 1024)), 0))
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=True):
        acc = tl.dot(tl.load(a + (begin + step) * N * N + square), tl.load(b + step * N * N + square), acc)
    tl.store(out + square, acc)


def test_a_scalar_is_not_stored_to_by_what_its_own_threads_alone_have_loaded():
    """Nobody waits for the other warps to have loaded it."""
    numbers = [np.zeros(size, np.int32) for size in (16, 16, 1024)]
    kernel = compile_for("cuda:90", queued, HALF, HALF, *numbers, SINGLE, 4, N=128, num_warps=8)
    assert all("tt.load" in region for region in regions(kernel))
    assert ("last", "following") in {(pair.first, pair.second) for pair in kernel.metadata.apart}


def test_rings_take_what_shared_memory_leaves():
    """Four stages of 64 KB do not fit."""
    kernel = compile_for("cuda:90", matmul, HALF, HALF, SINGLE, 4, M=128, N=128, num_warps=8, num_stages=4)
    assert is_specialized(kernel) and "<3x128x128xf16" in generic_asm(kernel, "ttgir")
    assert kernel.metadata.shared <= 227 * 1024


def test_registers_are_moved_to_where_accumulators_need_them():
    wide = {"M": 256, "N": 128, "num_warps": 8, "num_stages": 2}
    assert "requestedRegisters" not in generic_asm(compiled(), "ttgir")
    text = compile_for("cuda:90", two_accumulators, HALF, HALF, SINGLE, 4, **wide).asm
    assert "requestedRegisters" in text["ttgir"]
    assert "setmaxnreg.inc" in text["ptx"] and "setmaxnreg.dec" in text["ptx"]


@pytest.mark.parametrize(("maxnreg", "at_launch"), [(None, 168), (136, 136), (512, 168)])
def test_no_more_registers_are_asked_for_than_there_are(maxnreg, at_launch):
    given = {"M": 256, "N": 128, "num_warps": 8, "num_stages": 2, "maxnreg": maxnreg}
    ptx = compile_for("cuda:90", two_accumulators, HALF, HALF, SINGLE, 4, **given).asm["ptx"]
    default, partition = (int(count) for count in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32\s+(\d+)", ptx))
    assert 0 < 256 * default + 128 * partition <= 384 * at_launch
    assert f".maxnreg {at_launch}\n" in ptx, "else ptxas may not know it, and ignore the rest (C7508)"


@deuteron.jit
def two_accumulators(a, b, out, n, M: tl.constexpr, N: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, 32)
    first, second = tl.zeros((M, N), tl.float32), tl.zeros((M, N // 2), tl.float32)
    half = tl.arange(0, N // 2)
    for step in tl.range(n, warp_specialize=True):
        x = tl.load(a + step * 32 + rows[:, None] * 4096 + ks[None, :])
        y = tl.load(b + step * 32 * N + ks[:, None] * N + columns[None, :])
        z = tl.load(b + step * 32 * N + ks[:, None] * N + half[None, :])
        first = tl.dot(x, y, first)
        second = tl.dot(x, z, second)
    tl.store(out + rows[:, None] * N + columns[None, :], first)
    tl.store(out + rows[:, None] * N + half[None, :], second)


@deuteron.jit
def weights(a, w, scales, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SCALED: tl.constexpr):
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(n):
        x = tl.load(a + step * K + rows[:, None] * 4096 + ks[None, :])
        y = tl.load(w + step * K + ks[:, None] + columns[None, :] * 4096)
        y = y.to(tl.float16)
        if SCALED:
            y *= tl.load(scales + step * N + columns)[None, :]
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


@pytest.mark.parametrize(
    ("m", "n", "scaled", "expected"),
    [(256, 128, False, True), (256, 128, True, True), (128, 256, False, True), (128, 128, False, False)],
)
def test_where_threads_compute_operands(m, n, scaled, expected):
    """Two programs on a multiprocessor overlap by themselves."""
    bytes = np.zeros(1 << 20, np.int8)
    arrays = np.zeros(1 << 20, np.float16), bytes, np.zeros(1 << 10, np.float16), np.zeros(m * n, np.float32)
    kernel = compile_for("cuda:90", weights, *arrays, 4, M=m, N=n, K=64, SCALED=scaled, num_warps=8)
    assert is_specialized(kernel) is expected
    assert kernel.metadata.resources["spill_bytes"] == 0 and not kernel.metadata.resources["warnings"]
    if expected:
        default, _ = regions(kernel)
        assert default.count("wait") == 2 and default.count("dot") == 4 and default.count("dot wait") == 1
        waited = default.index("dot wait")
        assert default[:waited].count("arrive") == default[waited:].count("arrive") == 1, "words are read earlier"


@deuteron.jit
def read_by_two(a, b, c, d, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=True):
        x, y = tl.load(a + step * N * N + at), tl.load(b + step * N * N + at)
        w, z = tl.load(d + step * N * N + at), tl.load(c + step * N * N + at)
        product = tl.fma(y, w, z)
        acc = tl.dot(x + z, product, acc)
    tl.store(out + at, acc)


def test_loads_that_two_of_others_meet_in_are_not_specialised(rng):
    """`z` joins `x`, though `fma` reads it and `y`, `w` before: two slots of one ring for one reader."""
    n, size = 3, 64
    a, b, c, d = (rng.standard_normal((n, size, size)).astype(np.float16) / 2 for _ in range(4))
    out = np.full((size, size), np.nan, np.float32)
    kernel = compile_for("cuda:90", read_by_two, a, b, c, d, out, n, N=size, num_warps=4)
    run_kernel(kernel.asm["ptx"], kernel.metadata, grid=(1,), args=(a, b, c, d, out, n))
    a, b, c, d = (x.astype(np.float64) for x in (a, b, c, d))
    np.testing.assert_allclose(out, np.matmul(a + c, b * d + c).sum(0), atol=0.1)


@deuteron.jit
def two_keys(q, r, k, s, v, out, n, D: tl.constexpr, E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns, dims, rest = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D), tl.arange(0, E)
    x, y = tl.load(q + rows[:, None] * D + dims[None, :]), tl.load(r + rows[:, None] * E + rest[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        at = start + columns
        scores = tl.dot(x, tl.load(k + at[None, :] * D + dims[:, None]))
        scores = tl.dot(y, tl.load(s + at[None, :] * E + rest[:, None]), scores)
        acc = tl.dot(tl.exp(scores).to(tl.float16), tl.load(v + at[:, None] * D + dims[None, :]), acc)
    tl.store(out + rows[:, None] * D + dims[None, :], acc)


def test_two_rings_may_begin_in_one_block(rng):
    """The scores of the first iteration are before the loop: both kinds of keys are in slot 0 of their rings there."""
    n, dims, rest, block = 192, 128, 64, 128
    q, k, v = (rng.standard_normal((size, dims)).astype(np.float16) / 8 for size in (block, n, n))
    r, s = (rng.standard_normal((size, rest)).astype(np.float16) / 8 for size in (block, n))
    out = np.full((block, dims), np.nan, np.float32)
    given = {"D": dims, "E": rest, "BM": block, "BN": 64, "num_warps": 8, "num_stages": 2}
    kernel = compile_for("cuda:90", two_keys, q, r, k, s, v, out, n, **given)
    assert is_specialized(kernel)
    run_kernel(kernel.asm["ptx"], kernel.metadata, grid=(1,), args=(q, r, k, s, v, out, n))
    q, r, k, s, v = (x.astype(np.float64) for x in (q, r, k, s, v))
    np.testing.assert_allclose(out, np.exp(q @ k.T + r @ s.T) @ v, atol=0.05)

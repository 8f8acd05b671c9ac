"""Scans in layouts that no kernel asks for: any bit of the position may be a register's, a lane's or a warp's."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_text, emulate, emulate_compiled, instructions_with

import deuteron
import deuteron.language as tl

# Of two functions a -> a * x + b one after the other: the order matters.
SCAN = """
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = (!tt.ptr<i32>) -> (), sym_visibility = "public"}}> ({{
  ^bb0(%out: !tt.ptr<i32>):
    %i = "tt.make_range"() <{{start = 0 : i32, end = {size} : i32}}> : () -> {i32}
    %three = "arith.constant"() <{{value = dense<3> : {i32}}}> : () -> {i32}
    %f = "arith.xori"(%i, %three) : ({i32}, {i32}) -> {i32}
    %a, %b = "tt.scan"(%f, %i) <{{axis = 0 : i32, reverse = {reverse}}}> ({{
    ^bb0(%a1: i32, %b1: i32, %a2: i32, %b2: i32):
      %2 = "arith.muli"(%a1, %a2) : (i32, i32) -> i32
      %3 = "arith.muli"(%b1, %a2) : (i32, i32) -> i32
      %4 = "arith.addi"(%3, %b2) : (i32, i32) -> i32
      "tt.scan.return"(%2, %4) : (i32, i32) -> ()
    }}) : ({i32}, {i32}) -> ({i32}, {i32})
    %p = "tt.splat"(%out) : (!tt.ptr<i32>) -> {ptr}
    %q = "tt.addptr"(%p, %i) : ({ptr}, {i32}) -> {ptr}
    "tt.store"(%q, %b) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}> : ({ptr}, {i32}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-warps" = {num_warps} : i32}} : () -> ()
"""

# A letter for each bit of the position, the lowest first: of the register, the lane or the warp. Those of a letter
# go up, or down.
ORDERS = [
    ("rrrlllllww", "up"),
    ("llllrrrlww", "up"),
    ("wwlllllrrr", "up"),
    ("rlrwlrllwl", "up"),
    ("wlrlwrlrll", "down"),
    ("lllllrrrww", "down"),
    ("wwwwlllll", "up"),
    ("lwlwlwlwlr", "up"),
    ("rr", "up"),
    ("wll", "down"),
    ("wwwwwrl", "up"),
    ("lllllwwwrr", "up"),
    ("rlllllwwwrr", "down"),
    ("lllwwwrrll", "up"),
    ("lllllwwwrrr", "up"),
    ("rlllwwwrllrw", "down"),
]


def text_of(order: str, direction: str, reverse: bool) -> tuple[str, int]:
    """The ttgir, and its number of warps. What no letter moves holds replicas."""
    bits = {letter: [1 << i for i, one in enumerate(order) if one == letter] for letter in "rlw"}
    if direction == "down":
        bits = {letter: found[::-1] for letter, found in bits.items()}
    bits["l"] = [0] * (5 - len(bits["l"])) + bits["l"]
    bits["r"].insert(1, 0)
    names = {"register": "r", "lane": "l", "warp": "w"}
    layout = ", ".join(f"{name} = {[[bit] for bit in bits[letter]]}" for name, letter in names.items())
    size, encoding = 1 << len(order), f"#ttg.linear<{{{layout}, block = []}}>"
    types = {"i32": f"tensor<{size}xi32, {encoding}>", "ptr": f"tensor<{size}x!tt.ptr<i32>, {encoding}>"}
    num_warps = 1 << len(bits["w"])
    return SCAN.format(size=size, reverse=str(reverse).lower(), num_warps=num_warps, **types), num_warps


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("order", "direction"), ORDERS)
def test_any_layout(order, direction, reverse):
    text, num_warps = text_of(order, direction, reverse)
    out = np.full(1 << len(order), -1, np.int32)
    emulate_compiled(compile_text(text, stage="ttgir", num_warps=num_warps), out)
    np.testing.assert_array_equal(out.view(np.uint32), scanned(range(len(out))[:: -1 if reverse else 1]))


def scanned(places: range) -> np.ndarray:
    """In this order, each with those before it."""
    state, found = 0, np.zeros(len(places), np.uint32)
    for i in places:
        state = (state * (i ^ 3) + i) % 2**32
        found[i] = state
    return found


@deuteron.jit
def cumsum_rows(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + places, tl.cumsum(tl.load(x + places), AXIS))


def test_warps_wait_once_for_each_other(rng):
    x, out = rng.integers(-99, 99, (1, 1024)).astype(np.int32), np.zeros((1, 1024), np.int32)
    kernel = emulate(cumsum_rows, x, out, M=1, N=1024, AXIS=1, num_warps=8)
    np.testing.assert_array_equal(out, x.cumsum(1))
    assert len(instructions_with(kernel, "bar.sync")) == 1
    # Five to find what comes before a lane, one to take it; the last lane stores the total of the warp.
    assert len(instructions_with(kernel, "shfl.sync")) == 6
    assert len(instructions_with(kernel, "ld.shared")) == 2  # eight totals, as vectors


@deuteron.jit
def add_segments(a, from_a, b, from_b):
    return tl.where(from_b, b, a + b), from_a | from_b


@deuteron.jit
def segmented_sums(x, flags, out, N: tl.constexpr):
    i = tl.arange(0, N)
    sums, _ = tl.associative_scan((tl.load(x + i), tl.load(flags + i) != 0), 0, add_segments)
    tl.store(out + i, sums)


@pytest.mark.parametrize(("size", "loads"), [(1024, 3), (4096, 2)])
def test_lanes_scan_what_many_warps_have(rng, size, loads):
    """One total of each operand in each lane, where a thread has four blocks behind its warps; else vectors of them."""
    x, flags = rng.integers(-99, 99, size).astype(np.int32), rng.integers(0, 9, size).astype(np.int32) == 0
    out, sums = np.zeros(size, np.int32), x.cumsum()
    kernel = emulate(segmented_sums, x, flags.astype(np.int32), out, N=size, num_warps=8)
    last = np.maximum.accumulate(np.where(flags, np.arange(size), 0))
    np.testing.assert_array_equal(out, sums - (sums - x)[last])
    assert len(instructions_with(kernel, "ld.shared")) == loads


def test_columns_are_scanned_by_threads_alone(rng):
    """A thread has eight rows, and a warp all columns: warps exchange one total for each column."""
    x, out = rng.integers(-99, 99, (32, 64)).astype(np.int32), np.zeros((32, 64), np.int32)
    kernel = emulate(cumsum_rows, x, out, M=32, N=64, AXIS=0, num_warps=4)
    np.testing.assert_array_equal(out, x.cumsum(0))
    assert not instructions_with(kernel, "shfl.sync") and len(instructions_with(kernel, "bar.sync")) == 1
    assert len(instructions_with(kernel, "st.shared")) == 2


@pytest.mark.parametrize(("size", "shuffles"), [(4096, 20), (1000, None)])
def test_numbers_and_bytes_that_are_scanned_lie_as_bytes_do(rng, size, shuffles):
    """16 in each of 256 threads: lanes exchange one total of each operand, then those of eight warps."""
    x, flags = rng.integers(-99, 99, size).astype(np.int32), (rng.integers(0, 9, size) == 0).astype(np.uint8)
    out, sums = aligned(np.zeros(size, np.int32)), x.cumsum()
    kernel = emulate(masked_segments, aligned(x), aligned(flags), out, size, BLOCK=4096, num_warps=8)
    last = np.maximum.accumulate(np.where(flags, np.arange(size), 0))
    np.testing.assert_array_equal(out, sums - (sums - x)[last])
    assert shuffles in (None, len(instructions_with(kernel, "shfl.sync")))


@deuteron.jit
def masked_segments(x, flags, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    numbers, begins = tl.load(x + i, i < n, other=0), tl.load(flags + i, i < n, other=0).to(tl.int32)
    sums, _ = tl.associative_scan((numbers, begins), 0, add_numbered_segments)
    tl.store(out + i, sums, i < n)


@deuteron.jit
def add_numbered_segments(a, from_a, b, from_b):
    return tl.where(from_b != 0, b, a + b), from_a | from_b

"""mbarriers: two halves of the program hand shared memory to each other through them."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_text, instructions_with

from deuteron.emulator import launch
from deuteron.errors import IRError

BARRIER = "!ttg.memdesc<1xi64, #ttg.shared_linear<{offset = [], block = []}, alignment = 8>, #ttg.shared_memory>"
OFFSETS = [[1 << bit] for bit in range(7)]
TILE = f"!ttg.memdesc<128xi32, #ttg.shared_linear<{{offset = {OFFSETS}, block = []}}, alignment = 16>, #smem, mutable>"
TILE = TILE.replace("#smem", "#ttg.shared_memory")
LINEAR = f"#ttg.linear<{{register = [], lane = {OFFSETS[:5]}, warp = {OFFSETS[5:]}, block = []}}>"
TENSOR, POINTERS = f"tensor<128xi32, {LINEAR}>", f"tensor<128x!tt.ptr<i32>, {LINEAR}>"
ACCESS = "cache = 1 : i32, evict = 1 : i32, isVolatile = false"


def kernel(fill: str, count: int) -> str:
    """Copies x to out through shared memory, with an mbarrier in between."""
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = (!tt.ptr<i32>, !tt.ptr<i32>) -> (), sym_visibility = "public"}}> ({{
  ^bb0(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>):
    %bar = "ttg.local_alloc"() {{allocation.offset = 0 : i32}} : () -> {BARRIER}
    %buffer = "ttg.local_alloc"() {{allocation.offset = 128 : i32}} : () -> {TILE}
    "ttng.init_barrier"(%bar) <{{count = {count} : i32}}> : ({BARRIER}) -> ()
    "ttng.fence_mbarrier_init_release_cluster"() : () -> ()
    "ttg.barrier"() <{{addrSpace = 31 : i32}}> : () -> ()
    %i = "tt.make_range"() <{{start = 0 : i32, end = 128 : i32}}> : () -> {TENSOR}
    %xs = "tt.splat"(%x) : (!tt.ptr<i32>) -> {POINTERS}
    %from = "tt.addptr"(%xs, %i) : ({POINTERS}, {TENSOR}) -> {POINTERS}
    {fill}
    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    "ttng.wait_barrier"(%bar, %zero, %buffer) : ({BARRIER}, i32, {TILE}) -> ()
    %read = "ttg.local_load"(%buffer) : ({TILE}) -> {TENSOR}
    %outs = "tt.splat"(%out) : (!tt.ptr<i32>) -> {POINTERS}
    %to = "tt.addptr"(%outs, %i) : ({POINTERS}, {TENSOR}) -> {POINTERS}
    "tt.store"(%to, %read) <{{cache = 1 : i32, evict = 1 : i32}}> : ({POINTERS}, {TENSOR}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, "ttg.shared" = 640 : i32}} : () -> ()
"""


def arrive(count: int) -> str:
    properties = f"count = {count} : i32, operandSegmentSizes = array<i32: 1, 0, 0>"
    return f'"ttng.arrive_barrier"(%bar) <{{{properties}}}> : ({BARRIER}) -> ()'


STORE = f"""
    %t = "tt.load"(%from) <{{{ACCESS}, operandSegmentSizes = array<i32: 1, 0, 0>}}> : ({POINTERS}) -> {TENSOR}
    "ttg.local_store"(%t, %buffer) : ({TENSOR}, {TILE}) -> ()
"""
COPY = f"""
    %t = "ttg.async_copy_global_to_local"(%from, %buffer)
      <{{{ACCESS}, contiguity = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0>}}>
      : ({POINTERS}, {TILE}) -> !ttg.async.token
"""


def run(text: str, rng) -> None:
    compiled = compile_text(text, "cuda:90", "ttgir", num_warps=4)
    x, out = aligned(rng.integers(0, 1 << 31, 128).astype(np.int32)), aligned(np.zeros(128, np.int32))
    launch(compiled.asm["ptx"], "k", (1,), 128, 640, (x, out))
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("count", [4, 128])
def test_each_warp_or_each_thread_arrives(rng, count):
    run(kernel(STORE + arrive(count), count), rng)


def test_copies_arrive_when_they_are_done(rng):
    run(kernel(COPY + f'"ttng.async_copy_mbarrier_arrive"(%bar) <{{noIncrement}}> : ({BARRIER}) -> ()', 128), rng)


def test_an_arrival_too_few_is_an_error(rng):
    with pytest.raises(IRError, match="4 arrivals at an mbarrier that counts 5"):
        run(kernel(STORE + arrive(4), 5), rng)


def test_bytes_are_expected(rng):
    expect = f"""
    %on = "arith.constant"() <{{value = true}}> : () -> i1
    "ttng.barrier_expect"(%bar, %on) <{{size = 512 : i32}}> : ({BARRIER}, i1) -> ()"""
    with pytest.raises(IRError, match="0 bytes are copied where 512 are expected"):
        run(kernel(STORE + expect, 1), rng)


def test_a_wait_is_a_loop_without_spilling_over():
    compiled = compile_text(kernel(STORE + arrive(4), 4), "cuda:90", "ttgir", num_warps=4)
    assert len(instructions_with(compiled, "mbarrier.try_wait.parity.shared::cta")) == 1

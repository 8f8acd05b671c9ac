"""Tiles in shared memory: any layout of registers into any swizzled layout and out again."""

import math

import numpy as np
import pytest
from backend.cuda.launching import compile_text, emulate_compiled, instructions_with
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_text import generic_asm
from layout.strategies import layouts

from deuteron.layout.distributed import default_blocked, mma_v2_operand
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared import swizzled

SHAPE = (16, 32)


def bases(layout: LinearLayout) -> str:
    return "{" + ", ".join(f"{name} = {[list(b) for b in vectors]}" for name, vectors in layout.bases) + "}"


def through_shared(
    src: LinearLayout, shared: LinearLayout, dst: LinearLayout, num_warps: int, offsets: tuple[int, int] | None = None
) -> str:
    """ttgir: a tile of numbers, 32 * row + column, goes through shared memory; of it, `dst`'s part is stored."""

    def tile(type: str, layout: LinearLayout, shape=None) -> str:
        return f"tensor<{'x'.join(map(str, shape or layout.shape))}x{type}, #ttg.linear<{bases(layout)}>>"

    def flat(type: str, layout: LinearLayout) -> str:
        count = math.prod(layout.shape)
        return tile(type, layout.reshape((count,)), (count,))

    def memory(shape: tuple[int, ...]) -> str:
        encoding = f"#ttg.shared_linear<{bases(shared)}, alignment = 16>"
        return f"!ttg.memdesc<{'x'.join(map(str, shape))}xi16, {encoding}, #ttg.shared_memory, mutable>"

    pointer, whole, loaded = "!tt.ptr<i16>", memory(SHAPE), memory(dst.shape)
    part = (
        ""
        if offsets is None
        else f"""
    %s = "ttg.memdesc_subslice"(%m) <{{offsets = array<i32: {offsets[0]}, {offsets[1]}>}}> : ({whole}) -> {loaded}"""
    )
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({pointer}) -> (), sym_visibility = "public"}}> ({{
  ^bb0(%out: {pointer}):
    %i = "tt.make_range"() <{{start = 0 : i32, end = 512 : i32}}> : () -> {flat("i32", src)}
    %j = "tt.reshape"(%i) : ({flat("i32", src)}) -> {tile("i32", src)}
    %x = "arith.trunci"(%j) : ({tile("i32", src)}) -> {tile("i16", src)}
    %m = "ttg.local_alloc"(%x) : ({tile("i16", src)}) -> {whole}{part}
    %y = "ttg.local_load"({"%s" if part else "%m"}) : ({loaded}) -> {tile("i16", dst)}
    "ttg.local_dealloc"(%m) : ({whole}) -> ()
    %k = "tt.make_range"() <{{start = 0 : i32, end = {math.prod(dst.shape)} : i32}}> : () -> {flat("i32", dst)}
    %l = "tt.reshape"(%k) : ({flat("i32", dst)}) -> {tile("i32", dst)}
    %p = "tt.splat"(%out) : ({pointer}) -> {tile(pointer, dst)}
    %q = "tt.addptr"(%p, %l) : ({tile(pointer, dst)}, {tile("i32", dst)}) -> {tile(pointer, dst)}
    "tt.store"(%q, %y) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
      : ({tile(pointer, dst)}, {tile("i16", dst)}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-warps" = {num_warps} : i32}} : () -> ()
"""


def check(src, shared, dst, num_warps):
    kernel = compile_text(through_shared(src, shared, dst, num_warps), stage="ttgir", num_warps=num_warps)
    out = np.full(512, -1, np.int16)
    emulate_compiled(kernel, out)
    np.testing.assert_array_equal(out, np.arange(512))
    return kernel


@st.composite
def ways(draw):
    num_warps = draw(st.sampled_from([1, 2, 4]))
    phases = [draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 4]))]
    shared = swizzled(SHAPE, draw(st.sampled_from([(0, 1), (1, 0)])), draw(st.sampled_from([1, 4, 8])), *phases)
    return draw(layouts(SHAPE, num_warps)), shared, draw(layouts(SHAPE, num_warps)), num_warps


@settings(max_examples=40, deadline=None)
@given(ways())
def test_any_layout_through_any_swizzle(drawn):
    check(*drawn)


@st.composite
def parts(draw):
    src, shared, _, num_warps = draw(ways())
    shape = draw(st.sampled_from([(16, 4), (8, 16), (2, 32), (16, 32)]))
    offsets = tuple(part * draw(st.integers(0, whole // part - 1)) for part, whole in zip(shape, SHAPE, strict=True))
    return src, shared, draw(layouts(shape, num_warps)), num_warps, offsets


@settings(max_examples=30, deadline=None)
@given(parts())
def test_any_part_of_any_swizzle(drawn):
    _, _, dst, num_warps, (row, column) = drawn
    kernel = compile_text(through_shared(*drawn), stage="ttgir", num_warps=num_warps)
    out = np.full(dst.shape, -1, np.int16)
    emulate_compiled(kernel, out)
    rows, columns = (np.arange(extent) for extent in dst.shape)
    np.testing.assert_array_equal(out, 32 * (row + rows[:, None]) + column + columns)


@pytest.mark.parametrize("max_phase", [1, 4])
def test_vectors_survive_a_swizzle(max_phase):
    src, dst = default_blocked(SHAPE, 2, vector=8), mma_v2_operand(SHAPE, [1, 2], 0, 16)
    kernel = check(src, swizzled(SHAPE, (1, 0), 8, 1, max_phase), dst, 2)
    assert len(instructions_with(kernel, "st.shared.v4.b32")) == 1
    assert len(instructions_with(kernel, "bar.sync")) == 1
    assert generic_asm(kernel, "ttgir").count('"ttg.barrier"') == 1

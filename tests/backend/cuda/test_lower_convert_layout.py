"""Conversions between random legal layouts, by every route, in the emulator; and which instructions they take."""

import numpy as np
import pytest
from backend.cuda.launching import compile_text, emulate_compiled, instructions_with
from hypothesis import example, given, settings
from hypothesis import strategies as st
from layout.strategies import layouts

from deuteron.layout.conversion import RegisterRoute, SharedRoute, ShuffleRoute, plan
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, LinearLayout

DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def encoding(layout: LinearLayout) -> str:
    return "#ttg.linear<{" + ", ".join(f"{name} = {[list(b) for b in bases]}" for name, bases in layout.bases) + "}>"


def conversion(size: int, element: str, src: LinearLayout, dst: LinearLayout, num_warps: int) -> str:
    """ttgir: the numbers from 0, in layout `src`, are converted to `dst` and stored."""

    def tile(type: str, layout: LinearLayout) -> str:
        return f"tensor<{size}x{type}, {encoding(layout)}>"

    cast = {"i32": None, "i64": "arith.extsi"}.get(element, "arith.trunci")
    source = f'%x = "{cast}"(%i) : ({tile("i32", src)}) -> {tile(element, src)}' if cast else ""
    pointer = f"!tt.ptr<{element}>"
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({pointer}) -> (), sym_visibility = "public"}}> ({{
  ^bb0(%out: {pointer}):
    %i = "tt.make_range"() <{{start = 0 : i32, end = {size} : i32}}> : () -> {tile("i32", src)}
    {source}
    %y = "ttg.convert_layout"({"%x" if cast else "%i"}) : ({tile(element, src)}) -> {tile(element, dst)}
    %j = "tt.make_range"() <{{start = 0 : i32, end = {size} : i32}}> : () -> {tile("i32", dst)}
    %p = "tt.splat"(%out) : ({pointer}) -> {tile(pointer, dst)}
    %q = "tt.addptr"(%p, %j) : ({tile(pointer, dst)}, {tile("i32", dst)}) -> {tile(pointer, dst)}
    "tt.store"(%q, %y) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
      : ({tile(pointer, dst)}, {tile(element, dst)}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-warps" = {num_warps} : i32}} : () -> ()
"""


def check_conversion(size, element, src, dst, num_warps, target="cuda:80"):
    text = conversion(size, element, src, dst, num_warps)
    kernel = compile_text(text, stage="ttgir", target=target, num_warps=num_warps)
    out = np.full(size, 1 if element == "i1" else -1, DTYPES[element])
    emulate_compiled(kernel, out)
    low_bits = np.arange(size) & 1 if element == "i1" else np.arange(size)
    np.testing.assert_array_equal(out, low_bits.astype(DTYPES[element]))
    return kernel


@st.composite
def conversions(draw):
    num_warps = draw(st.sampled_from([1, 2, 4, 8]))
    size = 1 << draw(st.integers(0, 11))
    src, dst = (draw(layouts((size,), num_warps)) for _ in range(2))
    return size, draw(st.sampled_from(list(DTYPES))), src, dst, num_warps, draw(st.sampled_from(["cuda:80", "cuda:90"]))


CROSSES_WARPS = (
    LinearLayout.make({REGISTER: [], LANE: [(b,) for b in lane], WARP: [(8,)], BLOCK: []}, {"dim0": 16})
    for lane in ((1, 2, 4, 0, 0), (9, 2, 4, 0, 0))
)


@settings(max_examples=40, deadline=None)
@example((16, "i1", *CROSSES_WARPS, 2, "cuda:80"))  # equal warp bits, but lanes reach into the other warp
@given(conversions())
def test_any_layout_converts_into_any_other(drawn):
    check_conversion(*drawn)


def layout_1d(register, lane, warp, size):
    bases = {REGISTER: register, LANE: lane, WARP: warp, BLOCK: []}
    return LinearLayout.make({name: [(b,) for b in values] for name, values in bases.items()}, {"dim0": size})


def test_renaming_registers_takes_no_instruction():
    src = layout_1d([1, 2], [4, 8, 16, 32, 64], [128, 256], 512)
    dst = layout_1d([2, 1], [4, 8, 16, 32, 64], [128, 256], 512)
    assert isinstance(plan(src, dst, 32), RegisterRoute)
    kernel = check_conversion(512, "i32", src, dst, 4)
    assert not instructions_with(kernel, "shfl") and not instructions_with(kernel, "shared")


@pytest.mark.parametrize(("element", "count"), [("i32", 8), ("i16", 4), ("i8", 2), ("i64", 16)])
def test_narrow_elements_travel_together(element, count):
    src = layout_1d([1, 2, 4], [8, 16, 32, 64, 128], [256, 512], 1024)
    dst = layout_1d([1, 2, 4], [16, 8, 32, 64, 128], [256, 512], 1024)
    assert isinstance(plan(src, dst, 32), ShuffleRoute)
    kernel = check_conversion(1024, element, src, dst, 4)
    assert len(instructions_with(kernel, "shfl.sync.idx")) == count
    assert not instructions_with(kernel, "shared")


def test_shared_memory_is_accessed_by_128_bits_where_both_sides_have_vectors():
    src = layout_1d([1, 2], [4, 8, 16, 32, 64], [128, 256], 512)
    dst = layout_1d([1, 2], [128, 256, 4, 8, 16], [32, 64], 512)
    assert isinstance(plan(src, dst, 32), SharedRoute)
    kernel = check_conversion(512, "i32", src, dst, 4)
    assert len(instructions_with(kernel, "st.shared.v4.b32")) == len(instructions_with(kernel, "ld.shared.v4.b32")) == 1
    assert len(instructions_with(kernel, "bar.sync")) == 1


TRANSPOSED_IN_A_WARP = (
    layout_1d([1, 2, 4, 8, 16], [32, 64, 128, 256, 512], [1024, 2048], 4096),
    layout_1d([32, 64, 128, 256, 512], [1, 2, 4, 8, 16], [1024, 2048], 4096),
)


@pytest.mark.parametrize(("target", "stores"), [("cuda:80", "st.shared"), ("cuda:90", "stmatrix")])
def test_what_stays_in_a_warp_waits_for_the_warp_only(target, stores):
    kernel = check_conversion(4096, "i32", *TRANSPOSED_IN_A_WARP, 4, target)
    assert (
        instructions_with(kernel, stores)
        and not instructions_with(kernel, "barrier")
        and not instructions_with(kernel, "bar.sync")
    )


def test_rows_of_matrices_are_stored_by_stmatrix():
    src = layout_1d([1, 64, 128, 256], [2, 4, 8, 16, 32], [512, 1024], 2048)
    dst = layout_1d([1, 2, 4, 64], [8, 16, 32, 256, 512], [128, 1024], 2048)
    kernel = check_conversion(2048, "i16", src, dst, 4, "cuda:90")
    assert len(instructions_with(kernel, "stmatrix.sync.aligned.m8n8.x4")) == 2
    assert len(instructions_with(kernel, "ld.shared.v4.b32")) == 2


@pytest.mark.parametrize(("target", "stores"), [("cuda:80", ("st.shared", 8)), ("cuda:90", ("stmatrix", 2))])
def test_rows_of_matrices_that_become_columns_are_loaded_transposed(target, stores):
    src = layout_1d([1, 64, 128, 256], [2, 4, 8, 16, 32], [512, 1024], 2048)
    dst = layout_1d([8, 64, 512, 1024], [16, 32, 1, 2, 4], [128, 256], 2048)
    kernel = check_conversion(2048, "i16", src, dst, 4, target)
    assert len(instructions_with(kernel, stores[0])) == stores[1]
    assert len(instructions_with(kernel, "ldmatrix.sync.aligned.m8n8.x4.trans")) == 2


@pytest.mark.parametrize("lane_bits", [(0, 1), (3, 1)])
@pytest.mark.parametrize("register_bit", [0, 2])
@pytest.mark.parametrize(("element", "count"), [("i32", 8), ("i16", 4), ("i8", 2), ("i64", 16), ("i1", 2)])
def test_lanes_that_choose_a_register_take_turns(element, count, register_bit, lane_bits):
    """One shuffle for each of eight registers, where a bit of theirs and two of the lane change places in a circle."""
    registers, lanes = [1, 2, 4], [8, 16, 32, 64, 128]
    src = layout_1d(registers, lanes, [], 256)
    first, second = lane_bits
    registers[register_bit], lanes[first], lanes[second] = lanes[second], registers[register_bit], lanes[first]
    kernel = check_conversion(256, element, src, layout_1d(registers, lanes, [], 256), 1)
    assert len(instructions_with(kernel, "shfl.sync.idx")) == count
    assert not instructions_with(kernel, "shared")


@pytest.mark.parametrize("lane_bit", [0, 3])
@pytest.mark.parametrize("register_bit", [0, 2])
@pytest.mark.parametrize(("element", "count"), [("i32", 4), ("i16", 2), ("i8", 1), ("i64", 8), ("i1", 1)])
def test_a_register_changes_places_with_a_lane(element, count, register_bit, lane_bit):
    """One shuffle for two of eight registers, also where others of them come from the other lane."""
    registers, lanes = [1, 2, 4], [8, 16, 32, 64, 128]
    src = layout_1d(registers, lanes, [], 256)
    registers[register_bit], lanes[lane_bit] = lanes[lane_bit], registers[register_bit]
    mixed = [column ^ registers[register_bit] if column == 2 else column for column in registers]
    for held in (registers, mixed):
        kernel = check_conversion(256, element, src, layout_1d(held, lanes, [], 256), 1)
        assert len(instructions_with(kernel, "shfl.sync.bfly")) == len(instructions_with(kernel, "shfl")) == count


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("way", ["stored", "loaded", "loaded transposed", "both"])
def test_rows_of_matrices_wherever_they_are(rng, way, target):
    """The bits of a tile are in any order; three of them make the row of a matrix for a side, which random layouts
    hardly have, where no longer vectors are on both.
    """
    bits = [1 << int(bit) for bit in rng.permutation(11)]
    row, rest = bits[:3], bits[3:]
    other = [rest[number] for number in rng.permutation(len(rest))]
    rows = layout_1d([row[0], *rest[4:]], [*row[1:], *rest[:3]], rest[3:4], 2048)
    columns, moved = (layout_1d([b[0], *b[4:]], [*b[1:3], *row], b[3:4], 2048) for b in (rest, other))
    held = layout_1d([*row, *other[6:]], other[:5], other[5:6], 2048)
    ways = {"stored": (rows, held), "loaded": (held, rows), "loaded transposed": (held, columns), "both": (rows, moved)}
    check_conversion(2048, "i16", *ways[way], 2, target)

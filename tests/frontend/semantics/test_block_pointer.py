"""Block pointers: operands brought to their types, attributes, errors."""

from __future__ import annotations

import re

import pytest

BLOCK = "tl.make_block_ptr(p, (n, 64), (64, 1), (0, n), (16, 32), (1, 0))"
INTEGERS = "tl.make_block_ptr(q, (n,), (1,), (0,), (64,), (0,))"


def make(base="p", shape="(n, 64)", strides="(64, 1)", offsets="(0, n)", block="(16, 32)", order="(1, 0)") -> str:
    return f"tl.make_block_ptr({base}, {shape}, {strides}, {offsets}, {block}, {order})"


def test_sizes_and_strides_are_int64_and_offsets_int32(ops):
    [*_, made] = ops(BLOCK)
    assert [str(value.type) for value in made.operands] == ["!tt.ptr<f32>", *["i64"] * 4, "i32", "i32"]
    assert str(made.result.type) == "!tt.ptr<tensor<16x32xf32>>"
    assert list(made.order.get_values()) == [1, 0]


@pytest.mark.parametrize(
    ("offset", "type"),
    [("n.to(tl.int64)", "i64"), ("n.to(tl.uint32)", "i64"), ("n.to(tl.int8)", "i32"), ("2**40", "i64"), ("-5", "i32")],
)
def test_an_offset_has_the_bits_that_it_needs(ops, offset: str, type: str):
    assert str(ops(make(offsets=f"(0, {offset})"))[-1].offsets[1].type) == type


def test_a_list_of_one_may_be_a_scalar(ops):
    assert str(ops("tl.make_block_ptr(p, n, 1, 0, 64, 0)")[-1].result.type) == "!tt.ptr<tensor<64xf32>>"


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        (f"tl.load({BLOCK})", "tt.load"),
        (f"tl.store({BLOCK}, 1.0)", "tt.store"),
        (f"{BLOCK}.store(m)", "tt.store"),
        (f"q = tl.advance({BLOCK}, (0, n))", "tt.advance"),
        (f"q = {BLOCK}.advance([n, 1])", "tt.advance"),
    ],
)
def test_accesses(op_names, statement: str, last: str):
    assert op_names(statement)[-1] == last


def test_what_is_checked_is_in_order(ops):
    load = ops(f"tl.load({BLOCK}, boundary_check=(1, 0), padding_option='nan')")[-1]
    assert list(load.boundary_check.get_values()) == [0, 1]
    assert load.pads_with_nan


def test_a_block_is_a_tile_of_the_language(result_type):
    assert result_type(f"tl.load({BLOCK})") == "fp32[16, 32]"
    assert result_type(f"m.to({BLOCK}.dtype.element_ty)") == "fp32[16, 32]"
    assert result_type("tl.load(tl.make_block_ptr(b, (n,), (1,), (0,), (64,), (0,)))") == "int8[64]"


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("type.element_ty.shape", "(16, 32)"), ("dtype.element_ty.element_ty", "tl.float32"), ("shape", "()")],
)
def test_attributes(op_names, attribute: str, value: str):
    assert "tt.make_tensor_ptr" in op_names(f"tl.static_assert({BLOCK}.{attribute} == {value})")
    assert "tt.make_tensor_ptr" in op_names(f"tl.static_assert(isinstance({BLOCK}, tl.tensor))")


ERRORS = {
    make(base="n"): "tl.make_block_ptr takes the pointer to the first element, got int32.",
    make(base="p + t"): "takes the pointer to the first element, got pointer<fp32>[64].",
    make(base=BLOCK): "takes the pointer to the first element, got pointer<fp32[16, 32]>.",
    make(shape="(n,)"): "The shape of tl.make_block_ptr: expected 2 integers, as the block has, got (int32,).",
    make(strides="(64, 1, 1)"): "The strides of tl.make_block_ptr: expected 2 integers",
    make(offsets="0"): "The offsets of tl.make_block_ptr: expected 2 integers, as the block has, got 0.",
    make(shape="(f, 64)"): "Each of the shape of tl.make_block_ptr is an integer scalar, got fp32.",
    make(offsets="(0, t)"): "Each of the offsets of tl.make_block_ptr is an integer scalar, got int32[64].",
    make(offsets="(0, 1.5)"): "Each of the offsets of tl.make_block_ptr is an integer scalar, got fp32.",
    make(block="(16, 24)"): "Expected powers of two, got 24 in the shape [16, 24].",
    make(block="(16, n)"): "The shape (16, int32) is not known at compile time",
    make(order="(0, 2)"): "The order of tl.make_block_ptr is a permutation of (0, 1), got (0, 2). The fastest changing "
    "dimension comes first: (1, 0) is row-major.",
    make(order="(1,)"): "is a permutation of (0, 1), got (1,).",
    make(order="(n, 0)"): "is a permutation of (0, 1), got (int32, 0).",
    f"q = tl.advance({BLOCK}, (0,))": "The offsets of tl.advance: expected 2 integers, as the block has, got (0,).",
    "q = tl.advance(p, (0,))": "tl.advance takes a block pointer, got pointer<fp32>. Make one with tl.make_block_ptr.",
    f"tl.load({BLOCK}, m > 0)": "tl.load through a block pointer has no `mask`. Say in boundary_check which dimensions "
    "may be out of bounds.",
    f"tl.load({BLOCK}, other=0.0)": "tl.load through a block pointer has no `other`.",
    f"tl.load({BLOCK}, boundary_check=(0, 2))": "The boundary_check of tl.load names each of the dimensions (0, 1) of "
    "the block at most once, got (0, 2).",
    f"tl.load({BLOCK}, boundary_check=(0, 0))": "at most once, got (0, 0).",
    f"tl.load({BLOCK}, boundary_check=-1)": "at most once, got -1.",
    f"tl.load({BLOCK}, boundary_check=(n,))": "at most once, got (int32,).",
    f"tl.load({BLOCK}, padding_option='one')": "tl.load has no padding_option 'one'. Use 'zero' or 'nan', or ''.",
    f"tl.load({INTEGERS}, padding_option='nan')": "padding_option 'nan' is for floats, the elements are int32.",
    f"tl.store({BLOCK}, m, m > 0)": "tl.store through a block pointer has no `mask`.",
    f"tl.store({BLOCK}, x)": "tl.store through a pointer to a block of [16, 32] got a value of [64].",
    f"tl.store({BLOCK}, None)": "The value of tl.store must be a tensor or a number, got None.",
    f"tl.store({make(base='c')}, m)": "it points to constant data",
    "tl.load(p, boundary_check=(0,))": "tl.load through plain pointers has no boundary_check: they do not know where "
    "the tensor ends. Use a mask, or tl.make_block_ptr.",
    "tl.load(p + t, padding_option='zero')": "tl.load through plain pointers has no padding_option",
    "tl.store(p + t, x, boundary_check=(0,))": "tl.store through plain pointers has no boundary_check",
    f"tl.atomic_add({BLOCK}, m)": "tl.atomic_add takes no block pointer, got pointer<fp32[16, 32]>.",
    f"{BLOCK} + 1": "'+' is not defined for pointer<fp32[16, 32]>. Move it with tl.advance.",
    f"-{BLOCK}": "'-' is not defined for pointer<fp32[16, 32]>.",
    f"{BLOCK} == {BLOCK}": "'==' is not defined for pointer<fp32[16, 32]>.",
    f"tl.exp({BLOCK})": "got pointer<fp32[16, 32]>",
    f"tl.where(k, {INTEGERS}, 0)": "got pointer<int32[64]>",
    f"{BLOCK}.to(tl.int64)": "A value of type pointer<fp32[16, 32]> has no 'to'.",
}


@pytest.mark.parametrize("statement", ERRORS)
def test_errors(error, statement: str):
    assert re.search(re.escape(ERRORS[statement]), error(statement))

"""Descriptors of tensors: operands brought to their types, blocks, reductions, errors."""

from __future__ import annotations

import re

import pytest

from deuteron.ir.tt.descriptor import DescriptorReduceKind, Padding

DESC = "tl.make_tensor_descriptor(p, [n, 64], [n, 1], [16, 32])"
ROW = "tl.make_tensor_descriptor(p, [n, 64], [n, 1], [1, 32])"
INTEGERS = "tl.make_tensor_descriptor(q, [n], [1], [64])"


def test_sizes_are_int32_and_strides_int64(ops):
    [*_, made] = ops(DESC)
    assert [str(value.type) for value in made.operands] == ["!tt.ptr<f32>", "i32", "i32", "i64", "i64"]
    assert str(made.result.type) == "!tt.tensordesc<16x32xf32>"
    assert not made.pads_with_nan


def test_integers_say_whether_they_are_signed(ops):
    assert str(ops(INTEGERS)[-1].result.type) == "!tt.tensordesc<64xsi32>"
    unsigned = INTEGERS.replace("(q", "(q.to(tl.pointer_type(tl.uint32))")
    assert str(ops(unsigned)[-1].result.type) == "!tt.tensordesc<64xui32>"


def test_padding(ops):
    made = ops("tl.make_tensor_descriptor(p, [n], [1], [64], 'nan')")[-1]
    assert made.padding.value.data == Padding.NAN


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        (f"{DESC}.load([n, 0])", "tt.descriptor_load"),
        (f"tl.load_tensor_descriptor({DESC}, [n, 0])", "tt.descriptor_load"),
        (f"{DESC}.store([0, n], m.to(tl.float32))", "tt.descriptor_store"),
        (f"{DESC}.store([0, n], m)", "tt.descriptor_store"),
        (f"tl.store_tensor_descriptor({DESC}, [0, n], m)", "tt.descriptor_store"),
        (f"{DESC}.atomic_add([0, n], m)", "tt.descriptor_reduce"),
        (f"{ROW}.gather(t, n)", "tt.descriptor_gather"),
        (f"{ROW}.scatter(tl.zeros([64, 32], tl.float16), t, n)", "tt.descriptor_scatter"),
        (f"tl._experimental_descriptor_load({DESC}, [0, n], [16, 32], tl.float32)", "tt.descriptor_load"),
        (f"tl._experimental_descriptor_store({DESC}, m, [0, n])", "tt.descriptor_store"),
        ("tl._experimental_make_tensor_descriptor(p, [n], [1], [64])", "tt.make_tensor_descriptor"),
    ],
)
def test_accesses(op_names, statement: str, last: str):
    assert op_names(statement)[-1] == last


def test_a_block_is_a_tile_of_the_language(result_type):
    assert result_type(f"{DESC}.load([0, 0])") == "fp32[16, 32]"


@pytest.mark.parametrize("name", ["min", "max", "and", "or", "xor"])
def test_reductions(ops, name: str):
    op = ops(f"{INTEGERS}.atomic_{name}([n], i)")[-1]
    assert op.kind.value.data == DescriptorReduceKind[name.upper()]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("block_shape", "(16, 32)"), ("dtype", "tl.float32"), ("block_type.shape", "(16, 32)")],
)
def test_attributes_known_at_compile_time(op_names, attribute: str, value: str):
    op_names(f"tl.static_assert({DESC}.{attribute} == {value})")


def test_shape_and_strides_are_values_of_the_kernel(result_type):
    assert result_type(f"{DESC}.shape[0] + n") == "int32"
    assert result_type(f"{DESC}.strides[0]") == "int64"


def test_isinstance(op_names):
    op_names(f"tl.static_assert(isinstance({DESC}, tl.tensor_descriptor))")
    op_names(f"tl.static_assert(not isinstance({DESC}, tl.tensor))")
    op_names("tl.static_assert(not isinstance(n, tl.tensor_descriptor))")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.make_tensor_descriptor(n, [n], [1], [64])", "needs a pointer, got int32"),
        ("tl.make_tensor_descriptor(p + t, [n], [1], [64])", "takes the pointer to the first element"),
        ("tl.make_tensor_descriptor(p, [n], [n], [64])", "The last stride of .* is 1, got int32"),
        ("tl.make_tensor_descriptor(p, [n], [2], [64])", "is 1, got 2"),
        ("tl.make_tensor_descriptor(p, [n, n], [1], [64])", "expected 1 integer, as the block has"),
        ("tl.make_tensor_descriptor(p, [f], [1], [64])", "Each of the shape of .* is an integer scalar, got fp32"),
        ("tl.make_tensor_descriptor(p, [n], [1], [2])", "at least 16 bytes, got 2 of fp32. Use 4 or more"),
        ("tl.make_tensor_descriptor(p, [n], [1], [48])", "powers of two"),
        ("tl.make_tensor_descriptor(b, [n], [1], [64])", "is of numbers, got elements of int1"),
        ("tl.make_tensor_descriptor(p, [n], [1], [64], 'one')", "No padding_option 'one'"),
        ("tl.make_tensor_descriptor(q, [n], [1], [64], 'nan')", "'nan' is for floats"),
        (f"{DESC}.load([n])", "expected 2 integers"),
        (f"{DESC}.load(n)", "expected 2 integers"),
        (f"{DESC}.load([n.to(tl.int64), n])", "offsets of a descriptor's load has 32 bits, got int64. Convert it with"),
        (f"{ROW}.gather(t, n.to(tl.uint64))", "the columns of a descriptor's gather has 32 bits, got uint64"),
        (f"{DESC}.store([n, n], x)", r"takes a block of \[16, 32\], got fp32\[64\]"),
        (f"{DESC}.atomic_min([n, n], m)", "atomic_min does not work on fp32"),
        (f"{DESC}.gather(t, n)", r"gather is of parts of rows, got blocks of \[16, 32\]. Make the descriptor with"),
        (f"{INTEGERS}.scatter(i, t, n)", r"scatter is of parts of rows, got blocks of \[64\]"),
        (f"{ROW}.gather(n, n)", "takes a vector of rows, int32 or narrower, got int32. Convert it with .to"),
        (f"{ROW}.gather(t.to(tl.int64), n)", r"got int64\[64\]. Convert it"),
        (f"{ROW}.gather(t, t)", r"Each of the columns of a descriptor's gather is an integer scalar, got int32\[64\]"),
        (f"{ROW}.scatter(x, t, n)", r"scatter takes a block of \[64, 32\], got fp32\[64\]"),
        (f"tl._experimental_descriptor_load({DESC}, [0, n], [16, 16], tl.float32)", r"blocks of fp32\[16, 32\]"),
        ("tl._experimental_descriptor_load(p, [0], [16], tl.float32)", "takes a tensor descriptor, got pointer<fp32>"),
        (f"{DESC}.rows", "has no 'rows'"),
        (f"{DESC} + 1", "tensor_descriptor<fp32.* fails at compile time"),
        ("tl.load_tensor_descriptor(p, [n])", "takes a tensor descriptor, got pointer<fp32>"),
    ],
)
def test_errors(error, statement: str, message: str):
    assert re.search(message, error(statement))

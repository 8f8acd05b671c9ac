"""Shapes: the ops, the resulting types, the errors."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("statement", "type", "names"),
    [
        ("x[None, :]", "fp32[1, 64]", ["tt.expand_dims"]),
        ("x[:, None, None]", "fp32[64, 1, 1]", ["tt.expand_dims", "tt.expand_dims"]),
        ("x[:]", "fp32[64]", []),
        ("n[None]", "int32[1]", ["tt.splat"]),
        ("n[None, None, :]", "int32[1, 1]", ["tt.splat", "tt.expand_dims"]),
        ("tl.trans(m)", "fp16[32, 16]", ["tt.trans"]),
        ("m.T", "fp16[32, 16]", ["tt.trans"]),
        ("tl.permute(m[None], (2, 0, 1))", "fp16[32, 1, 16]", ["tt.expand_dims", "tt.trans"]),
        ("m.reshape(512)", "fp16[512]", ["tt.reshape"]),
        ("m.reshape([4, 128])", "fp16[4, 128]", ["tt.reshape"]),
        ("tl.view(m, (4, 128))", "fp16[4, 128]", ["tt.reshape"]),
        ("x[None].broadcast_to(4, 64)", "fp32[4, 64]", ["tt.expand_dims", "tt.broadcast"]),
        ("tl.broadcast_to(n, (4, 4))", "int32[4, 4]", ["tt.splat"]),
        ("tl.expand_dims(x, (0, -1))", "fp32[1, 64, 1]", ["tt.expand_dims", "tt.expand_dims"]),
        ("tl.join(x, x)", "fp32[64, 2]", ["tt.join"]),
        ("tl.join(n, n)", "int32[2]", ["tt.splat", "tt.splat", "tt.join", "tt.reshape"]),
        ("tl.cat(x, x, can_reorder=True)", "fp32[128]", ["tt.cat"]),
        ("tl.cat(x, x)", "fp32[128]", ["tt.join", "tt.trans", "tt.reshape"]),
        ("tl.cat(m, m, dim=1)", "fp16[16, 64]", ["tt.join", "tt.trans", "tt.reshape"]),
        ("tl.split(x.reshape(32, 2))[1]", "fp32[32]", ["tt.reshape", "tt.split"]),
        ("tl.zeros([1, 1], tl.int8).item()", "int8", ["arith.constant", "tt.unsplat"]),
        ("tl.broadcast(x[None], m.reshape(8, 64))[0]", "fp32[8, 64]", ["tt.expand_dims", "tt.reshape", "tt.broadcast"]),
    ],
)
def test_shape_ops(op_names, result_type, statement: str, type: str, names: list[str]):
    assert result_type(statement) == type
    assert op_names(statement) == names


def test_members_of_a_tensor(result_type, error):
    assert result_type("tl.full([4], m.numel, tl.int32)") == "int32[4]"
    assert result_type("tl.zeros(m.shape, p.dtype.element_ty)") == "fp32[16, 32]"
    assert result_type("tl.zeros([m.shape[1]], m.dtype)") == "fp16[32]"
    assert error("x.relu()").startswith("A value of type fp32[64] has no 'relu'.")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "x[0]",
            "A tile is indexed with None and : only, got 0. "
            "Select elements with a mask and tl.sum, or load them through a pointer.",
        ),
        (
            "x[1:n]",
            "A tile is indexed with None and : only, got 1:int32. "
            "Select elements with a mask and tl.sum, or load them through a pointer.",
        ),
        ("x[:, :]", "fp32[64] has 1 dimension, indexed with 2. Use None to insert one."),
        ("tl.trans(x)", "tl.trans swaps the last two dimensions, got fp32[64]. Insert one with x[:, None]."),
        ("tl.trans(n)", "tl.trans takes tiles, got int32. Make one of a scalar with tl.full or x[None]."),
        (
            "tl.permute(m, 0, 0)",
            "The dims of a permutation of fp16[16, 32] are 0 to 1 in some order, got (0, 0).",
        ),
        (
            "m.reshape(16, 16)",
            "Cannot reshape [16, 32] with 512 elements to [16, 16] with 256. The number of elements stays.",
        ),
        ("m.reshape(-1)", "The extents of a shape are 1 or more, got -1 in [-1]. None is found out from the others."),
        (
            "tl.broadcast_to(x, (4, 64))",
            "Cannot broadcast [64] to [4, 64]. The rank must be the same and each extent equal or 1; "
            "insert dimensions with x[:, None] or x[None, :].",
        ),
        ("tl.expand_dims(x, 3)", "the result of tl.expand_dims has no axis 3: it has 2 dimensions."),
        ("tl.expand_dims(x, (0, 0))", "tl.expand_dims got one axis twice: (0, 0) of a result of 3 dimensions."),
        ("tl.join(x, i)", "tl.join needs operands of one type, got fp32[64] and int32[64]. Convert one with .to()."),
        ("tl.split(x)", "tl.split needs a last dimension of extent 2, got fp32[64]. Reshape it first."),
        ("tl.cat(x, x[None])", "tl.cat needs tiles of one shape, got fp32[64] and fp32[1, 64]."),
        ("x.item()", "Only a tile of one element is a scalar, got fp32[64]. Reduce it, as with tl.sum(x)."),
        ("len(x)", "len() of fp32[64] is not defined. Use x.shape[0] for an extent, or x.numel."),
        ("float(p)", "float() takes a number, got pointer<fp32>. Convert with x.to(tl.float32)."),
        ("int(x)", "int() takes a number, got fp32[64]. Convert with x.to(tl.int32)."),
        ("bool(x)", "bool() takes a number, got fp32[64]. Compare, as in `x != 0`."),
    ],
)
def test_shape_errors(error, statement: str, message: str):
    assert error(statement) == message

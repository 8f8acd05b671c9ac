"""tl.dot_scaled: what the op is given, and the errors."""

from __future__ import annotations

import pytest

from deuteron.ir.tt.dot import ScaledFormat


def tile(dtype: str, *shape: int) -> str:
    return f"tl.zeros({shape}, tl.{dtype})"


A, A_SCALE = tile("uint8", 16, 32), tile("uint8", 16, 2)
B, B_SCALE = tile("float8e5", 64, 32), tile("float8e4nv", 32, 4)


def call(a=A, a_scale=A_SCALE, a_format="'e2m1'", b=B, b_scale="None", b_format="'e5m2'", rest="") -> str:
    return f"tl.dot_scaled({a}, {a_scale}, {a_format}, {b}, {b_scale}, {b_format}{rest})"


def test_operands(ops):
    (dot,) = [op for op in ops(call(b_scale=B_SCALE)) if op.name == "tt.dot_scaled"]
    assert (dot.lhs.format, dot.lhs.shape, dot.lhs.packed_axis, dot.lhs.group) == (ScaledFormat.E2M1, (16, 64), 1, 32)
    assert (dot.rhs.format, dot.rhs.shape, dot.rhs.packed_axis, dot.rhs.group) == (
        ScaledFormat.E5M2,
        (64, 32),
        None,
        16,
    )


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        (call(), "fp32[16, 32]"),
        (call(rest=", out_dtype=tl.float16"), "fp16[16, 32]"),
        (call(tile("uint8", 8, 64), rest=", lhs_k_pack=False"), "fp32[16, 32]"),
        (call(tile("uint8", 16, 64), a_format="'e4m3'"), "fp32[16, 32]"),
        (call(tile("uint16", 16, 64), "None", "'bf16'"), "fp32[16, 32]"),
        (call(tile("uint8", 3 - 1, 2, 16, 32), "None", b=tile("float8e5", 2, 2, 64, 32)), "fp32[2, 2, 16, 32]"),
    ],
)
def test_result(result_type, expression: str, type: str):
    assert result_type(expression) == type


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (call(a_format="'e3m2'"), "tl.dot_scaled has no lhs_format 'e3m2'. Use one of e2m1, e4m3, e5m2, bf16, fp16."),
        (call("x"), "tl.dot_scaled multiplies tiles of 2 or more dimensions, got fp32[64] as lhs."),
        (call("m"), "lhs in the format e2m1 is uint8, two numbers in each, got fp16[16, 32]. Convert it with .to()."),
        (call(b="m"), "rhs in the format e5m2 is fp8e5 or uint8, got fp16[16, 32]. Convert it with .to()."),
        (call(rest=", rhs_k_pack=False"), "rhs_k_pack=False is for e2m1, of which a byte has two numbers, not for "
         "e5m2. Drop it."),
        (call(b=tile("float8e5", 32, 32)), "tl.dot_scaled of e2m1 in uint8[16, 32] and e5m2 in fp8e5[32, 32]: these "
         "are [16, 64] and [32, 32] numbers, expected [M, K] and [K, N], or the same with a batch before them."),
        (call(a_scale="x"), "lhs_scale is a tile of uint8 (exponents) or fp8e4nv, or None, got fp32[64]."),
        (call(b_scale=tile("uint8", 2, 32)), "rhs_scale has one number for every 32, or 16, of the 64 along K: "
         "expected uint8[32, 2] or uint8[32, 4], got uint8[2, 32]."),
        (call(tile("uint8", 16, 4), b=tile("uint8", 8, 32)), "lhs_scale has one number for every 32, or 16, of the 8 "
         "along K: expected a K of 16 or more, got uint8[16, 2]."),
        (call(b=tile("float16", 64, 32), b_format="'fp16'", b_scale=B_SCALE), "rhs_scale of fp8e4nv goes with e2m1, "
         "e4m3 and e5m2, not with fp16: use uint8."),
        (call(rest=", acc=x"), "The accumulator of tl.dot_scaled must be fp32[16, 32], got fp32[64]."),
        (call(rest=", out_dtype=tl.bfloat16"), "tl.dot_scaled gives fp32 or fp16, not tl.bfloat16. "
         "Convert the result with .to()."),
    ],
)  # fmt: skip
def test_errors(error, statement: str, message: str):
    assert error(statement) == message

"""Conversions: the ops between each pair of kinds, and what cannot be converted."""

from __future__ import annotations

import pytest

from deuteron.ir.tt.convert import RoundingMode


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("i.to(tl.int64)", ["arith.extsi"]),
        ("u.to(tl.int64)", ["arith.extui"]),
        ("i.to(tl.int8)", ["arith.trunci"]),
        ("i.to(tl.uint32)", []),
        ("k.to(tl.int32)", ["arith.extui"]),
        ("i.to(tl.int1)", ["arith.constant", "arith.cmpi"]),
        ("x.to(tl.int1)", ["arith.constant", "arith.cmpf"]),
        ("x.to(tl.int32)", ["arith.fptosi"]),
        ("x.to(tl.uint8)", ["arith.fptoui"]),
        ("h.to(tl.int32)", ["arith.extf", "arith.fptosi"]),
        ("i.to(tl.float16)", ["arith.sitofp"]),
        ("u.to(tl.float32)", ["arith.uitofp"]),
        ("k.to(tl.float32)", ["arith.uitofp"]),
        ("i.to(tl.float8e5)", ["arith.sitofp", "tt.fp_to_fp"]),
        ("x.to(tl.float16)", ["arith.truncf"]),
        ("h.to(tl.float64)", ["arith.extf"]),
        ("h.to(tl.bfloat16)", ["tt.fp_to_fp"]),
        ("x.to(tl.float8e4nv)", ["tt.fp_to_fp"]),
        ("x.to(tl.float16, fp_downcast_rounding='rtz')", ["tt.fp_to_fp"]),
        ("x.to(tl.float32)", []),
        ("x.to(tl.int32, bitcast=True)", ["tt.bitcast"]),
        ("i.to(tl.uint32, bitcast=True)", []),
        ("p.to(tl.int64)", ["tt.ptr_to_int"]),
        ("p.to(tl.int1)", ["tt.ptr_to_int", "arith.constant", "arith.cmpi"]),
        ("p.to(tl.pointer_type(tl.int32))", ["tt.bitcast"]),
        ("n.to(tl.pointer_type(tl.int32))", ["arith.extsi", "tt.int_to_ptr"]),
        ("tl.cast(3, tl.float32)", ["arith.constant", "arith.sitofp"]),
    ],
)
def test_conversion_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


def test_rounding_of_narrowing(ops):
    (nearest,) = ops("x.to(tl.float8e5)")
    (towards_zero,) = ops("x.to(tl.float16, 'rtz')")
    assert nearest.rounding.value.data == RoundingMode.RTNE
    assert towards_zero.rounding.value.data == RoundingMode.RTZ


def test_signedness_is_kept_in_the_type(result_type):
    assert result_type("i.to(tl.uint32)") == "uint32[64]"
    assert result_type("u + 1") == "uint32[64]"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("x.to('fp16')", "'fp16' is no element type. Did you mean tl.float16?"),
        (
            "p.to(tl.float32)",
            "Cannot convert pointer<fp32> to fp32. A pointer converts to tl.int64 and back; "
            "load through it for what it points to.",
        ),
        (
            "p.to(tl.int32)",
            "Cannot convert pointer<fp32> to int32. A pointer converts to tl.int64 and back; "
            "load through it for what it points to.",
        ),
        (
            "x.to(tl.int64, bitcast=True)",
            "Cannot bitcast fp32 to int64: 32 bits are not 64. "
            "Convert the value with .to() without bitcast, or to a type of equal width.",
        ),
        (
            "x.to(tl.float16, fp_downcast_rounding='up')",
            "There is no rounding mode 'up'. Use 'rtne' (to nearest even) or 'rtz' (towards zero).",
        ),
        (
            "h.to(tl.float32, fp_downcast_rounding='rtz')",
            "fp_downcast_rounding='rtz' needs a conversion to a narrower float, got fp16 to fp32. Drop it.",
        ),
        ("tl.cast(None, tl.float32)", "What is converted must be a tensor or a number, got None."),
    ],
)
def test_conversion_errors(error, statement: str, message: str):
    assert error(statement) == message

"""Operators and pointer arithmetic: which ops they become, and what is said of wrong operands."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("x + x", ["arith.addf"]),
        ("i - i", ["arith.subi"]),
        ("i * f", ["arith.sitofp", "tt.splat", "arith.mulf"]),
        ("u * f", ["arith.uitofp", "tt.splat", "arith.mulf"]),
        ("x * 2", ["arith.constant", "arith.mulf"]),
        ("i / i", ["arith.sitofp", "arith.sitofp", "arith.divf"]),
        ("h / h", ["arith.extf", "arith.extf", "arith.divf"]),
        ("i // 3", ["arith.constant", "arith.divsi"]),
        ("u // 3", ["arith.constant", "arith.divui"]),
        ("i % i", ["arith.remsi"]),
        ("u % u", ["arith.remui"]),
        ("x % x", ["arith.remf"]),
        ("-x", ["arith.negf"]),
        ("-i", ["arith.constant", "arith.subi"]),
        ("+i", []),
        ("min(i, 3)", ["arith.constant", "arith.minsi"]),
        ("max(u, u)", ["arith.maxui"]),
        ("max(x, x, x)", ["arith.maxnumf", "arith.maxnumf"]),
        ("tl.minimum(x, x)", ["arith.minnumf"]),
        ("tl.maximum(x, x, tl.PropagateNan.ALL)", ["arith.maximumf"]),
        ("tl.clamp(x, 0, 1)", ["arith.constant", "arith.constant", "tt.clampf"]),
        ("tl.clamp(i, 0, 1)", ["arith.constant", "arith.constant", "arith.maxsi", "arith.minsi"]),
        ("x[:, None] + x[None, :]", ["tt.expand_dims", "tt.expand_dims", "tt.broadcast", "tt.broadcast", "arith.addf"]),
    ],
)
def test_operator_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("p + n", ["tt.addptr"]),
        ("n + p", ["tt.addptr"]),
        ("p + 1", ["arith.constant", "tt.addptr"]),
        ("p + t", ["tt.splat", "tt.addptr"]),
        ("p - n", ["arith.constant", "arith.subi", "tt.addptr"]),
        ("p + u", ["arith.extui", "tt.splat", "tt.addptr"]),
        ("p + i.to(tl.int64)", ["arith.extsi", "tt.splat", "tt.addptr"]),
    ],
)
def test_pointer_arithmetic(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


def test_numbers_are_not_rounded_on_the_way(ops):
    constant, _ = ops("f + 0.1")
    assert constant.value.value.data == float(np.float32(0.1))
    constant, _ = ops("f.to(tl.float64) + 0.1")[-2:]
    assert constant.value.value.data == 0.1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("p + p", "Cannot add two pointers, pointer<fp32> and pointer<fp32>. Add an integer offset to one."),
        ("p + f", "The offset of a pointer is an integer, got fp32. Convert it with .to(tl.int32)."),
        ("p + 1.5", "The offset of a pointer is an integer, got fp32. Convert it with .to(tl.int32)."),
        (
            "p * 2",
            "* does not take pointers, got pointer<fp32>. Load through it, or convert it with .to(tl.int64).",
        ),
        ("x + None", "+ takes tensors and numbers, got None."),
        ("x + 'a'", "+ takes tensors and numbers, got 'a'."),
        (
            "x * tl.int32",
            "* takes tensors and numbers, got tl.int32. "
            "A type is no value: where it is a tl.constexpr that a signature names, give its value there.",
        ),
        ("x // 2", "// is for integers, got fp32 after promotion. Use / and tl.floor for floats."),
        ("x ** 2", "** of fp32[64] and 2 is not in the language. Multiply, or use tl.exp2(y * tl.log2(x))."),
        (
            "x + m",
            "Shapes [64] and [16, 32] do not go together: 32 and 64 at dimension 1. "
            "Extents must be equal or 1; insert dimensions with x[:, None] or x[None, :].",
        ),
        ("max(x)", "max() of one tensor is ambiguous. Use tl.max(x, axis) for the max of its elements."),
        ("tl.maximum(x, x, 7)", "propagate_nan is tl.PropagateNan.NONE or tl.PropagateNan.ALL, got 7."),
        (
            "x.to(tl.float8e5) + 1",
            "+ has no fp8e5. Convert the operands first, with .to(tl.float16).",
        ),
        ("-p", "unary - does not take pointers, got pointer<fp32>. Load through it, or convert it with .to(tl.int64)."),
        ("-x.to(tl.float8e5)", "unary - has no fp8e5. Convert the operands first, with .to(tl.float16)."),
    ],
)
def test_operand_errors(error, statement: str, message: str):
    assert error(statement) == message

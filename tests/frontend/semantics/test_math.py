"""Elementwise functions: op by function and type, which types are taken."""

from __future__ import annotations

import pytest

UNARY = ["exp", "exp2", "log", "log2", "cos", "sin", "sqrt", "rsqrt", "erf", "floor", "ceil"]


@pytest.mark.parametrize("name", UNARY)
def test_float_functions(op_names, result_type, error, name: str):
    assert op_names(f"tl.{name}(x)") == op_names(f"x.{name}()") == op_names(f"tl.math.{name}(x)") == [f"math.{name}"]
    assert result_type(f"tl.{name}(x.to(tl.float64))") == "fp64[64]"
    assert error(f"tl.{name}(h)") == f"tl.{name} takes fp32, fp64, got fp16[64]. Convert it with .to(tl.float32)."
    assert error(f"tl.{name}(n)") == f"tl.{name} takes fp32, fp64, got int32. Convert it with .to(tl.float32)."


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("tl.exp(1.0)", ["arith.constant", "math.exp"]),
        ("tl.abs(x)", ["math.absf"]),
        ("abs(i)", ["math.absi"]),
        ("tl.abs(u)", []),
        ("tl.sqrt_rn(x)", ["tt.precise_sqrt"]),
        ("tl.div_rn(x, 3)", ["arith.constant", "tt.precise_divf"]),
        ("tl.fdiv(x, x)", ["arith.divf"]),
        ("tl.fdiv(h, h, ieee_rounding=True)", ["arith.extf", "arith.extf", "tt.precise_divf"]),
        ("tl.fma(x, 2, f)", ["arith.constant", "tt.splat", "math.fma"]),
        ("tl.umulhi(u, 3)", ["arith.constant", "tt.mulhiui"]),
    ],
)
def test_function_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.exp(p)", "tl.exp takes fp32, fp64, got pointer<fp32>."),
        ("tl.exp('x')", "The argument of tl.exp must be a tensor or a number, got 'x'."),
        ("tl.abs(p)", "tl.abs takes numbers, got pointer<fp32>. Load through the pointer first."),
        ("tl.sqrt_rn(x.to(tl.float64))", "tl.sqrt_rn takes fp32, got fp64[64]. Convert it with .to(tl.float32)."),
        ("tl.fma(i, 2, 3)", "tl.fma takes floats, got int32. Write x * y + z."),
        ("tl.fdiv(i, i)", "tl.fdiv divides floats, got int32. Use / to divide integers as fp32."),
        ("tl.fdiv(x, x, True, True)", "tl.fdiv cannot be both ieee_rounding and approx. Choose one of them."),
        (
            "tl.umulhi(x, x)",
            "tl.umulhi takes int32, int64, uint32, uint64, got fp32[64]. Convert it with .to(tl.int32).",
        ),
    ],
)
def test_function_errors(error, statement: str, message: str):
    assert error(statement) == message

"""Scaled dots become dots of the type that has all bits of their operands."""

from __future__ import annotations

import pytest
from ir_text import parse_kernel

from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import element_type_of
from deuteron.passes import run_passes
from deuteron.passes.tile.decompose_scaled_dots import DecomposeScaledDots

E4M3, E5M2, E2M1, BF16, FP16 = 0, 1, 4, 5, 6
TYPES = {E4M3: "f8E4M3FN", E5M2: "f8E5M2", E2M1: "i8", BF16: "bf16", FP16: "f16"}


def dot_of(a: int, b: int, is_scaled: bool) -> DotOp:
    left = f"tensor<16x{16 if a == E2M1 else 32}x{TYPES[a]}>"
    right = f"tensor<{16 if b == E2M1 else 32}x16x{TYPES[b]}>"
    result, scale = "tensor<16x16xf32>", "tensor<16x1xi8>"
    module = parse_kernel(
        f"%a: {left}, %b: {right}, %c: {result}, %s: {scale}",
        f"""
        %r = "tt.dot_scaled"(%a, %b, %c{", %s" if is_scaled else ""}) <{{
            operandSegmentSizes = array<i32: 1, 1, 1, {int(is_scaled)}, 0>, a_elem_type = {a} : i32,
            b_elem_type = {b} : i32, fastMath = false, lhs_k_pack = true, rhs_k_pack = true}}>
        : ({left}, {right}, {result}{f", {scale}" if is_scaled else ""}) -> {result}
        """,
    )
    run_passes(module, [DecomposeScaledDots()])
    (dot,) = [op for op in module.walk() if isinstance(op, DotOp)]
    return dot


@pytest.mark.parametrize(
    ("a", "b", "is_scaled", "types"),
    [
        (E4M3, E5M2, False, ["f8E4M3FN", "f8E5M2"]),
        (E4M3, E5M2, True, ["bf16", "bf16"]),
        (E2M1, BF16, False, ["bf16", "bf16"]),
        (FP16, FP16, False, ["f16", "f16"]),
        (E2M1, FP16, True, ["f32", "f32"]),
    ],
)
def test_types(a: int, b: int, is_scaled: bool, types: list[str]):
    dot = dot_of(a, b, is_scaled)
    assert [str(element_type_of(value.type)) for value in (dot.a, dot.b)] == types

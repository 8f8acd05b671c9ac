"""Which type an operator computes in: Triton's rules.

    int32[64] + 1            int32        a number of no higher kind (bool < integer < float) takes the tile's type
    fp16[64] * 0.5           fp16
    int32[64] * 0.5          fp32         a number of a higher kind takes part with its own type
    fp16[64] + x: fp32       fp32         a runtime scalar takes part like a tile
    fp16[64] + bf16[64]      fp16 if one is fp16; bf16 with fp32 is fp32; two different fp8 give fp16
    fp16[64] / fp16[64]      fp32         `/` and `%` of floats narrower than 32 bits
    int32[64] + uint32[64]   uint32       C's usual arithmetic conversions, without widening to int first
    int32[64] // uint32[64]  an error     `/`, `//` and `%` need one signedness

tests/frontend/semantics/test_promote.py holds these against a table made by Triton 3.9.
"""

from __future__ import annotations

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import dtype_of_number
from deuteron.frontend.values import Tensor, Value
from deuteron.language.types import dtype, float16, float32, float64


def promote_operands(ctx: Context, x: Value, y: Value, is_division: bool = False) -> dtype:
    """The type that an operator on two operands, tensors or numbers, computes in."""
    x_type, y_type = operand_type(ctx, x), operand_type(ctx, y)
    x_is_number, y_is_number = not isinstance(x, Tensor), not isinstance(y, Tensor)
    if x_is_number != y_is_number:
        return promote_number(ctx, *((x_type, y_type) if x_is_number else (y_type, x_type)), is_division)
    return promote(ctx, x_type, y_type, is_division)


def operand_type(ctx: Context, value: Value) -> dtype:
    """The element type of a tensor, the type that a number has by itself."""
    return value.dtype if isinstance(value, Tensor) else dtype_of_number(ctx, value)


def promote_number(ctx: Context, number_type: dtype, tensor_type: dtype, is_division: bool = False) -> dtype:
    """The common type of a Python number and a tensor: the number does not count unless it is of a higher kind."""
    if number_type.kind().value <= tensor_type.kind().value:
        number_type = tensor_type
    return promote(ctx, tensor_type, number_type, is_division)


def promote(ctx: Context, x: dtype, y: dtype, is_division: bool = False) -> dtype:
    """The common type of two runtime operands."""
    if x.is_floating() or y.is_floating():
        return _promote_floats(ctx, x, y, is_division)
    if is_division and x.int_signedness != y.int_signedness:
        raise ctx.error(f"Cannot divide {x} and {y}: one is signed, the other is not. Convert one of them with .to().")
    return promote_integers(x, y)


def _promote_floats(ctx: Context, x: dtype, y: dtype, is_division: bool) -> dtype:
    types = {x.name, y.name}
    if "fp64" in types:
        return float64
    if is_division or "fp32" in types:
        return float32
    if "fp16" in types:
        return float16
    if "bf16" in types:
        return x if x == y else float32
    if x.is_fp8() and y.is_fp8():
        return x if x == y else float16
    raise ctx.error(f"{x} and {y} have no common type. Convert one of them with .to().")


def promote_integers(x: dtype, y: dtype) -> dtype:
    """The common type of two integers: the wider one; of equal widths the unsigned one."""
    if x.int_bitwidth != y.int_bitwidth:
        return x if x.int_bitwidth > y.int_bitwidth else y
    return x if x.is_int_unsigned() else y

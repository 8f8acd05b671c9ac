"""Operands of elementwise operations: checked, promoted to one type, brought to one shape.

    x: int32[64], 0.5      ->   fp32[64], fp32[64]
    x: fp32[64, 1], y: fp32[32]   ->   fp32[64, 32] each

A number that an operator computes with becomes a constant of the final type and shape at once, so that nothing is
rounded on the way. One that is stored, or taken where nothing is loaded, is rounded to its own type first, as Triton
has it: 0.1 is an fp32 there.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_tensor, common_shape
from deuteron.frontend.semantics.constant import as_tensor, number
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.promote import operand_type, promote, promote_number, promote_operands
from deuteron.frontend.values import Tensor, Value, describe, is_number, left_over_comma
from deuteron.language.types import dtype


def promoted_operands(ctx: Context, symbol: str, x: Value, y: Value, is_division: bool = False) -> list[Tensor]:
    """Both operands of an operation in their common type and shape. Pointers are an error."""
    check_operand(ctx, symbol, x)
    check_operand(ctx, symbol, y)
    return _in_type(ctx, promote_operands(ctx, x, y, is_division), (x, y))


def arithmetic_operands(ctx: Context, symbol: str, x: Value, y: Value, is_division: bool = False) -> list[Tensor]:
    """`promoted_operands` of a type that has arithmetic."""
    operands = promoted_operands(ctx, symbol, x, y, is_division)
    reject_fp8(ctx, symbol, operands[0])
    return operands


def reject_fp8(ctx: Context, symbol: str, operand: Tensor) -> None:
    """fp8 is for storing and for tl.dot; no target computes with it otherwise."""
    if operand.dtype.is_fp8():
        raise ctx.error(f"{symbol} has no {operand.dtype}. Convert the operands first, with .to(tl.float16).")


def ternary_operands(ctx: Context, symbol: str, *operands: Value) -> list[Tensor]:
    """Three operands in their common type and shape; numbers count against the tensors together, in any order."""
    for operand in operands:
        check_operand(ctx, symbol, operand)
    return _in_type(ctx, common_type(ctx, *operands), operands)


def common_type(ctx: Context, *operands: Value) -> dtype:
    """The type that operands are promoted to together."""
    tensors = [operand.dtype for operand in operands if isinstance(operand, Tensor)]
    numbers = [operand_type(ctx, operand) for operand in operands if not isinstance(operand, Tensor)]
    tensor_type, number_type = _promote_all(ctx, tensors), _promote_all(ctx, numbers)
    if tensor_type and number_type:
        return promote_number(ctx, number_type, tensor_type)
    return tensor_type or number_type


def _promote_all(ctx: Context, types: Sequence[dtype]) -> dtype | None:
    if not types:
        return None
    result = types[0]
    for other in types[1:]:
        result = promote(ctx, result, other)
    return result


def check_operand(ctx: Context, symbol: str, operand: Value) -> None:
    """An operand is a number, or a tensor of numbers."""
    if not isinstance(operand, Tensor) and not is_number(operand):
        hint = _way_out(symbol, operand)
        raise ctx.error(f"{symbol} takes tensors and numbers, got {describe(operand)}.{hint}")
    if isinstance(operand, Tensor) and operand.dtype.is_ptr():
        raise ctx.error(
            f"{symbol} does not take pointers, got {operand.type}. Load through it, or convert it with .to(tl.int64)."
        )


def is_numeric(value: Value) -> bool:
    """Whether it is a number, or a tensor of numbers."""
    return is_number(value) or (isinstance(value, Tensor) and not value.dtype.is_ptr())


def is_pointer(value: Value) -> bool:
    """Whether it is a pointer or a tile of pointers."""
    return isinstance(value, Tensor) and value.dtype.is_ptr()


def common_shape_of(ctx: Context, *operands: Value) -> tuple[int, ...]:
    """The shape that numbers and tensors broadcast to together."""
    return tuple(common_shape(ctx, *(operand.shape for operand in operands if isinstance(operand, Tensor)), ()))


def _in_type(ctx: Context, type: dtype, operands: Sequence[Value]) -> list[Tensor]:
    shape = common_shape_of(ctx, *operands)
    return [in_type(ctx, operand, type, shape) for operand in operands]


def value_in_type(ctx: Context, value: Value, type: dtype, shape: Sequence[int], what: str) -> Tensor:
    """A value converted to a type and broadcast to a shape; a number has a type of its own first, as in `tl.cast`."""
    return broadcast_tensor(ctx, convert(ctx, as_tensor(ctx, value, what), type), shape)


def in_type(ctx: Context, operand: Value, type: dtype, shape: Sequence[int]) -> Tensor:
    """A number or tensor of numbers as a tensor of a type and shape that it converts and broadcasts to."""
    if not isinstance(operand, Tensor):
        return number(ctx, operand, type, shape)
    return broadcast_tensor(ctx, convert(ctx, operand, type), shape)


def _way_out(symbol: str, operand: Value) -> str:
    """Of an operand that is neither a tensor nor a number."""
    if operand is None and symbol in ("==", "!="):
        return " Compare with `is None`."
    if isinstance(operand, dtype):
        return " A type is no value: where it is a tl.constexpr that a signature names, give its value there."
    return left_over_comma(operand)

"""Numbers of Python as values of the program.

    3        int32          2.5      fp32                True     int1
    2**31    uint32         1e300    fp64 (out of fp32's range)

An operator gives a number the type it computes with (see promote.py) at once, and the other operand's shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.types import ir_type, tensor, type_of
from deuteron.frontend.values import Tensor, Value, describe, is_number
from deuteron.ir.tt.convert import FpToFpOp, RoundingMode
from deuteron.ir.tt.shape import SplatOp
from deuteron.language.types import dtype, float32, float64, int1, int32, int64, uint32, uint64

Number = bool | int | float

_FP32_MIN, _FP32_MAX = 2.0**-126, (2 - 2.0**-23) * 2.0**127
_INTEGER_TYPES = (int32, uint32, int64, uint64)


def dtype_of_number(ctx: Context, value: Number) -> dtype:
    """The type that a number has by itself."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for candidate in _INTEGER_TYPES:
            if candidate.get_int_min_value() <= value <= candidate.get_int_max_value():
                return candidate
        raise ctx.error(f"The integer {value} does not fit in 64 bits.")
    magnitude = abs(value)
    is_fp32 = not math.isfinite(value) or magnitude == 0 or _FP32_MIN <= magnitude <= _FP32_MAX
    return float32 if is_fp32 else float64


def number(ctx: Context, value: Number, dtype: dtype, shape: Sequence[int] = ()) -> Tensor:
    """A number as a scalar or tile of a type; one that the type cannot hold is an error."""
    type = type_of(dtype, shape)
    if dtype.is_int():
        _check_integer(ctx, value, dtype)
    elif dtype.is_fp8():
        wide = number(ctx, value, float32, shape)
        return tensor(ctx, FpToFpOp(wide.handle, ir_type(dtype), RoundingMode.RTNE), type)
    else:
        value = _overflow_to_infinity(float(value), dtype)
    if isinstance(value, float) and math.isnan(value) and shape:
        # A dense attribute of NaN is not recognised as a splat, since NaN differs from itself.
        return tensor(ctx, SplatOp(number(ctx, value, dtype).handle, shape), type)
    return Tensor(ctx.builder.constant(value, ir_type(type)), type)


def _check_integer(ctx: Context, value: Number, dtype: dtype) -> None:
    if isinstance(value, float) and not value.is_integer():
        raise ctx.error(f"{value} is no {dtype}. Use a whole number, or a float type.")
    if not dtype.get_int_min_value() <= value <= dtype.get_int_max_value():
        signedness = "signed" if value < 0 else "unsigned"
        raise ctx.error(
            f"{value} is out of range for {dtype}, {dtype.get_int_min_value()} to {dtype.get_int_max_value()}. "
            f"Convert the other operand to a wider or {signedness} type with .to()."
        )


def _overflow_to_infinity(value: float, dtype: dtype) -> float:
    """The value, or an infinity where rounding to `dtype` gives one (packing such a constant would fail)."""
    max_exponent = 2 ** (dtype.primitive_bitwidth - dtype.fp_mantissa_width - 2) - 1
    limit = math.ldexp(2 - 2.0 ** -(dtype.fp_mantissa_width + 1), max_exponent) if dtype != float64 else math.inf
    return math.copysign(math.inf, value) if abs(value) >= limit else value


def as_tensor(ctx: Context, value: Value, what: str) -> Tensor:
    """A runtime value as it is, a number as a scalar; anything else is an error about `what`."""
    if isinstance(value, Tensor):
        return value
    if not is_number(value):
        raise ctx.error(f"{what} must be a tensor or a number, got {describe(value)}.")
    return number(ctx, value, dtype_of_number(ctx, value))


def to_tensor(ctx: Context, x: Value) -> Tensor:
    return as_tensor(ctx, x, "The argument of tl.to_tensor")

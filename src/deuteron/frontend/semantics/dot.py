"""Matrix products: tt.dot, with a zero accumulator where none is given.

    fp16 @ fp16 -> fp32 (or fp16)     bf16, fp32 -> fp32     fp64 -> fp64     int8 -> int32     fp8 -> fp32 (or fp16)
    [2, 3, M, K] @ [2, 3, K, N]       tt.dot of [6, M, K] and [6, K, N], reshaped
    trans_b=True                      tt.trans, and a remark: so older versions said it

How small M, N and K may be for an instruction is the target's affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.shape import reshape, trans
from deuteron.frontend.semantics.shapes import is_integer
from deuteron.frontend.semantics.types import tensor, type_of
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.language.types import bfloat16, dtype, float16, float32, float64, int8, int32

INPUT_PRECISIONS = {
    precision.name.lower(): precision for precision in InputPrecision if precision != InputPrecision.TF32_RTZ
}
OPERAND_TYPES = (int8, float16, bfloat16, float32, float64)


def dot(
    ctx: Context,
    input: Value,
    other: Value,
    acc: Value = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: dtype | None = None,
    trans_a: bool = False,
    trans_b: bool = False,
) -> Tensor:
    for operand in (input, other):
        _check_operand(ctx, operand, input, other)
    a = trans(ctx, input) if trans_a else input
    b = trans(ctx, other) if trans_b else other
    _check_operands(ctx, a, b)
    precision = _precision(ctx, input_precision, allow_tf32)
    shape = (*a.shape[:-1], b.shape[-1])
    result = _result_type(ctx, a.dtype, out_dtype, acc)
    total = accumulator(ctx, "tl.dot", acc, result, shape)
    a, b, total = (flattened(ctx, tile) for tile in (a, b, total))
    op = DotOp(a.handle, b.handle, total.handle, precision, _imprecise_products(ctx, max_num_imprecise_acc))
    _tell_old_spellings(ctx, allow_tf32, trans_a, trans_b)
    return reshape(ctx, tensor(ctx, op, total.type), shape)


def _imprecise_products(ctx: Context, count: Value) -> int:
    if count is not None and not is_integer(count):
        raise ctx.error(
            f"'max_num_imprecise_acc' of tl.dot is an integer that is known at compile time, got {describe(count)}."
        )
    return count or 0


def accumulator(ctx: Context, name: str, acc: Value, result: dtype, shape: Sequence[int]) -> Tensor:
    """What is added to, which has to be of the type of the result; zeros where it is not given."""
    if acc is None:
        return number(ctx, 0, result, shape)
    if isinstance(acc, bool):
        raise ctx.error(
            f"The accumulator of {name} cannot be {acc}. Older versions had other parameters there: give them by "
            "name, as allow_tf32 or trans_a."
        )
    if not isinstance(acc, Tensor) or acc.type != type_of(result, shape):
        raise ctx.error(f"The accumulator of {name} must be {type_of(result, shape)}, got {describe(acc)}.")
    return acc


def flattened(ctx: Context, tile: Tensor) -> Tensor:
    """With one dimension for the batch, where there are several."""
    *batch, rows, columns = tile.shape
    return reshape(ctx, tile, (math.prod(batch), rows, columns)) if len(batch) > 1 else tile


def _check_operand(ctx: Context, operand: Value, a: Value, b: Value) -> None:
    if not isinstance(operand, Tensor) or len(operand.shape) < 2:
        raise ctx.error(
            f"tl.dot multiplies tiles of 2 or more dimensions, got {describe(a)} and {describe(b)}. Multiply vectors "
            "and numbers with *, and add up with tl.sum."
        )
    if not operand.dtype.is_fp8() and operand.dtype not in OPERAND_TYPES:
        accepted = ", ".join(str(type) for type in OPERAND_TYPES)
        raise ctx.error(f"tl.dot takes {accepted} and fp8, got {operand.type}. Convert it with .to().")


def _check_operands(ctx: Context, a: Tensor, b: Tensor) -> None:
    if a.dtype != b.dtype and not (a.dtype.is_fp8() and b.dtype.is_fp8()):
        raise ctx.error(f"tl.dot takes operands of one type, got {a.type} and {b.type}. Convert one with .to().")
    if len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ctx.error(
            f"tl.dot of {a.type} and {b.type}: expected [M, K] and [K, N], or [B, M, K] and [B, K, N]. "
            "Is one of them to be transposed with tl.trans?"
        )


def _precision(ctx: Context, name: str | None, allow_tf32: bool | None) -> InputPrecision:
    if name is not None and allow_tf32 is not None:
        raise ctx.error(f"tl.dot got input_precision={name!r} and allow_tf32={allow_tf32}. Give input_precision only.")
    if name is None:
        is_exact = allow_tf32 is not None and not allow_tf32
        return InputPrecision.IEEE if is_exact else INPUT_PRECISIONS[ctx.asked.dot_precision]
    if not isinstance(name, str) or name.lower() not in INPUT_PRECISIONS:
        raise ctx.error(f"tl.dot has no input_precision {describe(name)}. Use one of {', '.join(INPUT_PRECISIONS)}.")
    return INPUT_PRECISIONS[name.lower()]


def _result_type(ctx: Context, operand: dtype, out_dtype: dtype | None, acc: Value) -> dtype:
    """Where there is one type only, what is asked for does not count: scripts say float32 or int8 of all operands."""
    possible = _RESULT_TYPES.get(operand, (float32, float16))
    is_asked = out_dtype is not None and (len(possible) > 1 or out_dtype == bfloat16)
    if (is_asked and out_dtype not in possible) or not isinstance(out_dtype, dtype | None):
        shown = " or ".join(str(type) for type in possible)
        raise ctx.error(f"tl.dot of {operand} gives {shown}, not {describe(out_dtype)}. Convert the result with .to().")
    wanted = out_dtype or (acc.dtype if isinstance(acc, Tensor) else None)
    return wanted if wanted in possible else possible[0]


_RESULT_TYPES: dict[dtype, tuple[dtype, ...]] = {
    int8: (int32,),
    float64: (float64,),
    float32: (float32,),
    bfloat16: (float32,),
}


def _tell_old_spellings(ctx: Context, allow_tf32: bool | None, trans_a: bool, trans_b: bool) -> None:
    if allow_tf32 is not None:
        precision = "tf32" if allow_tf32 else "ieee"
        ctx.tell_old_spelling(f"allow_tf32={allow_tf32} is input_precision={precision!r} now")
    if trans_a:
        ctx.tell_old_spelling("trans_a=True is tl.trans(input) now")
    if trans_b:
        ctx.tell_old_spelling("trans_b=True is tl.trans(other) now")


RULES = {tl.dot: dot}

"""Matrix products: tt.dot, with a zero accumulator where none is given.

    fp16 @ fp16 -> fp32 (or fp16)     bf16, fp32 -> fp32     fp64 -> fp64     int8 -> int32     fp8 -> fp32 (or fp16)

How small M, N and K may be is the target's affair.
"""

from __future__ import annotations

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.types import tensor, type_of
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.language.types import bfloat16, dtype, float16, float32, float64, int8, int32

INPUT_PRECISIONS = {precision.name.lower(): precision for precision in InputPrecision}
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
) -> Tensor:
    _check_operands(ctx, input, other)
    precision = _precision(ctx, input_precision, allow_tf32)
    shape = (*input.shape[:-1], other.shape[-1])
    result = _result_type(ctx, input.dtype, out_dtype, acc)
    if acc is None:
        acc = number(ctx, 0, result, shape)
    elif not isinstance(acc, Tensor) or acc.type != type_of(result, shape):
        raise ctx.error(f"The accumulator of tl.dot must be {type_of(result, shape)}, got {describe(acc)}.")
    op = DotOp(input.handle, other.handle, acc.handle, precision, max_num_imprecise_acc or 0)
    return tensor(ctx, op, acc.type)


def _check_operands(ctx: Context, a: Value, b: Value) -> None:
    for operand in (a, b):
        if not isinstance(operand, Tensor) or len(operand.shape) not in (2, 3):
            raise ctx.error(f"tl.dot multiplies tiles of 2 or 3 dimensions, got {describe(a)} and {describe(b)}.")
        if not operand.dtype.is_fp8() and operand.dtype not in OPERAND_TYPES:
            accepted = ", ".join(str(type) for type in OPERAND_TYPES)
            raise ctx.error(f"tl.dot takes {accepted} and fp8, got {operand.type}. Convert it with .to().")
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
        return InputPrecision.IEEE if allow_tf32 is False else InputPrecision.TF32
    if not isinstance(name, str) or name.lower() not in INPUT_PRECISIONS:
        raise ctx.error(f"tl.dot has no input_precision {describe(name)}. Use one of {', '.join(INPUT_PRECISIONS)}.")
    return INPUT_PRECISIONS[name.lower()]


def _result_type(ctx: Context, operand: dtype, out_dtype: dtype | None, acc: Value) -> dtype:
    possible = _RESULT_TYPES.get(operand, (float32, float16))
    # float32 was once the default of out_dtype, whatever the operands; scripts still spell it out.
    if out_dtype not in (None, float32, *possible):
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

RULES = {tl.dot: dot}

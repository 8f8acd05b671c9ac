"""Matrix products of microscaling formats: tt.dot_scaled.

    tl.dot_scaled(a, a_scale, "e2m1", b, None, "bf16")      uint8 [M, K / 2] with scales [M, K / 32] @ bf16 [K, N]
    uint8 for "e4m3"                                        tt.bitcast to f8E4M3FN

The op checks nothing that is not checked here, with the user's words.
"""

from __future__ import annotations

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.convert import convert_bits
from deuteron.frontend.semantics.dot import accumulator, flattened
from deuteron.frontend.semantics.shape import reshape
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.dot import GROUPS, DotScaledOp, ScaledFormat
from deuteron.language.types import (
    bfloat16,
    block_type,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    get_int_dtype,
    int8,
    uint8,
)

FORMATS = {format.name.lower(): format for format in (ScaledFormat.E2M1, *ScaledFormat)}
TYPES = {"e2m1": uint8, "e4m3": float8e4nv, "e5m2": float8e5, "bf16": bfloat16, "fp16": float16}


def dot_scaled(
    ctx: Context,
    lhs: Value,
    lhs_scale: Value,
    lhs_format: str,
    rhs: Value,
    rhs_scale: Value,
    rhs_format: str,
    acc: Value = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: dtype = float32,
) -> Tensor:
    a = _operand(ctx, "lhs", lhs, lhs_format, lhs_k_pack)
    b = _operand(ctx, "rhs", rhs, rhs_format, rhs_k_pack)
    a_shape = _shape(a, lhs_format, -1 if lhs_k_pack else -2)
    b_shape = _shape(b, rhs_format, -2 if rhs_k_pack else -1)
    if len(a_shape) != len(b_shape) or a_shape[:-2] != b_shape[:-2] or a_shape[-1] != b_shape[-2]:
        raise ctx.error(
            f"tl.dot_scaled of {lhs_format} in {a.type} and {rhs_format} in {b.type}: these are {list(a_shape)} and "
            f"{list(b_shape)} numbers, expected [M, K] and [K, N], or the same with a batch before them."
        )
    a_scale = _scale(ctx, "lhs", lhs_scale, lhs_format, a_shape)
    b_scale = _scale(ctx, "rhs", rhs_scale, rhs_format, (*b_shape[:-2], b_shape[-1], b_shape[-2]))
    if out_dtype not in (float32, float16):
        raise ctx.error(f"tl.dot_scaled gives fp32 or fp16, not {describe(out_dtype)}. Convert the result with .to().")
    shape = (*a_shape[:-1], b_shape[-1])
    total = flattened(ctx, accumulator(ctx, "tl.dot_scaled", acc, out_dtype, shape))
    scales = tuple(flattened(ctx, scale).handle if scale is not None else None for scale in (a_scale, b_scale))
    op = DotScaledOp(
        flattened(ctx, a).handle,
        flattened(ctx, b).handle,
        total.handle,
        scales,
        (FORMATS[lhs_format], FORMATS[rhs_format]),
        bool(fast_math),
        (bool(lhs_k_pack), bool(rhs_k_pack)),
    )
    return reshape(ctx, tensor(ctx, op, total.type), shape)


def _operand(ctx: Context, side: str, value: Value, format: str, k_pack: bool) -> Tensor:
    """In the type of its format."""
    if format not in FORMATS:
        raise ctx.error(f"tl.dot_scaled has no {side}_format {describe(format)}. Use one of {', '.join(FORMATS)}.")
    if not isinstance(value, Tensor) or len(value.shape) < 2:
        raise ctx.error(f"tl.dot_scaled multiplies tiles of 2 or more dimensions, got {describe(value)} as {side}.")
    if not k_pack and format != "e2m1":
        raise ctx.error(f"{side}_k_pack=False is for e2m1, of which a byte has two numbers, not for {format}. Drop it.")
    type = TYPES[format]
    bits = get_int_dtype(type.primitive_bitwidth, signed=False)
    if value.dtype not in (type, bits):
        accepted = f"{type} or {bits}" if type != bits else f"{bits}, two numbers in each"
        raise ctx.error(f"{side} in the format {format} is {accepted}, got {value.type}. Convert it with .to().")
    return convert_bits(ctx, value, type)


def _shape(operand: Tensor, format: str, packed_axis: int) -> tuple[int, ...]:
    """Of the numbers."""
    shape = list(operand.shape)
    if format == "e2m1":
        shape[packed_axis] *= 2
    return tuple(shape)


def _scale(ctx: Context, side: str, scale: Value, format: str, shape: tuple[int, ...]) -> Tensor | None:
    """`shape` is that of the numbers, with K last. Bytes are exponents, signed ones too."""
    if scale is None:
        return None
    if isinstance(scale, Tensor) and scale.dtype == int8:
        scale = convert_bits(ctx, scale, uint8)
    if not isinstance(scale, Tensor) or scale.dtype not in (uint8, float8e4nv):
        raise ctx.error(f"{side}_scale is a tile of uint8 (exponents) or fp8e4nv, or None, got {describe(scale)}.")
    if scale.dtype == float8e4nv and format in ("bf16", "fp16"):
        raise ctx.error(f"{side}_scale of fp8e4nv goes with e2m1, e4m3 and e5m2, not with {format}: use uint8.")
    *rows, depth = shape
    expected = [block_type(scale.dtype, (*rows, depth // group)) for group in GROUPS if depth % group == 0]
    if scale.type not in expected:
        shown = " or ".join(map(str, expected)) or "a K of 16 or more"
        raise ctx.error(
            f"{side}_scale has one number for every 32, or 16, of the {depth} along K: expected {shown}, "
            f"got {scale.type}."
        )
    return scale


RULES = {tl.dot_scaled: dot_scaled}

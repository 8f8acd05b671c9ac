"""tl.inline_asm_elementwise: tt.elementwise_inline_asm on operands of one shape."""

from __future__ import annotations

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_operands
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.semantics.shapes import is_integer
from deuteron.frontend.semantics.types import ir_type, type_of
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp, check_assembly, element_bits
from deuteron.language import types
from deuteron.ptx.inline import parse_constraints, with_immediates

NAME = "tl.inline_asm_elementwise"


def inline_asm_elementwise(
    ctx: Context, asm: str, constraints: str, args: Value, dtype: Value, is_pure: bool, pack: int
) -> Tensor | tuple[Tensor, ...]:
    for name, text in (("asm", asm), ("constraints", constraints)):
        if not isinstance(text, str):
            raise ctx.error(f"{name} of {NAME} is a string, got {describe(text)}.")
    if not is_integer(pack) or pack < 1:
        raise ctx.error(f"pack of {NAME} is how many elements the assembly is given, got {describe(pack)}. Use 1.")
    dtypes = _dtypes(ctx, dtype)
    given = args if isinstance(args, tuple | list) else (args,)
    operands = [as_tensor(ctx, arg, f"An argument of {NAME}") for arg in given]
    numbers = [number if isinstance(number := constant_value(one.handle), int) else None for one in operands]
    try:
        asm, constraints, kept = with_immediates(asm, constraints, numbers)
    except ValueError as error:
        raise ctx.error(f"{NAME}: {error}") from None
    operands = broadcast_operands(ctx, *(operands[index] for index in kept)) if kept else []
    shape = operands[0].shape if operands else ()
    wide = [type_of(type, shape) for type in _in_registers(constraints, dtypes, pack)]
    handles, result_types = [operand.handle for operand in operands], [ir_type(type) for type in wide]
    bits = ([element_bits(handle.type) for handle in handles], [element_bits(type) for type in result_types])
    try:
        check_assembly(asm, constraints, *bits, pack)
    except ValueError as error:
        raise ctx.error(f"{NAME}: {error}") from None
    op = ctx.builder.insert(ElementwiseInlineAsmOp(asm, constraints, handles, result_types, bool(is_pure), pack))
    written = [Tensor(handle, type) for handle, type in zip(op.res, wide, strict=True)]
    results = tuple(_widened(ctx, value, type) for value, type in zip(written, dtypes, strict=True))
    return results if isinstance(dtype, tuple | list) else results[0]


def _in_registers(constraints: str, dtypes: list[types.dtype], pack: int) -> list[types.dtype]:
    """What the outputs write. Programs that wait for other GPUs say `dtype=addresses.dtype` of a result of constraint
    "=r" that they drop: the lower bits of a pointer. Integers and floats are as wide as their registers, or narrower.
    """
    try:
        letters = parse_constraints(constraints).outputs
    except ValueError:
        return dtypes  # which is said where the assembly is checked
    if pack != 1 or len(letters) != len(dtypes):
        return dtypes
    return [
        types.uint32 if type.is_ptr() and letter == "r" else type for type, letter in zip(dtypes, letters, strict=True)
    ]


def _widened(ctx: Context, value: Tensor, type: types.dtype) -> Tensor:
    """The bits above a narrower register's are 0."""
    return value if value.dtype == type else convert(ctx, convert(ctx, value, types.uint64), type)


def _dtypes(ctx: Context, dtype: Value) -> list[types.dtype]:
    found = list(dtype) if isinstance(dtype, tuple | list) else [dtype]
    for type in found:
        if not isinstance(type, types.dtype) or type.is_void() or type.is_block():
            raise ctx.error(f"dtype of {NAME} is the type of its elements, got {describe(type)}. Use tl.int32, say.")
    if not found:
        raise ctx.error(f"{NAME} has at least one result. Give a dtype, and an output that is set to anything.")
    return found


RULES = {tl.inline_asm_elementwise: inline_asm_elementwise}

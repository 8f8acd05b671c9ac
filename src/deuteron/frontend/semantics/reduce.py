"""Reductions and scans: tt.reduce and tt.scan with the user's function inlined into the region.

    tl.reduce(x, 1, add)      %r = "tt.reduce"(%x) <{axis = 1}> ({ ^bb0(%a: f32, %b: f32): ... })
    axis=None                 the operands are reshaped to one dimension first, in any order
    keep_dims=True            tt.expand_dims after it

The region works on scalars, whatever the shape of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import insert_dimension
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.shape import reshape
from deuteron.frontend.semantics.shapes import check_axis
from deuteron.frontend.semantics.types import type_of
from deuteron.frontend.values import Tensor, Value, describe, is_number
from deuteron.ir.tt.reduce import ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp
from deuteron.language.builtin import Builtin
from deuteron.language.functions.function import Function


def reduce(
    ctx: Context, input: Value, axis: int | None, combine_fn: Function | Builtin, keep_dims: bool = False
) -> Tensor | tuple[Tensor, ...]:
    operands = _operands(ctx, "tl.reduce", input, combine_fn)
    rank = len(operands[0].shape)
    if axis is None:
        operands = [_flat(ctx, operand) for operand in operands]
    position = 0 if axis is None else check_axis(ctx, axis, rank, operands[0].type.name)
    op = ctx.builder.insert(ReduceOp([operand.handle for operand in operands], position))
    values = _combine(ctx, "tl.reduce", op, operands, combine_fn)
    with ctx.builder.at(op.combine.block):
        ctx.builder.insert(ReduceReturnOp([value.handle for value in values]))
    shape = operands[0].shape[:position] + operands[0].shape[position + 1 :]
    results = [Tensor(handle, type_of(operand.dtype, shape)) for handle, operand in zip(op.res, operands, strict=True)]
    if keep_dims:
        results = [_keep_dimensions(ctx, result, rank, axis, position) for result in results]
    return tuple(results) if isinstance(input, tuple) else results[0]


def associative_scan(
    ctx: Context, input: Value, axis: int, combine_fn: Function | Builtin, reverse: bool = False
) -> Tensor | tuple[Tensor, ...]:
    operands = _operands(ctx, "tl.associative_scan", input, combine_fn)
    position = check_axis(ctx, axis, len(operands[0].shape), operands[0].type.name)
    op = ctx.builder.insert(ScanOp([operand.handle for operand in operands], position, bool(reverse)))
    values = _combine(ctx, "tl.associative_scan", op, operands, combine_fn)
    with ctx.builder.at(op.combine.block):
        ctx.builder.insert(ScanReturnOp([value.handle for value in values]))
    results = [Tensor(handle, operand.type) for handle, operand in zip(op.res, operands, strict=True)]
    return tuple(results) if isinstance(input, tuple) else results[0]


def _operands(ctx: Context, name: str, input: Value, combine_fn: Value) -> list[Tensor]:
    if not isinstance(combine_fn, Function | Builtin):
        raise ctx.error(
            f"The combine function of {name} is a @jit function, or one of the language such as tl.maximum, got "
            f"{describe(combine_fn)}."
        )
    operands = list(input) if isinstance(input, tuple) else [input]
    for operand in operands:
        if not isinstance(operand, Tensor) or not operand.shape:
            raise ctx.error(f"{name} takes tiles, got {describe(operand)}. A scalar has nothing to combine.")
        if operand.shape != operands[0].shape:
            raise ctx.error(f"{name} takes tiles of one shape, got {describe(tuple(operands))}.")
    if not operands:
        raise ctx.error(f"{name} takes at least one tile, got none.")
    return operands


def _flat(ctx: Context, x: Tensor) -> Tensor:
    return reshape(ctx, x, math.prod(x.shape), can_reorder=True) if len(x.shape) > 1 else x


def _combine(
    ctx: Context, name: str, op: ReduceOp | ScanOp, operands: Sequence[Tensor], combine_fn: Function | Builtin
) -> list[Tensor]:
    """The combination of two elements, inlined into the op's region."""
    block = op.combine.block
    types = [operand.dtype for operand in operands]
    args = [Tensor(arg, type) for arg, type in zip(block.args, [*types, *types], strict=True)]
    _check_arity(ctx, name, combine_fn, args)
    with ctx.builder.at(block):
        combined = ctx.call(combine_fn, args, {})
        values = combined if isinstance(combined, tuple) else (combined,)
        values = [
            number(ctx, value, type) if is_number(value) else value for value, type in zip(values, types, strict=False)
        ]
    found = [value.type if isinstance(value, Tensor) else value for value in values]
    if found != types or (isinstance(combined, tuple) and len(combined) != len(types)):
        raise ctx.error(
            f"'{combine_fn.__name__}' returned {describe(combined)} for {name}, expected {_listed(types)}. "
            "Convert what it returns to the types of its arguments."
        )
    return values


def _check_arity(ctx: Context, name: str, combine_fn: Function | Builtin, args: Sequence[Tensor]) -> None:
    try:
        combine_fn.signature.bind(*args)
    except TypeError:
        known = ", ".join(combine_fn.signature.parameters)
        raise ctx.error(
            f"The combine function of {name} is called with {len(args)} scalars, those of one side and those of the "
            f"other: '{combine_fn.__name__}' has the parameters ({known})."
        ) from None


def _listed(types: Sequence[object]) -> str:
    return ", ".join(str(type) for type in types)


def _keep_dimensions(ctx: Context, x: Tensor, rank: int, axis: int | None, position: int) -> Tensor:
    if axis is not None:
        return insert_dimension(ctx, x, position)
    for _ in range(rank):
        x = insert_dimension(ctx, x, 0)
    return x


RULES = {tl.reduce: reduce, tl.associative_scan: associative_scan}

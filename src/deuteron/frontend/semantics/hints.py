"""Promises about values, as attributes of the op that makes them.

    tl.multiple_of(x, 16)       tt.divisibility = dense<16> : tensor<1xi32> on the op that x comes from

A value that no op makes (an argument, a loop-carried value) keeps what is known of it otherwise.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.shapes import is_integer
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.types import i32, tile


def multiple_of(ctx: Context, input: Value, values: Value) -> Tensor:
    return _promise(ctx, "tl.multiple_of", "tt.divisibility", input, values)


def max_contiguous(ctx: Context, input: Value, values: Value) -> Tensor:
    return _promise(ctx, "tl.max_contiguous", "tt.contiguity", input, values)


def max_constancy(ctx: Context, input: Value, values: Value) -> Tensor:
    return _promise(ctx, "tl.max_constancy", "tt.constancy", input, values)


def _promise(ctx: Context, name: str, attribute: str, input: Value, values: Value) -> Tensor:
    if not isinstance(input, Tensor):
        return as_tensor(ctx, input, f"The argument of {name}")
    entries = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    if not all(is_integer(entry) for entry in entries):
        raise ctx.error(f"{name} takes integers known at compile time, got {describe(values)}.")
    if len(entries) != max(len(input.shape), 1):
        raise ctx.error(
            f"{name} takes one value for each dimension of {input.type}, got {describe(values)}. "
            f"Give {max(len(input.shape), 1)}."
        )
    owner = input.handle.owner
    if isinstance(owner, Operation):
        type = tile(i32, [len(entries)])
        owner.attributes[attribute] = DenseIntOrFPElementsAttr.from_list(type, list(entries))
    return input


def assume(ctx: Context, cond: Value) -> None:
    condition = as_tensor(ctx, cond, "The condition of tl.assume")
    if not condition.dtype.is_bool():
        raise ctx.error(f"The condition of tl.assume is int1, got {condition.type}. Compare, as in `n > 0`.")


RULES = {
    tl.multiple_of: multiple_of,
    tl.max_contiguous: max_contiguous,
    tl.max_constancy: max_constancy,
    tl.assume: assume,
}

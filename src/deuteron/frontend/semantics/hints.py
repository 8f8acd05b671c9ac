"""Promises about values, as attributes of the op that makes them.

    tl.multiple_of(x, 16)       tt.divisibility = dense<16> : tensor<1xi32> on the op that x comes from

A promise in a branch or a loop holds there only: a value from outside is computed once more there, which then has the
attribute. One that is loaded outside keeps what is known of it otherwise, as does a value that no op makes (an
argument), and what comes out of a loop, a branch, or an op with several results.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.shapes import is_integer
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.effects import is_pure
from deuteron.ir.hints import CONSTANCY, CONTIGUITY, DIVISIBILITY, promise
from deuteron.ir.tt.dot import DotOp


def multiple_of(ctx: Context, input: Value, values: Value) -> Tensor:
    return _promise(ctx, "tl.multiple_of", DIVISIBILITY, input, values)


def max_contiguous(ctx: Context, input: Value, values: Value) -> Tensor:
    return _promise(ctx, "tl.max_contiguous", CONTIGUITY, input, values)


def max_constancy(ctx: Context, input: Value, values: Value) -> Tensor:
    return _promise(ctx, "tl.max_constancy", CONSTANCY, input, values)


def _promise(ctx: Context, name: str, attribute: str, input: Value, values: Value) -> Tensor:
    if not isinstance(input, Tensor):
        return as_tensor(ctx, input, f"The argument of {name}")
    entries = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    if not all(is_integer(entry) for entry in entries):
        raise ctx.error(f"{name} takes integers known at compile time, got {describe(values)}.")
    if min(entries, default=0) < 0:
        raise ctx.error(f"{name} takes integers from 0 on, got {describe(values)}.")
    if len(entries) != max(len(input.shape), 1):
        raise ctx.error(
            f"{name} takes one value for each dimension of {input.type}, got {describe(values)}. "
            f"Give {max(len(input.shape), 1)}."
        )
    carrier = _carrier(ctx, input.handle)
    if carrier is None:
        return input
    promise(carrier, attribute, entries)
    return Tensor(carrier.results[0], input.type)


def _carrier(ctx: Context, value: SSAValue) -> Operation | None:
    """The op whose attribute says something of a value wherever that op is run, or None."""
    op = value.owner
    if not isinstance(op, Operation) or op.regions or len(op.results) != 1:
        return None
    if op.parent is ctx.builder.insertion_point.block:
        return op
    return ctx.builder.insert(op.clone()) if is_pure(op) and not isinstance(op, DotOp) else None


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

"""Python's own functions on runtime values: what they mean, or what to write instead.

    len((a, b))     2, a tuple has a length
    sum((a, b))     a + b; zip, enumerate, reversed, list, tuple rearrange items
    float(x)        x.to(tl.float32), of a scalar

On compile-time values these run in Python itself and never come here.
"""

from __future__ import annotations

import operator

from deuteron import language as tl
from deuteron.errors import suggest
from deuteron.frontend.advice import NO_EXTENTS
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.arithmetic import add
from deuteron.frontend.semantics.convert import convert
from deuteron.frontend.values import Tensor, Value, describe, is_runtime, known_items
from deuteron.language.aggregate import Aggregate
from deuteron.language.types import float32, float64, int1, int32, int64


def len_(ctx: Context, value: Value) -> int:
    if isinstance(value, tuple | dict) and not isinstance(value, Aggregate):
        return len(value)
    is_pointer = isinstance(value, Tensor) and value.dtype.is_ptr() and not value.shape
    way_out = NO_EXTENTS if is_pointer else "Use x.shape[0] for an extent, or x.numel."
    raise ctx.error(f"len() of {describe(value)} is not defined. {way_out}")


def int_(ctx: Context, value: Value) -> Tensor:
    """Of a scalar: an integer as it is, int64 of a float, without what follows the point."""
    x = _scalar(ctx, "int", value, "Convert with x.to(tl.int32).")
    return x if x.dtype.is_int() and not x.dtype.is_bool() else convert(ctx, x, int32 if x.dtype.is_bool() else int64)


def float_(ctx: Context, value: Value) -> Tensor:
    """Of a scalar: fp32 or fp64 as it is, fp32 of anything narrower and of integers up to 32 bits, else fp64."""
    x = _scalar(ctx, "float", value, "Convert with x.to(tl.float32).")
    if x.dtype in (float32, float64):
        return x
    return convert(ctx, x, float64 if x.dtype.itemsize == 8 else float32)


def bool_(ctx: Context, value: Value) -> Tensor:
    return convert(ctx, _scalar(ctx, "bool", value, "Compare, as in `x != 0`."), int1)


def _scalar(ctx: Context, name: str, value: Value, way_out: str) -> Tensor:
    if not isinstance(value, Tensor) or value.shape or value.dtype.is_ptr():
        raise ctx.error(f"{name}() takes a number, got {describe(value)}. {way_out}")
    return value


def matmul(ctx: Context, left: Value, right: Value) -> None:
    raise ctx.error(f"'@' is not defined for {describe(left)} and {describe(right)}. Use tl.dot(a, b).")


def tuple_(ctx: Context, items: Value = (), type: Value = None) -> tuple[Value, ...]:
    """tuple(x), list(x), tl.tuple(x): a list is a tuple in a kernel."""
    return _items(ctx, "tuple", items)


def zip_(ctx: Context, *items: Value, strict: bool = False) -> tuple[Value, ...]:
    tuples = [_items(ctx, "zip", item) for item in items]
    if strict and len({len(item) for item in tuples}) > 1:
        raise ctx.error(f"zip() takes tuples of one length, got {', '.join(str(len(item)) for item in tuples)}.")
    return tuple(zip(*tuples, strict=False))


def enumerate_(ctx: Context, items: Value, start: int = 0) -> tuple[Value, ...]:
    return tuple(enumerate(_items(ctx, "enumerate", items), start))


def reversed_(ctx: Context, items: Value) -> tuple[Value, ...]:
    return tuple(reversed(_items(ctx, "reversed", items)))


def sum_(ctx: Context, items: Value, start: Value = 0) -> Value:
    for item in _items(ctx, "sum", items):
        known = not is_runtime((start, item))
        start = start + item if known else add(ctx, start, item)
    return start


def _items(ctx: Context, name: str, items: Value) -> tuple[Value, ...]:
    found = None if isinstance(items, Aggregate) else known_items(ctx, items)
    if found is not None:
        return found
    way_out = _ways_out(name) if isinstance(items, Tensor) and items.shape else ""
    raise ctx.error(f"{name}() takes a tuple, got {describe(items)}.{way_out}")


def _ways_out(name: str) -> str:
    if name == "sum":
        return " Use tl.sum for the sum of a tile."
    return " A tile has no items: work on it as a whole, or loop over tl.range and load."


def aggregate_replace(ctx: Context, instance: Value, **changes: Value) -> Value:
    if not isinstance(instance, Aggregate):
        raise ctx.error(f"tl.aggregate_replace takes a value of an @aggregate class, got {describe(instance)}.")
    for name in changes:
        if name not in instance._fields:
            raise ctx.error(f"{describe(instance)} has no '{name}'.{suggest(name, instance._fields)}")
    return checked_aggregate(ctx, instance._replace(**changes))


def checked_aggregate(ctx: Context, made: Aggregate) -> Aggregate:
    """The value; raises CompilationError where a constexpr field of it is known at run time only."""
    for name, is_fixed, value in zip(made._fields, made._fixed, made, strict=True):
        if is_fixed and is_runtime(value):
            raise ctx.error(
                f"'{name}' of {type(made).__name__} is a constexpr, got {describe(value)}, which is known only at run "
                "time. Annotate the field as tl.tensor."
            )
    return made


RULES = {
    tl.aggregate_replace: aggregate_replace,
    operator.matmul: matmul,
    len: len_,
    int: int_,
    float: float_,
    bool: bool_,
    tuple: tuple_,
    list: tuple_,
    tl.tuple: tuple_,
    zip: zip_,
    enumerate: enumerate_,
    reversed: reversed_,
    sum: sum_,
}

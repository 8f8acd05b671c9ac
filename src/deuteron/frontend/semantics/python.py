"""Python's own functions on runtime values: what they mean, or what to write instead.

    len((a, b))     2, a tuple has a length
    sum((a, b))     a + b; zip, enumerate, reversed, list, tuple rearrange items
    float(x)        an error: x.to(tl.float32) converts

On compile-time values these run in Python itself and never come here.
"""

from __future__ import annotations

import operator

from deuteron import language as tl
from deuteron.errors import suggest
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.arithmetic import add
from deuteron.frontend.values import Value, describe, is_runtime
from deuteron.language.aggregate import Aggregate


def len_(ctx: Context, value: Value) -> int:
    if isinstance(value, tuple | dict) and not isinstance(value, Aggregate):
        return len(value)
    raise ctx.error(f"len() of {describe(value)} is not defined. Use x.shape[0] for an extent, or x.numel.")


def int_(ctx: Context, value: Value) -> None:
    raise ctx.error(f"int() of {describe(value)}, which is known only at run time. Convert with x.to(tl.int32).")


def float_(ctx: Context, value: Value) -> None:
    raise ctx.error(f"float() of {describe(value)}, which is known only at run time. Convert with x.to(tl.float32).")


def bool_(ctx: Context, value: Value) -> None:
    raise ctx.error(f"bool() of {describe(value)}, which is known only at run time. Compare, as in `x != 0`.")


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
    if isinstance(items, tuple | range) and not isinstance(items, Aggregate):
        return tuple(items)
    way_out = " Use tl.sum for the sum of a tile." if name == "sum" else ""
    raise ctx.error(f"{name}() takes a tuple, got {describe(items)}.{way_out}")


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

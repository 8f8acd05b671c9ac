"""Python's own functions on runtime values: what they mean, or what to write instead.

    len((a, b))     2, a tuple has a length
    sum((a, b))     a + b; zip, enumerate, reversed, list, tuple rearrange items
    float(x)        an error: x.to(tl.float32) converts

On compile-time values these run in Python itself and never come here.
"""

from __future__ import annotations

from deuteron import language as tl
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


RULES = {
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

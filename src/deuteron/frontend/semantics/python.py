"""Python's own functions on runtime values: what they mean, or what to write instead.

    len((a, b))     2, a tuple has a length
    float(x)        an error: x.to(tl.float32) converts

On compile-time values these run in Python itself and never come here.
"""

from __future__ import annotations

from deuteron.frontend.context import Context
from deuteron.frontend.values import Value, describe


def len_(ctx: Context, value: Value) -> int:
    if isinstance(value, tuple):
        return len(value)
    raise ctx.error(f"len() of {describe(value)} is not defined. Use x.shape[0] for an extent, or x.numel.")


def int_(ctx: Context, value: Value) -> None:
    raise ctx.error(f"int() of {describe(value)}, which is known only at run time. Convert with x.to(tl.int32).")


def float_(ctx: Context, value: Value) -> None:
    raise ctx.error(f"float() of {describe(value)}, which is known only at run time. Convert with x.to(tl.float32).")


def bool_(ctx: Context, value: Value) -> None:
    raise ctx.error(f"bool() of {describe(value)}, which is known only at run time. Compare, as in `x != 0`.")


RULES = {len: len_, int: int_, float: float_, bool: bool_}

"""`tl.range` and `tl.static_range` anywhere but after `in` of a `for`, where the frontend reads them itself; and
`tl.condition`, whose hints it reads there too.
"""

from __future__ import annotations

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.values import Value


def range(
    ctx: Context,
    arg1: Value,
    arg2: Value = None,
    step: Value = None,
    num_stages: int | None = None,
    loop_unroll_factor: int | None = None,
    disallow_acc_multi_buffer: bool = False,
    flatten: bool = False,
    warp_specialize: bool = False,
    disable_licm: bool = False,
) -> None:
    raise ctx.error("tl.range is no value. Write it after `in`, as in `for i in tl.range(n):`.")


def static_range(ctx: Context, arg1: Value, arg2: Value = None, step: Value = None) -> None:
    raise ctx.error("tl.static_range is no value. Write it after `in`, as in `for i in tl.static_range(4):`.")


def condition(ctx: Context, arg1: Value, disable_licm: bool = False) -> Value:
    return arg1


RULES = {tl.range: range, tl.static_range: static_range, tl.condition: condition}

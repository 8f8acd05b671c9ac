"""Asks for the lines that a program is going to store its sums in, while it computes them.

    iteration t of the loop over k      rows t * 8 .. t * 8 + 7 of each store behind it: prefetchw, each line

A store into a line that is in no near cache waits for it, and those behind it do, too: of bf16 1,000 x 999 x 777 on an
Emerald Rapids that was a fifth of the time. All rows at once would wait for one another in the same way. Rows that are
not needed are not asked for, as they may be anybody's, nor is what is stored past the caches.
"""

from __future__ import annotations

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Axis, one_element
from deuteron.backend.cpu.plan.items import Dot
from deuteron.backend.cpu.rules.matrix import elements_needed
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.tt.memory import StoreOp
from deuteron.ir.types import byte_width_of, pointee_of, shape_of

_ROWS = 8  # in an iteration
_LINE = 64


def ask_for_stores(ctx: Context, item: Dot, number: Value) -> None:
    """Of a product, in the iteration of this number of its loop."""
    for store in item.awaited:
        m, n = shape_of(store.ptr.type)
        rows = elements_needed(ctx, item.needed_rows, m) if item.needed_rows else const("i64", m)
        b = ctx.emitter.innermost()
        if store in ctx.streams.stores:
            rows = b.select(ctx.program["streams"], const("i64", 0), rows)
        first = b.umin(b.mul(number, const("i64", _ROWS)), rows)
        last = b.umin(b.add(first, const("i64", _ROWS)), rows)
        _ask(ctx, store, b.trunc(first, "i32"), b.trunc(last, "i32"), n * byte_width_of(pointee_of(store.ptr.type)))


def _ask(ctx: Context, store: StoreOp, first: Value, last: Value, row_bytes: int) -> None:
    loop = ctx.emitter.open_part(first, last, const("i32", 1), (), "line")
    with ctx.evaluating_afresh():
        row = ctx.evaluate(store.ptr, (Axis(loop.index, 1, ctx.emitter.depth), one_element(0))).value
    _ask_for_row(ctx.emitter.innermost(), row, row_bytes)
    ctx.emitter.close_loop(loop)


def _ask_for_row(b: Builder, row: Value, row_bytes: int) -> None:
    """Each line of it, of which the last is one more if the row begins within one."""
    for offset in (*range(0, row_bytes, _LINE), row_bytes - 1):
        b.prefetch_to_write(b.gep("i8", row, const("i64", offset)))

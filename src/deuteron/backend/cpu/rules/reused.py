"""Operands of products that are found packed (`plan/products/reuse.py`), from program to program.

    before the loop     entry = that of the key, if it is kept (`key_table.py`)
                        packed = steps that are found packed, of an entry
                        limit = kept ? groups of an entry * steps : 0
    step t              where = t < limit ? group of t in the entry : the last group, which no other program reads
                        if t >= packed: pack it there;  if t < limit: packed = t + 1

What is not kept is packed into one group, which stays in the first cache. A launch from Python hands out programs in
chunks, each a call of the kernel's function. A thread finds what it has packed in its chunks before: the tables are in
its scratch memory, as what they tell of is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.launch.pool_layout import WATCH
from deuteron.backend.cpu.plan.slots import Reuse
from deuteron.backend.cpu.rules.key_table import (
    GROUPS,
    NOTHING,
    PACKED,
    begin_table,
    entry_word,
    find_key,
    put_key,
    table_word,
)
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.counter import num_iterations
from deuteron.backend.llvm.types import Value, bit_width, const, is_float, zero

_WORD_BYTES = 8


@dataclass(frozen=True)
class Kept:
    """Where a loop keeps an operand: from which group on, how many steps of it; `packed` is where they are counted."""

    first_group: Value
    limit: Value
    packed: Value


@dataclass(frozen=True)
class ReusedStep:
    """Of this iteration: its number, and where the loop keeps the operand."""

    number: Value
    kept: Kept

    def is_kept(self, b: Builder) -> Value:
        return b.icmp("ult", self.number, self.kept.limit)


def table_bytes(reuses: list[Reuse]) -> int:
    """What all tables take."""
    return _WORD_BYTES * _num_words(reuses)


def new_words(b: Builder, reuses: list[Reuse], num_programs: Value) -> Value:
    """The tables of a call of the kernel's function, in its entry block."""
    if not reuses:
        return zero("ptr")
    words = b.alloca("i64", _num_words(reuses), align=_WORD_BYTES)
    _begin_words(b, words, reuses, num_programs)
    return words


def begin_launch_words(b: Builder, words: Value, reuses: list[Reuse], num_programs: Value, watch: Value) -> None:
    """The tables in a thread's scratch memory, unless the launch has called the function before with that."""
    has_packed = b.gep("i64", watch, const("i64", WATCH.index("has_packed")))
    with b.if_(b.icmp("eq", b.load("i64", has_packed), const("i64", 0)), "first_call"):
        _begin_words(b, words, reuses, num_programs)
        b.store(const("i64", 1), has_packed)


def _num_words(reuses: list[Reuse]) -> int:
    return sum(reuse.num_words for reuse in reuses)


def _begin_words(b: Builder, words: Value, reuses: list[Reuse], num_programs: Value) -> None:
    with b.loop(const("i64", 0), const("i64", _num_words(reuses)), const("i64", 1), hint="word") as loop:
        b.store(const("i64", 0), b.gep("i64", words, loop.index))
    are_several = b.icmp("ugt", num_programs, const("i64", 1))
    for reuse in reuses:
        begin_table(b, table_word(b, words, reuse.word), are_several if reuse.is_eager else const("i1", 0))


def begin_reuse(ctx: Context, reuse: Reuse, bounds: Sequence[Value], is_wanted: Value | None) -> Kept:
    """Look for the key before its loop; what is not wanted is not kept."""
    keys = [ctx.scalar(value) for value in reuse.key]
    b = ctx.emitter.innermost()
    table, steps = table_word(b, ctx.program["words"], reuse.word), const("i64", reuse.steps)
    iterations = num_iterations(b, *bounds)
    iterations = b.zext(iterations, "i64") if iterations.type != "i64" else iterations
    groups = b.udiv(b.add(iterations, const("i64", reuse.steps - 1)), steps)
    put_key(b, table, [_as_word(b, key) for key in keys])
    entry = find_key(b, table, len(keys), reuse.most_entries, reuse.groups, groups)
    is_kept, groups = b.icmp("sge", entry, const("i64", 0)), b.load("i64", table_word(b, table, GROUPS))
    is_kept = is_kept if is_wanted is None else b.and_(is_kept, is_wanted)
    limit = b.mul(b.umin(groups, const("i64", reuse.groups)), steps)
    packed = b.select(is_kept, entry_word(b, table, len(keys), entry, PACKED), table_word(b, table, NOTHING))
    return Kept(b.mul(entry, groups), b.select(is_kept, limit, const("i64", 0)), packed)


def not_kept(ctx: Context, reuse: Reuse, kept: Kept, condition: Value) -> Kept:
    """The same, where a condition holds as if there were no room: what the program packs no other one finds."""
    b = ctx.emitter.innermost()
    nothing = table_word(b, table_word(b, ctx.program["words"], reuse.word), NOTHING)
    limit = b.select(condition, const("i64", 0), kept.limit)
    return Kept(kept.first_group, limit, b.select(condition, nothing, kept.packed))


def begin_step(ctx: Context, reuse: Reuse, number: Value, kept: Kept) -> None:
    """Say where this iteration keeps the operand."""
    b = ctx.emitter.innermost()
    step = ReusedStep(number, kept)
    group = b.add(kept.first_group, b.udiv(number, const("i64", reuse.steps)))
    group = b.select(step.is_kept(b), group, const("i64", reuse.groups))
    ctx.products.group_offsets[reuse.slot] = b.mul(group, const("i64", reuse.group_bytes)), ctx.emitter.depth
    ctx.products.reused_steps[reuse] = step


def unless_packed(ctx: Context, reuse: Reuse, emit: Callable[[], None]) -> None:
    """Emit what packs this step; it runs unless a program before has packed it."""
    emitter, step = ctx.emitter, ctx.products.reused_steps[reuse]
    b = emitter.innermost()
    pack, end = b.block("pack"), b.block("packed")
    packed = b.load("i64", step.kept.packed)
    emitter.enter(pack)
    emit()
    b = emitter.innermost()
    b.store(b.select(step.is_kept(b), b.add(step.number, const("i64", 1)), packed), step.kept.packed)
    b.br(end)
    emitter.leave()
    b = emitter.innermost()
    b.cond_br(b.icmp("uge", step.number, packed), pack, end)
    b.position(end)


def _as_word(b: Builder, scalar: Value) -> Value:
    if scalar.type == "ptr":
        return b.ptrtoint(scalar)
    if is_float(scalar.type):
        scalar = b.bitcast(scalar, f"i{bit_width(scalar.type)}")
    return scalar if scalar.type == "i64" else b.zext(scalar, "i64")

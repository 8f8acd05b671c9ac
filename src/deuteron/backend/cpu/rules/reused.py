"""Operands of products that are found packed (`plan/reuse.py`): what is remembered from program to program, in words.

    before the loop     equal = the key is the one before;  caches = equal, or the key before was met again
                        packed = equal ? packed : 0         steps that are found packed
                        limit = caches ? groups * steps : 0 steps that are kept for the next program
    step t              where = t < limit ? group of t : the last group, which no other program reads
                        if t >= packed: pack it there;  if t < limit: packed = t + 1

What is not met again is packed into one group, which stays in the first cache. The first key of a call counts as met
again if the call has several programs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.plan.slots import Reuse
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const, is_float, zero

_MET_AGAIN, _PACKED, _KEY = range(3)
_WORD_BYTES = 8


@dataclass(frozen=True)
class ReusedStep:
    """Of this iteration: its number, and how many are kept."""

    number: Value
    limit: Value


def new_words(b: Builder, reuses: list[Reuse], num_programs: Value) -> Value:
    """The words of a call of the kernel's function, in its entry block."""
    count = sum(reuse.num_words for reuse in reuses)
    if not count:
        return zero("ptr")
    words = b.alloca("i64", count, align=_WORD_BYTES)
    for number in range(count):
        b.store(const("i64", 0), b.gep("i64", words, const("i64", number)))
    are_several = b.zext(b.icmp("ugt", num_programs, const("i64", 1)), "i64")
    for reuse in reuses:
        b.store(are_several, _address(b, words, reuse, _MET_AGAIN))
    return words


def begin_reuse(ctx: Context, reuse: Reuse) -> Value:
    """Look at the key before its loop; how many steps are kept."""
    keys = [ctx.scalar(value) for value in reuse.key]
    b, words = ctx.emitter.innermost(), ctx.program["words"]
    equal = const("i1", 1)
    for number, key in enumerate(keys):
        place, key = _address(b, words, reuse, _KEY + number), _as_word(b, key)
        equal = b.and_(equal, b.icmp("eq", b.load("i64", place), key))
        b.store(key, place)
    met_again, packed = (_address(b, words, reuse, word) for word in (_MET_AGAIN, _PACKED))
    caches = b.or_(equal, b.icmp("ne", b.load("i64", met_again), const("i64", 0)))
    b.store(b.select(equal, b.load("i64", packed), const("i64", 0)), packed)
    b.store(b.zext(equal, "i64"), met_again)
    return b.select(caches, const("i64", reuse.groups * reuse.steps), const("i64", 0))


def begin_step(ctx: Context, reuse: Reuse, number: Value, limit: Value) -> None:
    """Say where this iteration keeps the operand."""
    b = ctx.emitter.innermost()
    group = b.udiv(number, const("i64", reuse.steps))
    group = b.select(b.icmp("ult", number, limit), group, const("i64", reuse.groups))
    ctx.group_offsets[reuse.slot] = b.mul(group, const("i64", reuse.group_bytes)), ctx.emitter.depth
    ctx.reused_steps[reuse] = ReusedStep(number, limit)


def unless_packed(ctx: Context, reuse: Reuse, emit: Callable[[], None]) -> None:
    """Emit what packs this step; it runs unless a program before has packed it."""
    emitter, step = ctx.emitter, ctx.reused_steps[reuse]
    b = emitter.innermost()
    pack, end = b.block("pack"), b.block("packed")
    packed = b.load("i64", _address(b, ctx.program["words"], reuse, _PACKED))
    emitter.enter(pack)
    emit()
    b = emitter.innermost()
    following = b.add(step.number, const("i64", 1))
    is_kept = b.icmp("ult", step.number, step.limit)
    b.store(b.select(is_kept, following, packed), _address(b, ctx.program["words"], reuse, _PACKED))
    b.br(end)
    emitter.leave()
    b = emitter.innermost()
    b.cond_br(b.icmp("uge", step.number, packed), pack, end)
    b.position(end)


def _address(b: Builder, words: Value, reuse: Reuse, word: int) -> Value:
    return b.gep("i64", words, const("i64", reuse.word + word))


def _as_word(b: Builder, scalar: Value) -> Value:
    if scalar.type == "ptr":
        return b.ptrtoint(scalar)
    if is_float(scalar.type):
        scalar = b.bitcast(scalar, f"i{bit_width(scalar.type)}")
    return scalar if scalar.type == "i64" else b.zext(scalar, "i64")

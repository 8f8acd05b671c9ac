"""Loops of a kernel look now and then whether the launch is to end: a budget of work goes down, until they look.

for i in range(n):                      while i < n:                                a strip
    body                                    length = min(n - i, budget / work + 1)
                                            budget = max(budget - length * work, 0)
                                            for i in range(i, i + length): body     as it would be without
                                            if budget == 0: look, or leave

while condition: body                   in each iteration: if budget < work: look, or leave; budget -= work

The innermost loops stay as they are, so that they may become vectors; a loop takes 5 ns more when it begins. To look
is to call a function that the launch gives after all arguments, in a record with what it needs to know
(`interrupt_code.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deuteron.backend.cpu.emitter import Emitter, OpenLoop
from deuteron.backend.cpu.products.amx import emit_configuration
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.counter import Counter
from deuteron.backend.llvm.types import Value, bit_width, const

# Elements (`plan/programs/work.py`) until a look, which takes 30 ns: most kernels take 0.1 to 2 ms for so many.
BUDGET = 1 << 20
_MOST_SHIFT = 40  # of a budget: it fits a word then
# Whoever looks may run Python; of what this module knows of nothing changes but arrays, which a launch has for itself.
_LOOKS = "cold nounwind memory(inaccessiblemem: readwrite)"
_LOOKS_AMONG_ATOMICS = "cold nounwind"  # after it atomics may have to be locked: `updates.py`

Leave = Callable[[Builder], None]


@dataclass(frozen=True)
class Countdown:
    """Of a call of the kernel's function: the address of the budget, what the launch gave, whether it has atomics, and
    whether it uses tiles of AMX, which are configured anew after a look: what it runs may configure them otherwise.
    """

    budget: Value
    watch: Value
    uses_tiles: bool
    has_atomics: bool

    def take(self, b: Builder, work: Value) -> None:
        """Take what is there."""
        budget = b.load("i64", self.budget)
        b.store(b.intrinsic("llvm.usub.sat", "i64", budget, work), self.budget)

    def look_if(self, b: Builder, is_spent: Value, leave: Leave) -> None:
        """Look if the budget is spent; `leave` ends the block of where the launch is to end."""
        look, fresh, told, going = (b.block(name) for name in ("look", "fresh", "told", "going"))
        b.cond_br(is_spent, look, going)
        b.position(look)
        attributes = _LOOKS_AMONG_ATOMICS if self.has_atomics else _LOOKS
        is_told = b.call_pointer("i32", b.load("ptr", self.watch), self.watch, attributes=attributes)
        b.cond_br(b.icmp("eq", is_told, const("i32", 0)), fresh, told)
        b.position(fresh)
        b.store(const("i64", BUDGET), self.budget)
        if self.uses_tiles:
            emit_configuration(b)
        b.br(going)
        b.position(told)
        leave(b)
        b.position(going)


def begin_countdown(b: Builder, watch: Value, uses_tiles: bool, has_atomics: bool) -> Countdown:
    """In the entry block."""
    budget = b.alloca("i64", align=8)
    b.store(const("i64", BUDGET), budget)
    return Countdown(budget, watch, uses_tiles, has_atomics)


@dataclass(frozen=True)
class Strips:
    """A loop that is being emitted in strips; its body sees the inner one, and `counters`, those of both together."""

    outer: OpenLoop
    inner: OpenLoop
    counters: list[Value]

    @property
    def index(self) -> Value:
        return self.counters[0]

    @property
    def counter(self) -> Counter:
        """What counts all strips together."""
        return self.outer.counter.counter


def open_strips(
    emitter: Emitter,
    countdown: Countdown,
    bounds: Sequence[Value],
    work: int,
    carried: Sequence[Value] = (),
    hint: str = "i",
) -> Strips:
    """Begin a loop over `start <= index < stop`, an iteration of which is so much work."""
    outer = emitter.open_strips(*bounds, carried, hint)
    b, last, counter = emitter.innermost(), outer.counters[-1], outer.counter.counter
    shift, most = _shift(counter, work), const("i64", 1 << min(_MOST_SHIFT, bit_width(last.type) - 2))
    room = b.add(_shifted(b, b.load("i64", countdown.budget), -shift), const("i64", 1))
    room = b.umin(b.sub(counter.stop, last), b.trunc(b.umin(room, most), last.type))
    countdown.take(b, _shifted(b, b.zext(room, "i64"), shift))
    inner = emitter.open_strip(outer, room, hint)
    return Strips(outer, inner, outer.counter.whole(emitter.innermost(), outer.counters, inner.counters))


def _shift(counter: Counter, work: int) -> int:
    """The logarithm of the work in one unit of the counter."""
    step = 1 if counter.is_counted else int(counter.step.text)
    return max(work.bit_length() - step.bit_length(), -_MOST_SHIFT)


def _shifted(b: Builder, value: Value, shift: int) -> Value:
    return b.shl(value, const("i64", shift)) if shift >= 0 else b.lshr(value, const("i64", -shift))


def close_strips(
    emitter: Emitter, countdown: Countdown, strips: Strips, carried: Sequence[Value], leave: Leave
) -> list[Value]:
    """End the loop; `carried` are the values for its next iteration. Returns those after the last."""
    results = emitter.close_strip(strips.outer, strips.inner, carried)
    b = emitter.innermost()
    countdown.look_if(b, b.icmp("eq", b.load("i64", countdown.budget), const("i64", 0)), leave)
    return emitter.close_loop(strips.outer, results)


def count_iteration(emitter: Emitter, countdown: Countdown, work: int, leave: Leave) -> None:
    """At the beginning of an iteration of any loop."""
    b = emitter.innermost()
    difference = b.intrinsic(
        "llvm.usub.with.overflow", "{ i64, i1 }", b.load("i64", countdown.budget), const("i64", work), overloads=["i64"]
    )
    b.store(b.extractvalue(difference, 0, "i64"), countdown.budget)
    countdown.look_if(b, b.extractvalue(difference, 1, "i1"), leave)

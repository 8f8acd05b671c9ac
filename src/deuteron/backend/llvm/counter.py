"""How the index of a loop goes up in steps while it is below a stop, for all bounds: no test reads what has overflowed.

    i < stop, signed; i + step               where the step is 1, or constants show that this fits
    i < max(stop, 0), unsigned; i + step     from a start that is not negative: the bit of the sign is to spare
    n < number of iterations; i + step       otherwise: iterations are counted beside the index

Index and bounds have one integer type and are signed. A step is positive; where one that is not known is not, the loop
has no iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deuteron.backend.llvm.arithmetic import Arithmetic
from deuteron.backend.llvm.types import Value, bit_width, const


@dataclass(frozen=True)
class Counter:
    """One loop's: its counters are the index and, where iterations are counted, their count."""

    step: Value
    stop: Value
    predicate: str
    flags: str = "nsw"
    is_counted: bool = False

    def starts(self, start: Value) -> list[Value]:
        """What the counters begin with."""
        return [start, const(start.type, 0)] if self.is_counted else [start]

    def runs(self, b: Arithmetic, counters: Sequence[Value]) -> Value:
        """Whether there is an iteration with these counters."""
        return b.icmp(self.predicate, counters[-1], self.stop)

    def following(self, b: Arithmetic, counters: Sequence[Value]) -> list[Value]:
        index, *counts = counters
        one = const(index.type, 1)
        return [b.add(index, self.step, self.flags), *(b.add(count, one, "nuw") for count in counts)]


@dataclass
class Jumps:
    """Of a loop whose body says where it goes on: `after`, beyond the index. Neither has a sign. `others`: what else it
    counts.
    """

    stop: Value
    after: Value | None = None
    others: Sequence[Value] = ()

    def starts(self, start: Value) -> list[Value]:
        return [start]

    def runs(self, b: Arithmetic, counters: Sequence[Value]) -> Value:
        return b.icmp("ult", counters[0], self.stop)

    def following(self, b: Arithmetic, counters: Sequence[Value]) -> list[Value]:
        return [self.after, *self.others]


@dataclass
class InStrips:
    """Of a loop around strips of another one's iterations: a strip takes the first of those that are left.

    Its counter begins with 0, so that LLVM sees that none overflows; the index of an iteration is what comes of both.
    """

    counter: Counter
    after: list[Value] | None = None

    def starts(self, start: Value) -> list[Value]:
        return self.counter.starts(start)

    def runs(self, b: Arithmetic, counters: Sequence[Value]) -> Value:
        return self.counter.runs(b, counters)

    def following(self, b: Arithmetic, counters: Sequence[Value]) -> list[Value]:
        return self.after

    def of_strip(self, counters: Sequence[Value], room: Value) -> tuple[Counter, list[Value]]:
        """What counts a strip, and what that begins with; `room`: until where."""
        last = counters[-1]
        if self.counter.is_counted:
            return replace(self.counter, stop=room), [counters[0], const(last.type, 0)]
        return Counter(self.counter.step, room, "ult", "nuw"), [const(last.type, 0)]

    def whole(self, b: Arithmetic, counters: Sequence[Value], of_strip: Sequence[Value]) -> list[Value]:
        """The loop's own counters in an iteration of a strip. No index has a sign to lose where its test has none."""
        if self.counter.is_counted:
            return [of_strip[0], b.add(counters[-1], of_strip[-1], "nuw")]
        return [b.add(counters[0], of_strip[0], "nuw nsw" if self.counter.predicate == "ult" else "nsw")]

    def go_on(self, b: Arithmetic, counters: Sequence[Value], of_strip: Sequence[Value]) -> None:
        """After a strip whose counters are these at its end."""
        last = b.add(counters[-1], of_strip[-1])
        self.after = [of_strip[0], last] if self.counter.is_counted else [last]


def make_counter(b: Arithmetic, start: Value, stop: Value, step: Value, in_strips: bool = False) -> Counter:
    """The counter of a loop that is about to begin. `in_strips` it counts iterations unless its step is known.

    No test is against a `select`, which LLVM would split into two tests in each iteration.
    """
    zero, one = const(stop.type, 0), const(stop.type, 1)
    if step == one or (stop.is_constant and step.is_constant and _fits(stop, step)):
        return Counter(step, stop, "slt")
    is_natural = start.is_constant and int(start.text) >= 0 and (step.is_constant or not in_strips)
    stop, step = _upward(b, zero if is_natural else start, stop, step)
    if is_natural:
        return Counter(step, b.smax(stop, zero), "ult", "nuw")
    return Counter(step, _iterations(b, start, stop, step), "ult", is_counted=True)


def _upward(b: Arithmetic, start: Value, stop: Value, step: Value) -> tuple[Value, Value]:
    """A stop, and a step that is positive: of a loop without iterations where it was not."""
    if step.is_constant:
        return stop, step
    is_upward = b.icmp("sgt", step, const(step.type, 0))
    return b.select(is_upward, stop, start), b.select(is_upward, step, const(step.type, 1))


def has_iterations(b: Arithmetic, start: Value, stop: Value, step: Value) -> Value:
    """Whether a loop that is about to begin has any."""
    return b.and_(b.icmp("slt", start, stop), b.icmp("sgt", step, const(step.type, 0)))


def num_iterations(b: Arithmetic, start: Value, stop: Value, step: Value) -> Value:
    """Of a loop that is about to begin; where the step is not positive, another number."""
    return _iterations(b, start, stop, b.smax(step, const(step.type, 1)))


def runs_at_least_once(start: Value, stop: Value) -> bool:
    """Whether a loop is known to have an iteration; its step is positive."""
    return start.is_constant and stop.is_constant and int(start.text) < int(stop.text)


def _iterations(b: Arithmetic, start: Value, stop: Value, step: Value) -> Value:
    """The distance by the step, rounded up, without signs."""
    distance = b.sub(b.smax(start, stop), start)
    whole = b.udiv(distance, step)
    return b.add(whole, b.zext(b.icmp("ne", b.mul(whole, step), distance), distance.type))


def _fits(stop: Value, step: Value) -> bool:
    """Whether what follows the last index does not overflow."""
    lowest = -(1 << (bit_width(stop.type) - 1))
    return 0 < int(step.text) <= -lowest - int(stop.text)

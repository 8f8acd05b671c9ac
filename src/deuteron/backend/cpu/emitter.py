"""Emits code at several depths at once: each loop around the current place has a block that is still open.

    for i:                  level 1     row = offset + i * stride       emitted here, when the inner loop needs it
        for j:              level 2         x = load(row + j)

What changes only with `i` is emitted before the loop over `j`, whenever somebody asks for it. So nothing is computed
in a loop that does not change there, without a pass over the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.counter import Counter, InStrips, Jumps, make_counter, runs_at_least_once
from deuteron.backend.llvm.types import Value


@dataclass(eq=False)
class OpenLoop:
    """A loop whose body is being emitted. One that runs at least once tests after its body, any other before it."""

    level: int
    header: Block
    end: Block
    counters: list[Value]
    counter: Counter | Jumps | InStrips
    carried: list[Value]
    starts: list[Value]
    runs_at_least_once: bool

    @property
    def index(self) -> Value:
        return self.counters[0]


class Emitter:
    """A builder for each level, at its open end; level 0 is the function's. None moves another one's place."""

    def __init__(self, builder: Builder):
        self._builders = [builder]

    @property
    def depth(self) -> int:
        """The innermost level."""
        return len(self._builders) - 1

    def at(self, level: int) -> Builder:
        """The builder at the open end of a level."""
        return self._builders[level]

    def set_debug_location(self, metadata: str | None) -> None:
        self.innermost().set_debug_location(metadata)

    def innermost(self) -> Builder:
        return self._builders[-1]

    def enter(self, block: Block) -> int:
        """Open a level in a new block."""
        self._builders.append(self.innermost().elsewhere(block))
        return self.depth

    def leave(self) -> Block:
        """Close the innermost level; returns its last block, which still needs a terminator."""
        return self._builders.pop().current_block

    def unless(self, condition: Value, emit: Callable[[], None], hint: str) -> None:
        """Emit what runs unless a condition holds, with any loops."""
        b = self.innermost()
        entry, end = b.block(hint), b.block(f"{hint}_end")
        self.enter(entry)
        emit()
        self.innermost().br(end)
        self.leave()
        b = self.innermost()
        b.cond_br(condition, end, entry)
        b.position(end)

    def open_loop(
        self, start: Value, stop: Value, step: Value, carried: Sequence[Value] = (), hint: str = "i"
    ) -> OpenLoop:
        """Begin a loop over `start <= index < stop`; all values given are known at the present innermost level."""
        known = runs_at_least_once(start, stop)
        counter = make_counter(self.innermost(), start, stop, step)
        return self._open(counter.starts(start), counter, carried, hint, known)

    def open_strips(
        self, start: Value, stop: Value, step: Value, carried: Sequence[Value] = (), hint: str = "i"
    ) -> OpenLoop:
        """The same, of a loop each of whose iterations has a strip of them: `open_strip`."""
        counter = InStrips(make_counter(self.innermost(), start, stop, step, in_strips=True))
        return self._open(counter.starts(start), counter, carried, f"{hint}_strip", runs_at_least_once(start, stop))

    def open_strip(self, strips: OpenLoop, room: Value, hint: str = "i") -> OpenLoop:
        """Begin the loop over what is left, until its last counter has gone so far, and for one iteration at least."""
        counter, starts = strips.counter.of_strip(strips.counters, room)
        return self._open(starts, counter, strips.carried, hint, True)

    def close_strip(self, strips: OpenLoop, strip: OpenLoop, carried: Sequence[Value]) -> list[Value]:
        """End it; the loop around it goes on there. Returns the carried values after it."""
        following = strip.counter.following(self.innermost(), strip.counters)
        results = self._close(strip, following, carried)
        strips.counter.go_on(self.innermost(), strips.counters, following)
        return results

    def open_part(self, start: Value, stop: Value, step: Value, carried: Sequence[Value], hint: str) -> OpenLoop:
        """The same, of bounds that are not negative, a whole number of steps apart, and not close to the highest."""
        return self._open([start], Counter(step, stop, "ult", "nuw nsw"), carried, hint, False)

    def open_jumps(self, start: Value, stop: Value, hint: str = "i", others: Sequence[Value] = ()) -> OpenLoop:
        """The same, of a loop with at least one iteration, whose body sets `counter.after` to where it goes on; and
        `counter.others`, what else it counts, from these numbers on.
        """
        return self._open([start, *others], Jumps(stop), (), hint, True)

    def _open(
        self,
        starts: Sequence[Value],
        counter: Counter | Jumps | InStrips,
        carried: Sequence[Value],
        hint: str,
        runs_at_least_once: bool,
    ) -> OpenLoop:
        b = self.innermost()
        header, end = b.block(hint), b.block(f"{hint}_end")
        level = self.enter(header)
        b = self.innermost()
        counters = [b.phi(start.type, hint=hint) for start in starts]
        phis = [b.phi(value.type) for value in carried]
        if not runs_at_least_once:
            body = b.block(f"{hint}_body")
            b.cond_br(counter.runs(b, counters), body, end)
            b.position(body)
        return OpenLoop(level, header, end, counters, counter, phis, [*starts, *carried], runs_at_least_once)

    def close_loop(self, loop: OpenLoop, carried: Sequence[Value] = ()) -> list[Value]:
        """End the innermost loop; `carried` are the values for its next iteration. Returns those after the last."""
        return self._close(loop, loop.counter.following(self.innermost(), loop.counters), carried)

    def _close(self, loop: OpenLoop, following: Sequence[Value], carried: Sequence[Value]) -> list[Value]:
        b = self.innermost()
        if loop.runs_at_least_once:
            b.cond_br(loop.counter.runs(b, following), loop.header, loop.end)
        else:
            b.br(loop.header)
        last = self.leave()
        b = self.innermost()
        before = b.current_block
        b.br(loop.header)
        b.position(loop.end)
        phis = [*loop.counters, *loop.carried]
        for phi, start, value in zip(phis, loop.starts, [*following, *carried], strict=True):
            b.add_incoming(phi, start, before)
            b.add_incoming(phi, value, last)
        return list(carried) if loop.runs_at_least_once else loop.carried

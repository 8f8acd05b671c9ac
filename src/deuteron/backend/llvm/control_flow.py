"""The builder's blocks, branches and phis, and loops and conditionals made of them.

    with b.loop(const("i64", 0), n, const("i64", 8), carried=[total], hint="i") as loop:
        x = b.load("float", b.gep("float", p, loop.index))
        loop.next(b.fadd(loop.carried[0], x))
    total = loop.results[0]

    with b.if_(condition) as branch:
        branch.yield_(x)
        branch.otherwise()              # left out where nothing is to be done otherwise
        branch.yield_(y)
    x_or_y = branch.results[0]

A loop tests before its first iteration, unless its bounds are constants that let it run; index and bounds
have one integer type and are signed, and no bounds make the index overflow (`counter.py`). Any blocks may be
made inside the bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from deuteron.backend.llvm.counter import make_counter, runs_at_least_once
from deuteron.backend.llvm.types import Value


@dataclass(eq=False)
class Block:
    """A label, the phis that come first below it, and the lines after them."""

    name: str
    phis: list[Phi] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Phi:
    """A phi, whose incoming values are known when the function is complete."""

    value: Value
    incoming: list[tuple[Value, Block]]

    @property
    def line(self) -> str:
        pairs = ", ".join(f"[ {value.text}, %{block.name} ]" for value, block in self.incoming)
        return f"  {self.value.text} = phi {self.value.type} {pairs}"


@dataclass(eq=False)
class Loop:
    """What the body of a loop sees: its index and carried values; `next` gives those of the next one."""

    index: Value
    carried: list[Value]
    results: list[Value]
    next_values: list[Value]

    def next(self, *values: Value) -> None:
        self.next_values = list(values)


class Branch:
    """The two ways of a conditional; what either yields is merged in `results`."""

    def __init__(self, builder: ControlFlow, otherwise: Block, end: Block):
        self.results: list[Value] = []
        self._builder, self._otherwise, self._end = builder, otherwise, end
        self._yields: list[tuple[Block, list[Value]]] = []
        self._yielded: list[Value] = []
        self._has_otherwise = False

    def yield_(self, *values: Value) -> None:
        self._yielded = list(values)

    def otherwise(self) -> None:
        """What follows runs where the condition is false."""
        self._close_way()
        self._has_otherwise = True
        self._builder.position(self._otherwise)

    def finish(self) -> None:
        if not self._has_otherwise:
            self.otherwise()
        self._close_way()
        self._builder.position(self._end)
        (first, values), (second, others) = self._yields
        for value, other in zip(values, others, strict=True):
            self.results.append(self._builder.phi(value.type, [(value, first), (other, second)]))

    def _close_way(self) -> None:
        self._yields.append((self._builder.current_block, self._yielded))
        self._yielded = []
        self._builder.br(self._end)


class ControlFlow:
    """Mixed into Builder, which gives `_append`, `_emit`, `_name`, `_unique` and `icmp`."""

    current_block: Block
    _blocks: dict[Block, None]
    _phis: dict[str, Phi]
    types: dict[str, str]

    def _append(self, text: str) -> None:
        raise NotImplementedError

    def _emit(self, type: str, text: str, hint: str = "") -> Value:
        raise NotImplementedError

    def _name(self, hint: str) -> str:
        raise NotImplementedError

    def _unique(self, hint: str) -> str:
        raise NotImplementedError

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        raise NotImplementedError

    def block(self, name: str = "block") -> Block:
        """A new block; it is placed in the function where it is first positioned at."""
        return Block(self._unique(name))

    def position(self, block: Block) -> None:
        """Append what follows to this block."""
        self._blocks[block] = None
        self.current_block = block

    def br(self, block: Block, metadata: str = "") -> None:
        self._append(f"br label %{block.name}{_tail(metadata)}")

    def cond_br(self, condition: Value, then: Block, otherwise: Block, metadata: str = "") -> None:
        self._append(f"br i1 {condition.text}, label %{then.name}, label %{otherwise.name}{_tail(metadata)}")

    def ret(self, value: Value | None = None) -> None:
        self._append(f"ret {value}" if value else "ret void")

    def phi(self, type: str, incoming: Sequence[tuple[Value, Block]] = (), hint: str = "") -> Value:
        """A phi, which comes first in its block; more incoming values may be added later."""
        phi = Phi(Value(type, self._name(hint)), list(incoming))
        self.current_block.phis.append(phi)
        self._phis[phi.value.text] = phi
        self.types[phi.value.text] = type
        return phi.value

    def add_incoming(self, phi: Value, value: Value, block: Block) -> None:
        self._phis[phi.text].incoming.append((value, block))

    @contextmanager
    def loop(
        self,
        start: Value,
        stop: Value,
        step: Value,
        carried: Sequence[Value] = (),
        hint: str = "i",
        metadata: str = "",
    ) -> Iterator[Loop]:
        """A loop over `start <= index < stop`; a step is positive. The metadata is that of its way back."""
        counter = make_counter(self, start, stop, step)
        before, header = self.current_block, self.block(f"{hint}_loop")
        self.br(header)
        self.position(header)
        starts = counter.starts(start)
        counters = [self.phi(start.type, [(value, before)], hint) for value in starts]
        phis = [self.phi(value.type, [(value, before)]) for value in carried]
        body, end = self.block(f"{hint}_body"), self.block(f"{hint}_end")
        tests_after = runs_at_least_once(start, stop)
        if not tests_after:
            self.cond_br(counter.runs(self, counters), body, end)
            self.position(body)
        loop = Loop(counters[0], phis, phis, phis)
        yield loop
        following = counter.following(self, counters)
        for phi, value in zip([*counters, *phis], [*following, *loop.next_values], strict=True):
            self.add_incoming(phi, value, self.current_block)
        if tests_after:
            loop.results = loop.next_values
            self.cond_br(counter.runs(self, following), header, end, metadata)
        else:
            self.br(header, metadata)
        self.position(end)

    @contextmanager
    def if_(self, condition: Value, hint: str = "if") -> Iterator[Branch]:
        then, otherwise, end = (self.block(f"{hint}_{part}") for part in ("then", "else", "end"))
        self.cond_br(condition, then, otherwise)
        self.position(then)
        branch = Branch(self, otherwise, end)
        yield branch
        branch.finish()


def _tail(metadata: str) -> str:
    return f", {metadata}" if metadata else ""

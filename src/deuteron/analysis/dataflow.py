"""Sets of facts, followed through the ops of a function in order: a forward dataflow analysis.

    store %b                             {store}
    scf.if %c { load %b } else { }       {store, load}       the facts of both branches hold after it
    scf.for ... {                        {store, load, copy} an iteration may begin with what one has ended with:
      copy %b                                                repeated for what is new until nothing is
    }

What an op makes of the facts before it, and how they are called in the next iteration of a loop, the analysis says. It
makes of some and others together what it makes of each: with 40 stages there are 1,600 facts, found 40 at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region

from deuteron.ir.around import Loop

Fact = TypeVar("Fact")


class Forward(ABC, Generic[Fact]):
    """The few ops of a block that matter are collected once: loops are gone through several times."""

    def __init__(self) -> None:
        self._relevant: dict[Block, list[Operation]] = {}

    @abstractmethod
    def _matters(self, op: Operation) -> bool:
        """Whether an op makes a difference; those with regions do where an op in them does."""

    @abstractmethod
    def _op(self, op: Operation, facts: frozenset[Fact]) -> frozenset[Fact]:
        """What holds after an op that matters."""

    @abstractmethod
    def _carried(self, loop: Loop, facts: frozenset[Fact]) -> frozenset[Fact]:
        """What holds at the end of an iteration, as the next one has it."""

    def _block(self, block: Block, facts: frozenset[Fact]) -> frozenset[Fact]:
        if block not in self._relevant:
            self._relevant[block] = [op for op in block.ops if self._matters(op)]
        for op in self._relevant[block]:
            facts = self._op(op, facts)
        return facts

    def _any_of(self, regions: Iterable[Region], facts: frozenset[Fact]) -> frozenset[Fact]:
        """After ops of which one region is executed, or each by warps of its own; where there is one, maybe none is."""
        ends = [self._block(region.block, facts) for region in regions if region.blocks]
        return frozenset().union(*ends, facts if len(ends) < 2 else ())

    def _stable(self, loop: Loop, facts: frozenset[Fact]) -> frozenset[Fact]:
        """What an iteration may begin with, where the first one begins with these facts."""
        new = facts
        while new := self._carried(loop, self._body(loop, new)) - facts:
            facts |= new
        return facts

    def _body(self, loop: Loop, facts: frozenset[Fact]) -> frozenset[Fact]:
        for region in loop.regions:
            facts = self._block(region.block, facts)
        return facts

    def _at_end(self, loop: Loop, facts: frozenset[Fact]) -> frozenset[Fact]:
        """Where a loop ends, before an iteration that begins with these facts, or after the condition of one."""
        return self._block(loop.before_region.block, facts) if isinstance(loop, scf.WhileOp) else facts

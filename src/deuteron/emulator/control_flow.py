"""Control flow of a kernel: basic blocks, immediate post-dominators, live registers.

    flow = ControlFlow(function, steps)
    flow.meets[pc]         where the threads that a branch at `pc` separates meet again
    flow.live_at(pc)       the registers that may be read from `pc` on

Sets of blocks and registers are Python integers used as bit sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.emulator.step import Step
from deuteron.ptx.syntax import Function, Instruction, Symbol

_ENDS = ("ret", "exit", "trap")


def ends_thread(instruction: Instruction) -> bool:
    return instruction.opcode.split(".")[0] in _ENDS


def branch_target(function: Function, instruction: Instruction) -> int | None:
    """The index of the instruction that a `bra` goes to."""
    if instruction.opcode.split(".")[0] != "bra":
        return None
    target = instruction.operands[0]
    assert isinstance(target, Symbol)
    return function.labels[target.name]


class ControlFlow:
    """Blocks are numbered in text order; the exit is one more block after the last."""

    def __init__(self, function: Function, steps: Sequence[Step]):
        self.steps = steps
        self.function = function
        self.starts = self._block_starts()
        self.exit = len(self.starts)
        self.block_of = self._block_numbers()
        self.successors = [self._successors(block) for block in range(self.exit)]
        self.meets = self._meeting_points()
        self.live_in = self._live_registers()

    def block(self, number: int) -> range:
        """The instructions of a block."""
        return range(self.starts[number], self._end(number))

    def live_at(self, pc: int) -> tuple[int, ...]:
        block = self.block_of[pc]
        live = self._live_out(block)
        for index in range(self._end(block) - 1, pc - 1, -1):
            live = _before(self.steps[index], live)
        return tuple(index for index in range(live.bit_length()) if live >> index & 1)

    def _block_starts(self) -> list[int]:
        size = len(self.steps)
        starts = {0, *self.function.labels.values()}
        for index, step in enumerate(self.steps):
            if ends_thread(step.instruction) or branch_target(self.function, step.instruction) is not None:
                starts.add(index + 1)
        return sorted(start for start in starts if start < size)

    def _block_numbers(self) -> list[int]:
        numbers = []
        for block in range(self.exit):
            numbers.extend([block] * (self._end(block) - self.starts[block]))
        return numbers

    def _end(self, block: int) -> int:
        return self.starts[block + 1] if block + 1 < self.exit else len(self.steps)

    def _successors(self, block: int) -> list[int]:
        last = self.steps[self._end(block) - 1].instruction
        is_conditional = last.guard is not None
        target = branch_target(self.function, last)
        found = [self._block_at(target)] if target is not None else []
        if ends_thread(last):
            found = [self.exit]
        if is_conditional or not found:
            found.append(block + 1)
        return found

    def _block_at(self, pc: int) -> int:
        return self.block_of[pc] if pc < len(self.block_of) else self.exit

    def _meeting_points(self) -> dict[int, int | None]:
        """For the last instruction of each block with two successors: the immediate post-dominator's first."""
        dominators = self._post_dominators()
        meets: dict[int, int | None] = {}
        for block, successors in enumerate(self.successors):
            if len(successors) > 1:
                nearest = _nearest(dominators, block, self.exit)
                meets[self._end(block) - 1] = self.starts[nearest] if nearest != self.exit else None
        return meets

    def _post_dominators(self) -> list[int]:
        """For each block the bit set of blocks that every way to the exit passes, itself included."""
        everything = (1 << (self.exit + 1)) - 1
        sets = [everything] * self.exit + [1 << self.exit]
        changed = True
        while changed:
            changed = False
            for block in reversed(range(self.exit)):
                meet = everything
                for successor in self.successors[block]:
                    meet &= sets[successor]
                meet |= 1 << block
                changed |= meet != sets[block]
                sets[block] = meet
        return sets

    def _live_registers(self) -> list[int]:
        live_in = [0] * (self.exit + 1)
        self.live_in = live_in
        changed = True
        while changed:
            changed = False
            for block in reversed(range(self.exit)):
                live = self._live_out(block)
                for index in range(self._end(block) - 1, self.starts[block] - 1, -1):
                    live = _before(self.steps[index], live)
                changed |= live != live_in[block]
                live_in[block] = live
        return live_in

    def _live_out(self, block: int) -> int:
        live = 0
        for successor in self.successors[block]:
            live |= self.live_in[successor]
        return live


def _nearest(dominators: list[int], block: int, exit: int) -> int:
    """Of the strict post-dominators of a block, the one that all others post-dominate."""
    strict = dominators[block] & ~(1 << block)
    candidates = [b for b in range(exit + 1) if strict >> b & 1]
    return max(candidates, key=lambda b: dominators[b].bit_count(), default=exit)


def _before(step: Step, live: int) -> int:
    if not step.is_guarded:
        live &= ~step.destination_bits
    return live | step.source_bits

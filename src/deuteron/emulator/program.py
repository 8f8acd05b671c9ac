"""A kernel made ready to run: every instruction as a step, branches with the point where threads meet again.

program.steps[0].run(group)          executes the first instruction for all threads of the group
program.live_at(7)                   the registers that may still be read from there on
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deuteron.emulator.control_flow import ControlFlow
from deuteron.emulator.register_fences import check_register_fences
from deuteron.emulator.step import Step
from deuteron.emulator.variables import Layout
from deuteron.ptx.syntax import TYPE_BYTES, Function, Module


class Program:
    """The steps of an entry, its control flow, and where its variables lie."""

    def __init__(self, module: Module, function: Function, layout: Layout, steps: Sequence[Step]):
        self.module, self.function, self.layout, self.steps = module, function, layout, steps
        self.flow = ControlFlow(function, steps)
        check_register_fences(self.flow)
        self.shared_granule = min(_widths(function, "shared"), default=4)
        self.global_granule = min(_widths(function, "global"), default=4)
        self._live: dict[int, tuple[int, ...]] = {}

    def live_at(self, pc: int) -> tuple[int, ...]:
        """The registers that may still be read after coming to `pc`."""
        if pc not in self._live:
            self._live[pc] = self.flow.live_at(pc)
        return self._live[pc]

    def meet_of(self, pc: int) -> int | None:
        """Where threads that diverge at the branch `pc` meet again; None: nowhere before the exit."""
        return self.flow.meets.get(pc)


def _widths(function: Function, space: str) -> Iterator[int]:
    """Bytes of the narrow accesses that may go to a kind of memory."""
    elsewhere = {"global", "shared", "param", "const", "local"} - {space}
    for instruction in function.instructions:
        name, *modifiers = instruction.opcode.split(".")
        spaces = {modifier.split("::")[0] for modifier in modifiers}
        if name in ("ld", "st", "atom", "red") and not elsewhere & spaces:
            yield min(TYPE_BYTES.get(modifiers[-1], 4), 4)

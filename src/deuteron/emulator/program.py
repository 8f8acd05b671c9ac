"""A kernel made ready to run: every instruction as a step, branches with the point where threads meet again.

program = load_program(ptx, "add")
program.steps[0].run(group)          executes the first instruction for all threads of the group
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from deuteron.emulator.control_flow import ControlFlow
from deuteron.emulator.decoder import decode
from deuteron.emulator.inline_calls import inline_calls
from deuteron.emulator.parser import Module, parse
from deuteron.emulator.parser.syntax import TYPE_BYTES, Function
from deuteron.emulator.register_fences import check_register_fences
from deuteron.emulator.variables import Layout
from deuteron.errors import UsageError


class Program:
    """The steps of an entry, its control flow, and where its variables lie."""

    def __init__(self, module: Module, name: str):
        self.module = module
        self.function = inline_calls(module, module.functions[name])
        self.function.registers.append("pred")
        self.function.register_names.append("the carry flag")
        self.layout = Layout(module, self.function)
        self.steps = [decode(self.function, self.layout, pc) for pc in range(len(self.function.instructions))]
        self.flow = ControlFlow(self.function, self.steps)
        check_register_fences(self.flow)
        self.shared_granule = min(_shared_widths(self.function), default=4)
        self._live: dict[int, tuple[int, ...]] = {}

    def live_at(self, pc: int) -> tuple[int, ...]:
        """The registers that may still be read after coming to `pc`."""
        if pc not in self._live:
            self._live[pc] = self.flow.live_at(pc)
        return self._live[pc]

    def meet_of(self, pc: int) -> int | None:
        """Where threads that diverge at the branch `pc` meet again; None: nowhere before the exit."""
        return self.flow.meets.get(pc)


def _shared_widths(function: Function) -> Iterator[int]:
    """Bytes of the narrow accesses that may go to shared memory."""
    for instruction in function.instructions:
        name, *modifiers = instruction.opcode.split(".")
        if name in ("ld", "st", "atom", "red") and not {"global", "param", "const", "local"} & set(modifiers):
            yield min(TYPE_BYTES.get(modifiers[-1], 4), 4)


@lru_cache(maxsize=64)
def load_program(ptx: str, name: str | None) -> Program:
    """The program of a kernel (None: the only one in the module)."""
    module = parse(ptx)
    entries = [f.name for f in module.functions.values() if f.is_entry]
    if name is None and len(entries) == 1:
        name = entries[0]
    if name not in entries:
        raise UsageError(f"no kernel '{name}' in this PTX: it has {', '.join(entries) or 'none'}")
    return Program(module, name)

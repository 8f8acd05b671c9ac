"""Turns one instruction into a step: looks up its rule, lets it make the closure, adds the guard.

    decode(function, layout, 7)        Step(run=<closure>, sources={1, 2}, destinations={3})

There are two kinds of rule. A *pure* rule makes `run(group)`, which only writes registers; under a guard it is run
for all threads and the results are merged. An *effect* rule makes `run(group, mask)`, mask None for all threads.
"""

from __future__ import annotations

from deuteron.emulator.faults import UnknownInstruction
from deuteron.emulator.instructions import RULES
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.machine.group import Group
from deuteron.emulator.step import Run, Step
from deuteron.emulator.types import KINDS
from deuteron.emulator.variables import Layout
from deuteron.ptx.syntax import Function


def decode(function: Function, layout: Layout, pc: int) -> Step:
    """The step of the instruction at `pc`; raises UnknownInstruction, which names the line."""
    instruction = function.instructions[pc]
    rule, modifiers = _find_rule(instruction.opcode)
    if rule is None:
        raise UnknownInstruction("unknown instruction", instruction.line, instruction.text)
    d = Decoding(function, layout, pc, modifiers)
    run = rule.make(d)
    if d.modifiers:
        unknown = ", ".join(f"'.{name}'" for name in d.modifiers)
        raise UnknownInstruction(f"unknown modifier {unknown}", instruction.line, instruction.text)
    guard = d.guard()
    if rule.is_pure:
        run = run if guard is None else _guard_pure(run, guard, tuple(d.destinations))
    else:
        run = _guard_effect(run, guard)
    sources, destinations = frozenset(d.sources), frozenset(d.destinations)
    is_guarded = instruction.guard is not None
    return Step(
        instruction,
        run,
        sources,
        destinations,
        function.register_names,
        is_guarded,
        rule.allows_in_flight,
        d.parts,
        d.low_bytes,
    )


def _find_rule(opcode: str):
    """The rule with the longest name that the opcode starts with, and the modifiers after it."""
    parts = opcode.split(".")
    kind = KINDS.get(parts[-1], "")
    for size in range(len(parts), 0, -1):
        name = ".".join(parts[:size])
        rule = RULES.get((name, kind)) or RULES.get((name, ""))
        if rule is not None:
            return rule, parts[size:]
    return None, []


def _guard_effect(run, guard) -> Run:
    if guard is None:
        return lambda group: run(group, None)

    def guarded(group: Group) -> int | None:
        mask = guard(group)
        if mask.all():
            return run(group, None)
        return run(group, mask) if mask.any() else None

    return guarded


def _guard_pure(run: Run, guard, destinations: tuple[int, ...]) -> Run:
    def guarded(group: Group) -> None:
        mask = guard(group)
        if mask.all():
            run(group)
        elif mask.any():
            registers = group.registers
            before = [registers[index] for index in destinations]
            run(group)
            for index, old in zip(destinations, before, strict=True):
                group.merge(index, mask, old)

    return guarded

"""Calls of functions that the module defines, replaced by copies of their instructions.

    call.uni (retval0), square, (param0);      ->   the body of `square`; it reads `param0`, writes `retval0`,
                                                    and its `ret` branches to the instruction after it

So a program is one list of instructions, and divergence in a callee is that of the caller. Recursion is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from deuteron.emulator.faults import UnknownInstruction
from deuteron.ptx.syntax import (
    Function,
    Instruction,
    Memory,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)


def inline_calls(module: Module, function: Function, callers: tuple[str, ...] = ()) -> Function:
    """The function with every call of a function of the module inlined, callees first."""
    result = dataclasses.replace(function, registers=list(function.registers), instructions=[], labels={})
    result.register_names = list(function.register_names)
    result.variables = dict(function.variables)
    starts = []
    for instruction in function.instructions:
        starts.append(len(result.instructions))
        callee = _callee(module, instruction)
        if callee is None:
            result.instructions.append(instruction)
            continue
        if callee.name in (*callers, function.name):
            raise UnknownInstruction("calls itself", instruction.line, instruction.text)
        _Inlining(result, instruction, inline_calls(module, callee, (*callers, function.name))).insert()
    starts.append(len(result.instructions))
    inlined = {name: index for name, index in result.labels.items() if name not in function.labels}
    result.labels = {**inlined, **{name: starts[index] for name, index in function.labels.items()}}
    return result


def _callee(module: Module, instruction: Instruction) -> Function | None:
    if not instruction.opcode.startswith("call"):
        return None
    name = next(operand.name for operand in instruction.operands if isinstance(operand, Symbol))
    return module.functions.get(name)


class _Inlining:
    """One call site: how the callee's registers, labels and variables are called in the caller."""

    def __init__(self, caller: Function, call: Instruction, callee: Function):
        self.caller, self.call, self.callee = caller, call, callee
        self.base = len(caller.registers)
        self.site = len(caller.instructions)
        self.symbols = self._names()
        self.end = f"end@{self.site}"

    def insert(self) -> None:
        caller, callee = self.caller, self.callee
        caller.registers += callee.registers
        caller.register_names += callee.register_names
        for name, variable in callee.variables.items():
            caller.variables[self.symbols[name]] = dataclasses.replace(variable, name=self.symbols[name])
        if self.call.guard is not None:
            caller.instructions.append(self._branch(self.call, self.call.guard, not self.call.guard_negated))
        start = len(caller.instructions)
        caller.labels.update({self.symbols[name]: start + index for name, index in callee.labels.items()})
        caller.instructions += [self._copy(instruction) for instruction in callee.instructions]
        caller.labels[self.end] = len(caller.instructions)

    def _names(self) -> dict[str, str]:
        lists = [operand for operand in self.call.operands if isinstance(operand, Vector)]
        first_argument = 1 if self.callee.returns else 0
        results = lists[0].elements if self.callee.returns else ()
        arguments = lists[first_argument].elements if len(lists) > first_argument else ()
        formal = [*self.callee.returns, *self.callee.params]
        names = {f.name: actual.name for f, actual in zip(formal, (*results, *arguments), strict=True)}
        own = [*self.callee.variables, *self.callee.labels]
        return {**names, **{name: f"{name}@{self.site}" for name in own}}

    def _copy(self, instruction: Instruction) -> Instruction:
        guard = None if instruction.guard is None else Register(instruction.guard.index + self.base)
        if instruction.opcode.split(".")[0] == "ret":
            return self._branch(instruction, guard, instruction.guard_negated)
        operands = tuple(_rename(operand, self.base, self.symbols) for operand in instruction.operands)
        return dataclasses.replace(instruction, operands=operands, guard=guard)

    def _branch(self, instruction: Instruction, guard: Register | None, negated: bool) -> Instruction:
        """A branch to the end of the callee."""
        return dataclasses.replace(
            instruction, opcode="bra", operands=(Symbol(self.end),), guard=guard, guard_negated=negated
        )


def _rename(operand: Operand, base: int, symbols: Mapping[str, str]) -> Operand:
    """The operand of a callee in the caller: registers come after the caller's, symbols are renamed."""
    if isinstance(operand, Register):
        return Register(operand.index + base)
    if isinstance(operand, Symbol):
        return Symbol(symbols.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, Memory):
        coordinates = _rename(operand.coordinates, base, symbols)
        return Memory(_rename(operand.base, base, symbols), operand.offset, coordinates)
    if isinstance(operand, Vector):
        return Vector(tuple(_rename(element, base, symbols) for element in operand.elements))
    if isinstance(operand, Pair):
        return Pair(_rename(operand.first, base, symbols), _rename(operand.second, base, symbols))
    if isinstance(operand, Negated):
        return Negated(_rename(operand.operand, base, symbols))
    return operand

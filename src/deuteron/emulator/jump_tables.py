"""Jumps by an index, which LLVM makes of chains of comparisons: a comparison and a branch for each target.

    T: .branchtargets A, B, C;          setp.eq.b32 p, %r1, 0;    @p bra A;
    brx.idx %r1, T;                ->   setp.eq.b32 p, %r1, 1;    @p bra B;
                                        bra C;

So every branch has one target, and threads that took different ones meet as after any branch. Where an index goes that
is not in the table is undefined in PTX; here it is the last target.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from deuteron.emulator.faults import UnknownInstruction
from deuteron.ptx.syntax import Function, Immediate, Instruction, Register


def expand_jump_tables(function: Function) -> Function:
    """The function without `brx`."""
    result = dataclasses.replace(function, registers=list(function.registers), instructions=[], labels={})
    result.register_names = list(function.register_names)
    starts = []
    for instruction in function.instructions:
        starts.append(len(result.instructions))
        result.instructions += _branches(result, instruction) if _is_jump(instruction) else [instruction]
    starts.append(len(result.instructions))
    result.labels = {name: starts[index] for name, index in function.labels.items()}
    return result


def _is_jump(instruction: Instruction) -> bool:
    return instruction.opcode.startswith("brx.")


def _branches(function: Function, jump: Instruction) -> Iterator[Instruction]:
    if jump.guard is not None:
        raise UnknownInstruction("a jump by an index has no guard", jump.line, jump.text)
    index, targets = jump.operands
    predicate = Register(len(function.registers))
    function.registers.append("pred")
    function.register_names.append(f"the choice of {jump.text}")
    *firsts, last = targets.elements
    for number, target in enumerate(firsts):
        yield dataclasses.replace(jump, opcode="setp.eq.b32", operands=(predicate, index, Immediate(number)))
        yield dataclasses.replace(jump, opcode="bra", operands=(target,), guard=predicate)
    yield dataclasses.replace(jump, opcode="bra", operands=(last,))

"""Which wgmma lack a `wgmma.fence`: registers that other instructions used since the last one.

    mov.b32 %r1, 0;  wgmma.mma_async {%r1, ...}, ...       faulty
    wgmma.fence;  wgmma.mma_async {%r1, ...}, ...          right, and so is the next wgmma of the same shape

The rule of the PTX manual (wgmma.fence): before the first wgmma of a warpgroup, and between any other use of a
register, reading or writing, and a wgmma that has it in its accumulators or in A. Products of one shape need none
between them. Computed once for a program, over all ways through it.
"""

from __future__ import annotations

from collections.abc import Iterable

from deuteron.emulator.control_flow import ControlFlow
from deuteron.emulator.faults import Fault
from deuteron.emulator.step import Step
from deuteron.ptx.syntax import Instruction, Register, Vector

# What was used since the last fence, as bit sets: by wgmma of each shape, and by other instructions.
Used = dict[str, int]
_OTHERS = ""


def check_register_fences(flow: ControlFlow) -> None:
    """Make every wgmma that lacks a fence raise a fault when it runs."""
    wgmmas = {pc: _registers(step.instruction) for pc, step in enumerate(flow.steps) if _is_wgmma(step)}
    if not wgmmas:
        return
    everything = _bits(index for registers in wgmmas.values() for index in registers)
    entry = _solve(flow, everything)
    for block, used in enumerate(entry):
        for pc in flow.block(block):
            step = flow.steps[pc]
            if pc in wgmmas:
                _forbid(step, wgmmas[pc] & _set_bits(_unordered(used, _shape(step.instruction))))
            used = _after(step, used, everything)


def _solve(flow: ControlFlow, everything: int) -> list[Used]:
    """What may have been used at the start of each block; at the start of the kernel everything."""
    entry: list[Used] = [{} for _ in range(flow.exit)]
    entry[0] = {_OTHERS: everything}
    pending = list(range(flow.exit))
    while pending:
        block = pending.pop(0)
        used = entry[block]
        for pc in flow.block(block):
            used = _after(flow.steps[pc], used, everything)
        for successor in flow.successors[block]:
            if successor < flow.exit and _join(entry[successor], used) != entry[successor]:
                entry[successor] = _join(entry[successor], used)
                pending.append(successor)
    return entry


def _after(step: Step, used: Used, everything: int) -> Used:
    instruction = step.instruction
    if instruction.opcode.startswith("wgmma.fence"):
        return {}
    key = _shape(instruction) if _is_wgmma(step) else _OTHERS
    registers = _bits(_accumulators(instruction)) if _is_wgmma(step) else step.source_bits | step.destination_bits
    return _join(used, {key: registers & everything}) if registers & everything else used


def _join(a: Used, b: Used) -> Used:
    return {key: a.get(key, 0) | b.get(key, 0) for key in a.keys() | b.keys()}


def _unordered(used: Used, shape: str) -> int:
    """What a wgmma of this shape may not use."""
    bits = 0
    for key, registers in used.items():
        bits |= registers if key != shape else 0
    return bits


def _forbid(step: Step, registers: set[int]) -> None:
    if not registers:
        return
    names = ", ".join(sorted(step.names[index] for index in registers)[:4])
    message = f"uses registers that other instructions used since the last wgmma.fence: {names}"

    def run(group):
        raise Fault("missing wgmma.fence", message, group.threads)

    step.run = run


def _is_wgmma(step: Step) -> bool:
    return step.instruction.opcode.startswith("wgmma.mma_async")


def _shape(instruction: Instruction) -> str:
    return next(part for part in instruction.opcode.split(".") if part.startswith("m64"))


def _accumulators(instruction: Instruction) -> set[int]:
    return _of_vector(instruction.operands[0])


def _registers(instruction: Instruction) -> set[int]:
    """The accumulators, and A where it is in registers."""
    return _accumulators(instruction) | _of_vector(instruction.operands[1])


def _of_vector(operand) -> set[int]:
    elements = operand.elements if isinstance(operand, Vector) else ()
    return {element.index for element in elements if isinstance(element, Register)}


def _bits(indices: Iterable[int]) -> int:
    return sum(1 << index for index in set(indices))


def _set_bits(bits: int) -> set[int]:
    return {index for index in range(bits.bit_length()) if bits >> index & 1}

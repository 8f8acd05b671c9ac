"""cp.async: copies of 4, 8 or 16 bytes from global to shared memory that a thread waits for in groups.

    cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;      %r2 of the 16 bytes are read, the rest is zero

Both the read and the write happen at some moment before the end of the wait.
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.asynchronous.groups import Operation
from deuteron.emulator.checks.shared_checks import GENERIC
from deuteron.emulator.faults import blaming
from deuteron.emulator.instructions.accesses import check_alignment, count_shared
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.machine.group import Group
from deuteron.ptx.syntax import Register

RULES = Rules()


@RULES.effect("cp.async.ca", "cp.async.cg")
def decode_copy(d: Decoding):
    d.choice("shared", "shared::cta")
    d.choice("global")
    has_policy = (
        d.flag(*[name for name in d.modifiers if name.startswith("L2::")]) and "cache_hint" in d.instruction.opcode
    )
    destination, source = d.address(0), d.address(1)
    size = d.immediate(2)
    if size not in (4, 8, 16) or (size != 16 and ".cg" in d.instruction.opcode):
        raise d.error(f"cannot copy {size} bytes")
    read_size = _source_size(d, size, has_policy)
    label = f"the cp.async of PTX line {d.instruction.line}"

    def run(group, mask):
        chosen = np.arange(group.size) if mask is None else np.flatnonzero(mask)
        if len(chosen):
            copy = Copy(group, d.pc, chosen, destination(group), source(group), size, read_size(group), label)
            copy.issue()

    return run


def _source_size(d: Decoding, size: int, has_policy: bool):
    if len(d.operands) - has_policy < 4:
        return lambda group: np.full(group.size, size)
    operand = d.operand(3)
    if isinstance(operand, Register) and d.function.registers[operand.index] == "pred":
        ignore = d.get(operand, "pred")
        return lambda group: np.where(ignore(group), 0, size)
    read = d.get(operand, "u32")
    return lambda group: np.minimum(read(group), np.uint32(size)).astype(np.int64)


class Copy:
    """One cp.async in flight."""

    def __init__(self, group: Group, pc: int, chosen, destination, source, size: int, read_size, label: str):
        self.wave = wave = group.wave
        self.threads = group.threads[chosen]
        self.size = size
        self.source = source[chosen]
        self.read_size = read_size[chosen]
        self.label = label
        with blaming(self.threads):
            check_alignment(destination[chosen], size)
            slots = self.threads // wave.block_size
            self.flat = wave.shared.flat_address(slots, destination[chosen], size)
            self._check_source()

        if wave.recorder is not None:
            group.pc = pc
            reads = np.flatnonzero(self.read_size)
            wave.recorder.global_access(pc, wave.warp_of(self.threads[reads]), self.source[reads], size)
            count_shared(group, self.threads, self.flat, size)

    def issue(self) -> None:
        checks = self.wave.checks
        if checks is not None:
            granules = checks.granules(self.flat, self.size)
            with blaming(self.threads):
                checks.check_overwrite(self.threads, granules)
            checks.flight[granules] = checks.new_label(self.label)
        state = self.wave.asynchronous
        state.start(state.copies, Operation(self.threads, self.perform, self.finish, self.label))

    def perform(self, chosen: np.ndarray) -> None:
        """Read and write for some of the threads."""
        data = self._read(chosen)
        self.wave.shared.store_flat(self.flat[chosen], data)
        self.wave.num_events += 1

    def finish(self, chosen: np.ndarray) -> None:
        """Some of the threads have waited."""
        checks = self.wave.checks
        if checks is not None:
            granules = checks.granules(self.flat[chosen], self.size)
            checks.flight[granules] = 0
            checks.record_write(self.threads[chosen], granules, GENERIC)

    def _check_source(self) -> None:
        """Bounds and alignment, at the instruction that is at fault."""
        for count in np.unique(self.read_size[self.read_size > 0]).tolist():
            where = np.flatnonzero(self.read_size == count)
            with blaming(where):
                check_alignment(self.source[where], self.size)
                self.wave.memory.load(self.source[where], 1, count)

    def _read(self, chosen: np.ndarray) -> np.ndarray:
        """[copies, words of 4 bytes]."""
        result = np.zeros((len(chosen), self.size // 4), np.uint32)
        sizes, source = self.read_size[chosen], self.source[chosen]
        full = sizes == self.size
        if full.any():
            result[full] = self.wave.memory.load(source[full], 4, self.size // 4)
        for index in np.flatnonzero((sizes > 0) & ~full):
            count = int(sizes[index])
            result.view(np.uint8)[index, :count] = self.wave.memory.load(source[index : index + 1], 1, count)[0]
        return result


@RULES.effect("cp.async.commit_group")
def decode_commit(d: Decoding):
    return lambda group, mask: group.wave.asynchronous.copies.commit(
        group.threads if mask is None else group.threads[mask]
    )


@RULES.effect("cp.async.wait_group")
def decode_wait(d: Decoding):
    keep = d.immediate(0)
    return lambda group, mask: group.wave.asynchronous.copies.wait(
        group.threads if mask is None else group.threads[mask], keep
    )


@RULES.effect("cp.async.wait_all")
def decode_wait_all(d: Decoding):
    return lambda group, mask: group.wave.asynchronous.copies.wait(
        group.threads if mask is None else group.threads[mask], -1
    )

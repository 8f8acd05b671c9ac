"""What a kernel costs by source line: instructions, global memory transactions, bank conflicts, barriers.

    report = profile(ptx, "softmax", grid=(4,), block=(128,), args=(x, out, 777))
    print(report.table())
    print(report.annotated())        the source with the numbers in front of each line

Counts are for warps, as a GPU issues them: one instruction of a warp is one, whatever its mask. A global transaction
is a sector of 32 bytes; `ideal` is the fewest sectors that hold the bytes each warp asks for.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from deuteron.emulator.launch import Dim, Launch, as_dim
from deuteron.emulator.loading import load_program
from deuteron.emulator.machine.group import Group
from deuteron.emulator.options import EmulatorOptions
from deuteron.emulator.program import Program
from deuteron.ptx.syntax import Instruction

SECTOR = 32
NO_LINE = ("", 0)
NUM_BANKS = 32
_BARRIERS = ("bar", "barrier")


@dataclass
class Counts:
    """The numbers of an instruction, a line or a kernel."""

    instructions: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared_wavefronts: int = 0
    bank_conflicts: int = 0
    barriers: int = 0

    def add(self, other: Counts) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Profile:
    """Counts by instruction while a launch runs; by source line afterwards."""

    def __init__(self, program: Program):
        self.program = program
        self.by_step = [Counts() for _ in program.steps]

    def count(self, pc: int, group: Group) -> None:
        counts = self.by_step[pc]
        num_warps = len(group.warp_numbers)
        counts.instructions += num_warps
        counts.barriers += num_warps * self._is_barrier(self.program.steps[pc].instruction)

    def global_access(self, pc: int, warps: np.ndarray, address: np.ndarray, size: int) -> None:
        counts = self.by_step[pc]
        first, last = address // np.uint64(SECTOR), (address + np.uint64(size - 1)) // np.uint64(SECTOR)
        sectors = np.concatenate([np.stack([warps, first], 1), np.stack([warps, last], 1)])
        counts.sectors += len(np.unique(sectors, axis=0))
        for warp in np.unique(warps):
            num_bytes = len(np.unique(address[warps == warp])) * size
            counts.ideal_sectors += -(-num_bytes // SECTOR)

    def shared_access(self, pc: int, warps: np.ndarray, lanes: np.ndarray, offset: np.ndarray, size: int) -> None:
        """Wide accesses go in phases of as many lanes as 128 bytes serve; in a phase a bank gives one word."""
        counts = self.by_step[pc]
        lanes_of_phase = max(NUM_BANKS * 4 // max(size, 4), 1)
        phases = warps * 32 + lanes // lanes_of_phase
        words = (offset[:, None] + np.arange(0, max(size, 4), 4)) // 4
        for phase in np.unique(phases):
            distinct = np.unique(words[phases == phase])
            wavefronts = int(np.bincount(distinct % NUM_BANKS).max())
            counts.shared_wavefronts += wavefronts
            counts.bank_conflicts += wavefronts - 1

    @property
    def total(self) -> Counts:
        return _sum(self.by_step)

    def lines(self) -> dict[tuple[str, int], Counts]:
        """Counts by file and line; what has no source line is under NO_LINE."""
        result: dict[tuple[str, int], Counts] = {}
        for step, counts in zip(self.program.steps, self.by_step, strict=True):
            source = step.instruction.source
            key = (source.file, source.line) if source else NO_LINE
            result.setdefault(key, Counts()).add(counts)
        return {key: counts for key, counts in sorted(result.items()) if counts.instructions}

    def table(self) -> str:
        """One row for each source line that was executed, and their sum."""
        lines = self.lines()
        names = [f"{file.rsplit('/', 1)[-1]}:{line}" if file else "no source line" for file, line in lines]
        rows = list(zip(names, lines.values(), strict=True))
        width = max(len(name) for name, _ in [*rows, ("total", None)])
        return "\n".join([_heading(width), *(_row(name, c, width) for name, c in [*rows, ("total", self.total)])])

    def annotated(self) -> str:
        """The lines of each source file from the first to the last executed one, with their numbers in front."""
        lines = self.lines()
        parts = []
        for file in sorted({file for file, _ in lines if file}):
            numbers = [line for name, line in lines if name == file]
            parts.append(f"{file}\n{_heading(0)}")
            for line in range(min(numbers), max(numbers) + 1):
                numbers_text = _row("", lines.get((file, line), Counts()), 0)
                parts.append(f"{numbers_text}  {line:5} {linecache.getline(file, line).rstrip()}")
        return "\n".join(parts)

    @staticmethod
    def _is_barrier(instruction: Instruction) -> bool:
        name = instruction.opcode
        return name.split(".")[0] in _BARRIERS and not name.startswith("bar.warp")


def profile(
    ptx: str,
    kernel_name: str | None,
    grid: Dim,
    block: Dim,
    shared_bytes: int = 0,
    args: Sequence[object] = (),
    cluster: Dim | None = None,
    options: EmulatorOptions | None = None,
) -> Profile:
    """Run a kernel as `launch` does, and count."""
    program = load_program(ptx, kernel_name)
    run = Launch(program, as_dim(grid), as_dim(block), shared_bytes, args, cluster, options or EmulatorOptions())
    run.state.recorder = counts = Profile(program)
    run.run()
    return counts


def _sum(counts: Sequence[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        total.add(one)
    return total


def _heading(width: int) -> str:
    names = ("instructions", "sectors", "ideal", "wavefronts", "conflicts", "barriers")
    return " " * width + "".join(f"{name:>13}" for name in names)


def _row(name: str, counts: Counts, width: int) -> str:
    values = (getattr(counts, field.name) for field in fields(counts))
    return name.ljust(width) + "".join(f"{value or '':>13}" for value in values)

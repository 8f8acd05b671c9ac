"""One access of a few lanes: which elements, where its code goes, and what the CPU has instructions for."""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.backend.cpu.context import Context
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import byte_width
from deuteron.machine.cpu import CPU


def has_masked_moves(target: CPU, num_bytes: int) -> bool:
    """Whether a CPU loads and stores elements of so many bytes under a mask."""
    return target.vector_bits >= 256 and (num_bytes >= 4 or target.masks_narrow)


@dataclass(frozen=True)
class Access:
    """One access of `lanes` elements of a memory type; code goes to the level's block."""

    ctx: Context
    level: int
    lanes: int
    type: str

    @property
    def b(self) -> Builder:
        return self.ctx.emitter.at(self.level)

    @property
    def num_bytes(self) -> int:
        return byte_width(self.type)

    @property
    def has_masked_moves(self) -> bool:
        """Whether the CPU loads and stores such elements under a mask."""
        return has_masked_moves(self.ctx.target, self.num_bytes)

    @property
    def has_free_masks(self) -> bool:
        """Whether a masked move takes as many instructions as a plain one."""
        return self.has_masked_moves and self.ctx.target.vector_bits >= 512

    @property
    def is_far_apart(self) -> bool:
        """Whether the next access is somewhere else."""
        return self.ctx.nest_state.vectorisation.is_far_apart

    @property
    def has_gathers(self) -> bool:
        """Whether there is an instruction that gathers such elements, which costs less than a branch for each lane."""
        return self.num_bytes >= 4 and self.ctx.target.vector_bits >= 512

    @property
    def has_fast_gathers(self) -> bool:
        """Whether one of them, or of the words that hold them, takes less time than finding out whether they lie close
        together.
        """
        return (self.has_gathers or self.has_gathers_of_words) and self.ctx.target.gathers_fast

    @property
    def has_gathers_of_words(self) -> bool:
        """Whether elements are narrow, and the words that hold so many of them are gathered by few instructions."""
        return self.ctx.target.vector_bits >= 512 and self.lanes > 1

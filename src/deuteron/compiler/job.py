"""A compile that is asked for, and not yet done: what `ahead.py` gives to processes.

job = Job(backend, ASTSource(add, {"x": "*fp32"}), target, options)
job.is_kept() or job.keep(...)         whether the cache has it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deuteron.backend import Backend
from deuteron.backend.stage import Unit
from deuteron.compiler.cache import Entry
from deuteron.compiler.driver import begin_walk, unit_and_key
from deuteron.compiler.kept import KeptKernel
from deuteron.compiler.source import ASTSource
from deuteron.options import Target


@dataclass(frozen=True)
class Job:
    """A kernel to be compiled, as `compile_with` is given it."""

    backend: Backend
    source: ASTSource
    target: Target
    options: Any

    @property
    def key(self) -> str:
        """Its key in the cache."""
        return unit_and_key(self.backend, self.source, self.target, self.options)[1]

    def is_kept(self) -> bool:
        """Whether it is in the cache."""
        return self._kept().load() is not None

    def _kept(self) -> KeptKernel:
        return KeptKernel(self.key, None)

    def keep(self, entry: Entry) -> None:
        self._kept().store(entry)

    def lower(self) -> tuple[str, Unit]:
        """The tile IR as text, and what is known of the kernel; raises what a compile would."""
        unit, _ = unit_and_key(self.backend, self.source, self.target, self.options)
        walk = begin_walk(self.backend, self.source, unit)
        return self.backend.stages[0].text(walk.products[None]), walk.unit

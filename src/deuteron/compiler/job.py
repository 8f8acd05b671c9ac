"""A compile that is asked for, and not yet done: what `ahead.py` gives to processes.

job = Job(backend, ASTSource(add, {"x": "*fp32"}), target, options)
job.is_kept() or job.keep(...)         whether the cache has it
codes({"a": job, "b": other})          what tells whether they would make the same code
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from deuteron.backend import Backend
from deuteron.backend.stage import Unit
from deuteron.compiler.cache import Entry
from deuteron.compiler.driver import begin_walk, unit_and_key
from deuteron.compiler.kept import KeptKernel
from deuteron.compiler.source import ASTSource
from deuteron.errors import DeuteronError
from deuteron.options import Target, as_read

Name = TypeVar("Name", bound=Hashable)


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


def codes(jobs: Mapping[Name, Job]) -> dict[Name, Hashable]:
    """For each job something that is equal for those that make the same code.

    Where the options differ by what the target does not read, the tile IR tells whether the kernel asks for them.
    """
    from deuteron.frontend.context import Asked  # heavy

    read = {name: (job.source.fingerprint(), job.target, as_read(job.options)) for name, job in jobs.items()}
    counts = Counter(read.values())
    texts: dict[Hashable, Hashable] = {}
    for name, job in jobs.items():
        asked = (read[name], Asked.of(job.options))
        if counts[read[name]] > 1 and asked not in texts:
            texts[asked] = _tile_ir(job) or asked
    return {name: (read[name], texts.get((read[name], Asked.of(job.options)))) for name, job in jobs.items()}


def _tile_ir(job: Job) -> str | None:
    """None where it is refused, by words that may depend on the options."""
    try:
        return job.lower()[0]
    except DeuteronError:
        return None

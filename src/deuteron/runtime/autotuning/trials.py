"""The trials of an autotuner: configurations are compiled, in processes where that is worth it, then timed in turn.

    trials = Trials("scale", bench, jobs)           bench(config, best, takes_spills) returns an Outcome, or raises
    trials.run(configs)
    trials.outcomes         {Config(BLOCK: 128): Outcome([0.5, 0.4, 0.6]), Config(BLOCK: 8192): Outcome(failure="...")}
    trials.errors           {Config(BLOCK: 8192): OutOfResources("...")}

A configuration that cannot be compiled or launched is passed over, and so is one that spills, unless all that can be
run do. What else is raised ends the trials: a defect of Deuteron, an error of the program, an interrupt, strictness;
`outcomes` has what was timed before. On a terminal a bar shows how far it is, and the fastest so far.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deuteron.errors import (
    CompilationError,
    CompilerDied,
    DeuteronError,
    InternalError,
    LaunchError,
    OutOfResources,
    Spills,
    StrictError,
    UsageError,
)
from deuteron.progress import ProgressBar
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.autotuning.tuned_file import Outcome
from deuteron.settings import settings

Bench = Callable[[Config, float, bool], Outcome]
# What makes a configuration one that cannot be run. A defect of Deuteron (InternalError) is not passed over.
SKIPPED = (CompilationError, CompilerDied, OutOfResources, LaunchError, Spills, UsageError)
# Of these the configuration is at fault, whatever the arguments and the state of the device were.
LASTING = (CompilationError, OutOfResources, Spills)


class Trials:
    """The outcomes of some configurations. `jobs` are the compiles of those that a compiler in a process can do."""

    def __init__(self, kernel: str, bench: Bench, jobs: Mapping[Config, Any], known: Mapping[Config, Outcome]):
        self._kernel, self._bench, self._jobs = kernel, bench, jobs
        self.outcomes: dict[Config, Outcome] = dict(known)
        self.errors: dict[Config, DeuteronError] = {}
        self._died: dict[Config, DeuteronError] = {}

    @property
    def best(self) -> Config | None:
        """The fastest; None where none can be run."""
        timed = [config for config, outcome in self.outcomes.items() if outcome.ms is not None]
        return min(timed, key=lambda config: self.outcomes[config].time) if timed else None

    def run(self, configs: Sequence[Config]) -> None:
        """Time them all: one of those that are the same kernel, on a target that does not read what they differ by."""
        if not configs:
            return
        alike = self._alike(configs)
        tried = list(dict.fromkeys(alike.values()))
        with ProgressBar(f"autotuning {self._kernel}") as progress:
            progress.start(len(tried))
            self._compile_ahead(tried, progress)
            spilling = [config for config in tried if self._try(config, False, progress)]
            if self.best is None:
                for config in spilling:
                    self._try(config, True, progress)
        for found in (self.outcomes, self.errors):
            found.update({config: found[first] for config, first in alike.items() if first in found})

    def _alike(self, configs: Sequence[Config]) -> dict[Config, Config]:
        """For every configuration the first one that is launched in the same way and makes the same code."""
        from deuteron.compiler.job import codes  # deferred: a launch does not need it

        made = codes({config: self._jobs[config] for config in configs if config in self._jobs})
        first: dict[Any, Config] = {}
        return {config: first.setdefault((made.get(config, config), config.pre_hook), config) for config in configs}

    def _try(self, config: Config, takes_spills: bool, progress: ProgressBar) -> bool:
        """Time one; whether it was passed over as it spills."""
        best = self.outcomes[self.best].time if self.best else float("inf")
        try:
            if config in self._died:
                raise self._died[config]
            self.outcomes[config] = self._bench(config, best, takes_spills)
        except StrictError:
            raise
        except SKIPPED as error:
            self.errors[config] = error
            self.outcomes[config] = Outcome(failure=str(error), is_lasting=isinstance(error, LASTING))
            progress.say(f"{self._kernel}: skipped {config}: {error.message}")
            return isinstance(error, Spills)
        finally:
            progress.advance(self._shown_best())
        return False

    def _shown_best(self) -> str:
        return f"best {self.outcomes[self.best].time:.4g} ms: {self.best}" if self.best else ""

    def _compile_ahead(self, configs: Iterable[Config], progress: ProgressBar) -> None:
        """Compile what is not in the cache, in processes, if the first of them takes so long that it pays."""
        from deuteron.compiler import ahead  # deferred: a launch does not need it

        if not ahead.can_compile_ahead():
            return
        missing = [config for config in configs if config in self._jobs and not self._jobs[config].is_kept()]
        processes = settings.compile_processes
        if len(missing) < 2 or not ahead.is_worth_it(self._first_compile(missing[0]), len(missing) - 1, processes):
            return
        progress.add(len(missing) - 1)
        for index, error in ahead.compile_ahead([self._jobs[config] for config in missing[1:]], processes):
            progress.advance("compiling")
            if isinstance(error, CompilerDied):
                config = missing[index + 1]
                self._died[config] = error
                warnings.warn(f"kernel '{self._kernel}' with {config}: {error}: a defect of Deuteron", stacklevel=7)

    def _first_compile(self, config: Config) -> float:
        """Seconds that a compile here takes; 0 for one that fails, of which its trial tells."""
        from deuteron.compiler.driver import compile_with  # deferred: as above

        job, begin = self._jobs[config], time.perf_counter()
        try:
            compile_with(job.backend, job.source, job.target, job.options)
        except (*SKIPPED, InternalError):
            return 0.0
        return time.perf_counter() - begin

"""Compiles what manifests list, several at a time, into the cache on disk: `deuteron warmup`.

    warmed = warm_up([Path("manifest.json")])
    warmed.compiled, warmed.cached, warmed.failures

A kernel is found by the module that defines it and its qualified name; in a program that was run by its file, in that
file, which is executed under another name than "__main__". One that does not ask for its name is executed until it
launches: nothing is launched here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from deuteron.aot.load import ModuleName, load_module, unwrapped
from deuteron.backend import get_backend
from deuteron.compiler import resolve_target
from deuteron.compiler.ahead import compile_ahead
from deuteron.compiler.driver import compile_with
from deuteron.compiler.job import Job
from deuteron.errors import DeuteronError, UsageError
from deuteron.runtime import JITFunction
from deuteron.runtime.manifest import Wanted, read_manifest
from deuteron.runtime.preload import collected, read
from deuteron.settings import settings
from deuteron.tracebacks import api_boundary


@dataclass
class WarmUp:
    """What became of the kernels of manifests: how many were compiled, how many were in the cache, and which failed."""

    compiled: int = 0
    cached: int = 0
    failures: list[tuple[Wanted, DeuteronError]] = field(default_factory=list)

    def note(self, wanted: Wanted, error: DeuteronError | None) -> None:
        """Note the outcome of a compile."""
        if error is None:
            self.compiled += 1
        else:
            self.failures.append((wanted, error))


@api_boundary
def warm_up(
    manifests: Sequence[str | Path],
    processes: int | None = None,
    start: Callable[[int], None] = lambda total: None,
    advance: Callable[[str], None] = lambda what: None,
) -> WarmUp:
    """Compile what manifests list into the cache on disk, where launches of later processes find it.

    Args:
        processes: how many compile at a time; default: the usable cores.
        start: is told how many kernels there are to compile.
        advance: is told of each that is done.

    Raises:
        UsageError: a manifest cannot be read. What is wrong with a kernel is in the result.
    """
    wanted = list(dict.fromkeys(each for path in manifests for each in read_manifest(Path(path))))
    found = WarmUp()
    different = {job.key: (each, job) for each, job in _jobs(wanted, found)}
    jobs = [(each, job) for each, job in different.values() if not _is_kept(job, found)]
    start(len(jobs))
    left = dict(enumerate(jobs))
    for index, error in compile_ahead([job for _, job in jobs], processes or settings.compile_processes):
        each, _ = left.pop(index)
        found.note(each, error)
        advance(str(each))
    for each, job in left.values():  # no process could be started for them
        found.note(each, _compiled_here(job))
        advance(str(each))
    return found


def _jobs(wanted: Sequence[Wanted], found: WarmUp) -> list[tuple[Wanted, Job]]:
    """What is to be compiled; what is wrong is noted."""
    loader, jobs = _Loader(), []
    for each in wanted:
        try:
            jobs.append((each, _job(loader.kernel(each), each)))
        except DeuteronError as error:
            found.note(each, error)
    return jobs


def _job(fn: JITFunction, wanted: Wanted) -> Job:
    bound = read(fn.params, wanted.asked)
    target = resolve_target(wanted.target)
    backend = get_backend(target)
    return Job(backend, fn.source_of(bound), target, fn.options_of(backend, bound))


def _is_kept(job: Job, found: WarmUp) -> bool:
    is_kept = job.is_kept()
    found.cached += is_kept
    return is_kept


def _compiled_here(job: Job) -> DeuteronError | None:
    try:
        compile_with(job.backend, job.source, job.target, job.options)
    except DeuteronError as error:
        return error
    return None


class _Loader:
    """The modules that define kernels, each executed once; what is wrong with one is wrong with each of its kernels."""

    def __init__(self) -> None:
        self._loaded: dict[Path | ModuleName, _Loaded] = {}

    def kernel(self, wanted: Wanted) -> JITFunction:
        """Raises UsageError where there is none."""
        place = Path(wanted.file) if wanted.is_main else ModuleName(wanted.module)
        if place not in self._loaded:
            self._loaded[place] = _load(place)
        loaded = self._loaded[place]
        kernel = loaded.kernel(wanted)
        if kernel is None:
            raise loaded.error or UsageError(
                f"'{place}' defines no kernel '{wanted.kernel}' any more when it is imported"
            )
        return kernel


@dataclass(frozen=True)
class _Loaded:
    """A module, all kernels that were made while it was executed, and the error that ended it."""

    module: ModuleType | None
    made: dict[str, JITFunction]
    error: DeuteronError | None

    def kernel(self, wanted: Wanted) -> JITFunction | None:
        """The kernel of that name; else one of another name, or within a function, that was made as that."""
        with contextlib.suppress(AttributeError):
            kernel = unwrapped(attrgetter(wanted.kernel)(self.module))
            if kernel is not None:
                return kernel
        return self.made.get(f"{wanted.module}:{wanted.kernel}")


def _load(place: Path | ModuleName) -> _Loaded:
    with _nothing_launched(), collected() as made:
        try:
            return _Loaded(load_module(place), made, None)
        except DeuteronError as error:
            return _Loaded(None, made, error)


@contextlib.contextmanager
def _nothing_launched() -> Iterator[None]:
    """A launch ends the program that does it."""

    def refuse(self: JITFunction, *args: Any, **kwargs: Any) -> None:
        raise SystemExit(f"it launches kernel '{self.__name__}'")  # which nothing takes for a failed launch

    run, argv, JITFunction.run = JITFunction.run, sys.argv, refuse
    sys.argv = sys.argv[:1]
    try:
        yield
    finally:
        JITFunction.run, sys.argv = run, argv

"""The one loop that walks a table of stages: it runs, verifies, times, overrides and dumps each of them.

    product of the source -> ttir -> llir -> obj

Starting at the text of a stage skips that stage and those before it; the first is not skipped, since tile IR that is
given as text has not been through its passes. Errors of the user's pass through, and so does what a signal handler
raises; anything else that a stage raises becomes one InternalError that names the stage and the file in which its input
was kept.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from deuteron.backend.metadata import METADATA_MARK, KernelMetadata
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.compiler.depth import deep_calls, too_deep
from deuteron.compiler.inspection import InspectedStages
from deuteron.compiler.source import read_text
from deuteron.errors import DeuteronError, InternalError, UsageError
from deuteron.options import Target
from deuteron.settings import settings
from deuteron.signal_handlers import raised_by_handler
from deuteron.trusted_files import warn_once


@dataclass
class Walk:
    """One compile on its way: the products, facts and texts made so far, and the seconds that each stage took."""

    stages: Sequence[Stage]
    unit: Unit
    folder: Path | None
    products: dict[str | None, Any] = field(default_factory=dict)  # None: what the first stage is given
    texts: dict[str, str | bytes] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    num_passes: int = 0
    inspected: InspectedStages | None = None  # where a hook looks into the compile

    def __post_init__(self) -> None:
        if self.folder:
            self.unit = replace(self.unit, dump=self._dump_pass)

    def begin(self, load: Callable[[], Any]) -> None:
        """Make what the first stage is given."""
        with self._timed("source"), self._wrapped("source", lambda: None):
            self.products[None] = load()

    def begin_at(self, stage: Stage, text: str, file: str) -> None:
        """Take a text for what `stage` makes; for the first stage it is what that stage is given."""
        with self._timed("source"), self._wrapped(stage.name, lambda: text):
            product = stage.parse(_without_metadata(stage, text), file)
            if stage.describe is not None:
                name, params = stage.describe(product)
                self.unit = replace(self.unit, name=name, params=params, symbol=self.unit.symbol or name)
            if stage.input is None:
                self.products[None] = product
            else:
                self._keep(stage, product)

    def run(self) -> None:
        """Run every stage whose result is not there; those on demand only where everything is dumped."""
        for stage in self.stages:
            if stage.input in self.products and (self.folder or not stage.on_demand):
                self.run_stage(stage)

    def run_stage(self, stage: Stage) -> None:
        with self._timed(stage.name), self._wrapped(stage.name, lambda: self._input_text(stage)):
            run = partial(self._make, stage, self.products[stage.input])
            from deuteron.compiler.crash_report import with_report  # deferred: a kernel out of the cache needs it not

            made = with_report(self.unit.name, str(self.unit.target), stage.name, run)
            stage.verify(made.product)
            self.unit, product = self.unit.with_facts(made.facts), made.product
            override = find_override(self.unit.name, stage)
            if override is not None:
                product = stage.parse(_without_metadata(stage, read_text(override)), str(override))
            self._keep(stage, product)

    def _make(self, stage: Stage, product: Any) -> Made:
        return self.inspected.run(stage, product, self.unit) if self.inspected else stage.run(product, self.unit)

    def _keep(self, stage: Stage, product: Any) -> None:
        self.products[stage.name] = product
        self.texts[stage.name] = self._text(stage, product)
        if self.folder:
            dump(self.folder, self.unit.name, stage.name, self.texts[stage.name])

    def _dump_pass(self, name: str, text: str) -> None:
        self.num_passes += 1
        dump(self.folder, self.unit.name, f"pass{self.num_passes:02}-{name}", text)

    def _text(self, stage: Stage, product: Any) -> str | bytes:
        text = stage.text(product)
        if stage.comment is None:
            return text
        return f"{stage.comment} {METADATA_MARK}{self.unit.metadata({}).to_json()}\n{text}"

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.times[name] = time.perf_counter() - begin

    @contextmanager
    def _wrapped(self, stage: str, input_text: Callable[[], str | bytes | None]) -> Iterator[None]:
        try:
            with deep_calls():
                yield
        except Exception as error:
            raised = raised_by_handler(error)
            if raised is not None:
                raise raised from raised.__cause__
            if refusal := too_deep(error, self.unit.name):
                raise refusal from error
            if isinstance(error, DeuteronError) and not isinstance(error, InternalError):
                raise
            message = error.message if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
            raise self._defect(stage, message, error, input_text()) from error

    def _input_text(self, stage: Stage) -> str | bytes | None:
        """What a stage that failed worked on. The first works in place, and may leave what cannot be printed."""
        if stage.input is not None:
            return self.texts[stage.input]
        try:
            return stage.text(self.products[None])
        except Exception:
            return None

    def _defect(self, stage: str, what: str, cause: Exception, text: str | bytes | None) -> InternalError:
        message = f"Deuteron failed in stage '{stage}' of kernel '{self.unit.name}': {what.rstrip('.')}."
        if text is not None:
            folder = self.folder or new_folder()
            path = dump(folder, self.unit.name, f"failed-{stage}", text)
            message += f" It worked on {path}." if path else ""
        message += " This is a defect of Deuteron, not of the kernel: please report it."
        kind = type(cause) if isinstance(cause, InternalError) else InternalError
        return kind(message, getattr(cause, "location", None), getattr(cause, "call_chain", ()))


def new_folder() -> Path:
    """A folder for what is left of a compile that failed."""
    import tempfile  # deferred: what it needs takes 5 ms to import

    return Path(tempfile.mkdtemp(prefix="deuteron-"))


def find_stage(stages: Sequence[Stage], name: str) -> Stage:
    """The stage whose text is the input; raises UsageError where it cannot be one."""
    inputs = {stage.name: stage for stage in stages if stage.parse is not None}
    if name not in inputs:
        raise UsageError(f"a compile cannot start from '.{name}': it can from {', '.join(f'.{n}' for n in inputs)}")
    return inputs[name]


def embedded_metadata(stage: Stage, text: str) -> KernelMetadata:
    """The metadata in the first line of a text that needs it."""
    if not _has_metadata(stage, text):
        mark = f"{stage.comment} {METADATA_MARK}"
        raise UsageError(f"the first line of a .{stage.name} input must be the comment '{mark}{{...}}' of a dump")
    return KernelMetadata.from_json(text.partition("\n")[0].partition(METADATA_MARK)[2])


def with_embedded(unit: Unit, stage: Stage, text: str) -> Unit:
    """The unit of a text with metadata: the name, the facts, and the options on which its code relies; raises
    UsageError where others were asked for.
    """
    found = embedded_metadata(stage, text)
    _check_target(stage, found.target, unit.target)
    kept = {name: found.options[name] for name in getattr(unit.options, "of_code", ()) if name in found.options}
    for name, made in kept.items():
        asked = getattr(unit.options, name)
        if asked is not None and (asked or None) != (made or None):
            raise UsageError(f"the {stage.name} is for {name}={made!r}, and {name}={asked!r} was asked for")
    options = replace(unit.options, **kept) if kept else unit.options
    named = replace(unit, name=found.name, symbol=found.symbol, params=found.params, options=options)
    return named.with_facts(found.facts)


def _check_target(stage: Stage, made: Target, asked: Target) -> None:
    """LLVM aborts at instructions that a GPU does not have; of PTX ptxas says so, and CPUs differ by features."""
    is_for_one = stage.name == "llir" and made.warp_size > 1
    if made.backend != asked.backend or (is_for_one and made.arch != asked.arch):
        raise UsageError(f"the {stage.name} is for {made}, and {asked} was asked for")


def _has_metadata(stage: Stage, text: str) -> bool:
    return stage.comment is not None and text.startswith(f"{stage.comment} {METADATA_MARK}")


def _without_metadata(stage: Stage, text: str) -> str:
    return text.partition("\n")[2] if _has_metadata(stage, text) else text


def dump(folder: Path, kernel: str, suffix: str, text: str | bytes) -> Path | None:
    """Write `<folder>/<kernel>.<suffix>`; None where that is not possible, of which a warning tells."""
    path = folder / f"{_file_name(kernel)}.{suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    except OSError as error:
        warn_once(f"stages are not dumped: cannot write '{error.filename}': {error.strerror}")
        return None
    return path


def find_override(kernel: str, stage: Stage) -> Path | None:
    """The file that replaces what a stage made, if the user put one into DEUTERON_OVERRIDE_DIR."""
    if settings.override_dir is None or stage.parse is None:
        return None
    path = settings.override_dir / f"{_file_name(kernel)}.{stage.name}"
    return path if path.is_file() else None


def _file_name(kernel: str) -> str:
    """A kernel's name as a file's: one that comes from text may hold anything."""
    return re.sub(r"\W", "_", kernel)

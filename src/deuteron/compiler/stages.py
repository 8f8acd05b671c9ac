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

from deuteron.backend.metadata import METADATA_MARK
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.compiler.depth import deep_calls, too_deep
from deuteron.compiler.inspection import InspectedStages
from deuteron.compiler.source import read_text
from deuteron.errors import AssemblerError, DeuteronError, InternalError, IRError, Location, UsageError
from deuteron.interruptions import interruption
from deuteron.settings import settings
from deuteron.trusted_files import warn_once


@dataclass
class Walk:
    """One compile on its way: the products, facts and texts made so far, and the seconds that each stage took.

    `code_file` is that of the code for a machine that the walk began with, if it did: LLVM IR, PTX.
    """

    stages: Sequence[Stage]
    unit: Unit
    folder: Path | None
    products: dict[str | None, Any] = field(default_factory=dict)  # None: what the first stage is given
    texts: dict[str, str | bytes] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    num_passes: int = 0
    inspected: InspectedStages | None = None  # where a hook looks into the compile
    code_file: str | None = None

    def __post_init__(self) -> None:
        if self.folder:
            self.unit = replace(self.unit, dump=self._dump_pass)

    def begin(self, load: Callable[[], Any]) -> None:
        """Make what the first stage is given."""
        with self._timed("source"), self._wrapped("source", None, lambda: None):
            self.products[None] = load()

    def begin_at(self, stage: Stage, text: str, file: str) -> None:
        """Take a text for what `stage` makes; for the first stage it is what that stage is given."""
        from deuteron.compiler.made_for import without_metadata  # deferred: of texts only

        with self._timed("source"), self._wrapped(stage.name, text, lambda: text):
            product = stage.parse(without_metadata(stage, text), file)
            if stage.describe is not None:
                self.unit = self.unit.of_kernel(*stage.describe(product))
            else:
                self.code_file = file
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
        given = self.products[stage.input]
        with self._timed(stage.name), self._wrapped(stage.name, given, lambda: self._input_text(stage)):
            run = partial(self._make, stage, given)
            from deuteron.compiler.crash_report import with_report  # deferred: a kernel out of the cache needs it not

            made = with_report(self.unit.name, str(self.unit.target), stage.name, run)
            stage.verify(made.product)
            self.unit, product = self.unit.with_facts(made.facts), made.product
            override = find_override(self.unit.name, stage)
            if override is not None:
                product = self._overridden(stage, override)
            self._keep(stage, product)

    def _overridden(self, stage: Stage, file: Path) -> Any:
        """What is in the file instead of what the stage made, if it is for this compile."""
        from deuteron.compiler.made_for import as_overridden, without_metadata  # deferred: of texts only

        text = read_text(file)
        product = stage.parse(without_metadata(stage, text), str(file))
        self.unit = as_overridden(self.unit, stage, text, product, str(file))
        return product

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
    def _wrapped(self, stage: str, given: Any, input_text: Callable[[], str | bytes | None]) -> Iterator[None]:
        try:
            with deep_calls():
                yield
        except Exception as error:
            interrupted = interruption(error)
            if interrupted is not None:
                raise interrupted from interrupted.__cause__
            if refusal := too_deep(error, self.unit.name, given):
                raise refusal from error
            if isinstance(error, DeuteronError) and not isinstance(error, InternalError):
                raise
            if isinstance(error, AssemblerError) and self.code_file is not None:
                raise IRError(error.message, Location(self.code_file, 1)) from error
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


def new_folder() -> Path | None:
    """A folder for what is left of a compile that failed; None where there can be none."""
    import tempfile  # deferred: what it needs takes 5 ms to import

    try:
        return Path(tempfile.mkdtemp(prefix="deuteron-"))
    except OSError as error:
        warn_once(f"stages are not dumped: {error.strerror}")
        return None


def find_stage(stages: Sequence[Stage], name: str) -> Stage:
    """The stage whose text is the input; raises UsageError where it cannot be one."""
    inputs = {stage.name: stage for stage in stages if stage.parse is not None}
    if name not in inputs:
        raise UsageError(f"a compile cannot start from '.{name}': it can from {', '.join(f'.{n}' for n in inputs)}")
    return inputs[name]


def dump(folder: Path | None, kernel: str, suffix: str, text: str | bytes) -> Path | None:
    """Write `<folder>/<kernel>.<suffix>`; None where that is not possible, of which a warning tells."""
    if folder is None:
        return None
    path = folder / f"{_file_name(kernel)}.{suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    except OSError as error:
        warn_once(f"stages are not dumped: cannot write '{error.filename or path}': {error.strerror}")
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

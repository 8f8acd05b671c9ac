"""Stages of a compile as `knobs.runtime.add_stages_inspection_hook` leaves them, for programs that look into a compile.

    def hook(backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return "a text that changes with what the hook does", "its hash"
        run = stages["ttir"]

        def look(src, metadata):
            made = run(src, metadata)           or backend.make_ttir(src, metadata, options, capability)
            print(made)
            return made                         or another module, or its text

        stages["ttir"] = look

The text is part of the key of the compile, so that what a hook has changed is found under that hook only. A function
has to call the one that was there: what a stage finds out of the kernel is not in its product.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from deuteron import knobs
from deuteron.backend.stage import Made, Stage, Unit
from deuteron.errors import DeuteronError, UsageError

_NAME = "add_stages_inspection_hook"


def inspection_key() -> str | None:
    """What the hook says of itself; None where there is none. Raises UsageError where it does not."""
    hook = knobs.runtime.add_stages_inspection_hook
    if hook is None:
        return None
    try:
        key, _ = hook()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{_NAME}: called without arguments it returns a text that changes with what it does, and its hash; "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    return str(key)


def with_inspection(key: str) -> str:
    """The key of a compile, and of the hook that takes part in it."""
    asked = inspection_key()
    return key if asked is None else hashlib.sha256(f"{key}\0{asked}".encode()).hexdigest()


class InspectedStages:
    """The stages of one compile, of which a hook has replaced some. The hook is given this as the backend."""

    def __init__(self, hook: Callable[..., Any], stages: Sequence[Stage], unit: Unit):
        self._stages = {stage.name: stage for stage in stages}
        self._unit = unit
        self._made: dict[str, Made] = {}
        self._defect: Exception | None = None
        self.metadata: dict[str, Any] = {"name": unit.name, "target": unit.target, **vars(unit.options)}
        self.functions = {name: partial(self._run_as_it_is, stage) for name, stage in self._stages.items()}
        capability = unit.target.arch if isinstance(unit.target.arch, int) else None
        hook(self, self.functions, unit.options, "triton", capability)
        self._check_names()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """`make_ttir(src, metadata, ...)` is the stage `ttir` as it is."""
        stage = vars(self).get("_stages", {}).get(name.removeprefix("make_"))
        if stage is None or not name.startswith("make_"):
            raise AttributeError(name)
        return lambda src, metadata, *rest: self._run_as_it_is(stage, src, metadata)

    def run(self, stage: Stage, product: Any, unit: Unit) -> Made:
        """What a stage makes; raises UsageError where the function that it was replaced by fails."""
        self._unit = unit
        try:
            result = self.functions[stage.name](product, self.metadata)
        except Exception as error:
            if error is self._defect or isinstance(error, DeuteronError):
                raise
            what = f"{type(error).__name__}: {error}"
            raise UsageError(f"{_NAME}: its function for the stage '{stage.name}' failed with {what}") from error
        made = self._made.pop(stage.name, None)
        if made is None:
            raise UsageError(
                f"{_NAME}: its function for the stage '{stage.name}' did not call the one that was there, "
                "which finds out what a launch has to know of the kernel"
            )
        return made if result is made.product else Made(_as_product(stage, result), made.facts)

    def _run_as_it_is(self, stage: Stage, src: Any, metadata: dict[str, Any]) -> Any:
        try:
            made = stage.run(src, self._unit)
        except Exception as error:
            self._defect = error
            raise
        self._made[stage.name] = made
        metadata.update(made.facts)
        return made.product

    def _check_names(self) -> None:
        if self.functions.keys() != self._stages.keys():
            wrong = ", ".join(sorted(self.functions.keys() ^ self._stages.keys()))
            known = ", ".join(self._stages)
            raise UsageError(f"{_NAME} may replace stages, not add or remove any ({wrong}): there are {known}")


def _as_product(stage: Stage, result: Any) -> Any:
    """A text is read as one that overrides the stage is."""
    if isinstance(result, str) and stage.parse is not None:
        return stage.parse(result, f"<{stage.name} of {_NAME}>")
    return result

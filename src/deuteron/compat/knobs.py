"""`triton.knobs`: settings as attributes, grouped as in Triton, kept in Deuteron's environment variables.

    triton.knobs.compilation.always_compile = True      sets DEUTERON_ALWAYS_COMPILE
    with triton.knobs.runtime.scope():                  what is set within is undone after
        triton.knobs.runtime.interpret = True

A knob that Deuteron has no use for can be set and read back, without effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from deuteron.options import settings


class Knob(NamedTuple):
    """A setting: its environment variable, and how it is read."""

    variable: str
    read: Callable[[], Any]


class Group:
    """Some knobs, and whatever else a program has set."""

    def __init__(self, knobs: dict[str, Knob], **defaults: Any):
        vars(self).update(_knobs=knobs, _values=defaults)

    def __getattr__(self, name: str) -> Any:
        if name in self._knobs:
            return self._knobs[name].read()
        if name in self._values:
            return self._values[name]
        raise AttributeError(f"Deuteron has no knob '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._knobs:
            self._values[name] = value
        elif value is None:
            os.environ.pop(self._knobs[name].variable, None)
        else:
            os.environ[self._knobs[name].variable] = str(int(value)) if isinstance(value, bool) else str(value)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is set within is undone after it."""
        values = dict(self._values)
        variables = {knob.variable: os.environ.get(knob.variable) for knob in self._knobs.values()}
        try:
            yield
        finally:
            self._values.clear()
            self._values.update(values)
            for variable, text in variables.items():
                os.environ.pop(variable, None)
                if text is not None:
                    os.environ[variable] = text


knobs: dict[str, Group] = {
    "runtime": Group(
        {"interpret": Knob("DEUTERON_INTERPRET", lambda: settings.interpret)},
        debug=False,
        override_arch=None,
        launch_enter_hook=None,
        launch_exit_hook=None,
        jit_cache_hook=None,
        jit_post_compile_hook=None,
    ),
    "compilation": Group(
        {"always_compile": Knob("DEUTERON_ALWAYS_COMPILE", lambda: settings.always_compile)},
        listener=None,
    ),
    "cache": Group(
        {
            "dir": Knob("DEUTERON_CACHE_DIR", lambda: str(settings.cache_dir)),
            "dump_dir": Knob("DEUTERON_DUMP_DIR", lambda: settings.dump_dir and str(settings.dump_dir)),
            "override_dir": Knob("DEUTERON_OVERRIDE_DIR", lambda: settings.override_dir and str(settings.override_dir)),
        }
    ),
    "autotuning": Group(
        {"print": Knob("DEUTERON_PRINT_AUTOTUNING", lambda: settings.print_autotuning)},
        cache=False,
    ),
    "language": Group({}),
    "nvidia": Group({}),
    "amd": Group({}),
    "proton": Group({}),
}

"""A knob: an attribute that is a variable of the environment until it is set.

    class compilation_knobs(base_knobs):
        dump_ir = env_bool("TRITON_KERNEL_DUMP")                                  has an effect
        enable_asan = env_bool("TRITON_ENABLE_ASAN", effect=False)                has none here, and says so when set
        always_compile = env_bool("TRITON_ALWAYS_COMPILE", own="DEUTERON_ALWAYS_COMPILE")

`own` is Deuteron's variable of the same meaning: it goes before Triton's, and the setting is read from it. A knob that
is set sets both, unless `knobs.propagate_env` is false: then Deuteron's alone.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from deuteron.errors import suggest
from deuteron.settings import get_variable, set_variable, truth


class Env:
    """Set a knob to this to take back what was set."""

    def __repr__(self) -> str:
        return "env"


env = Env()


class env_base:
    """A knob whose value is a text; `default` may be a function of no arguments."""

    def __init__(self, key: str, default: Any = None, *, own: str | None = None, effect: bool = True):
        self.key, self.default, self.own, self.effect = key, default, own, effect

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, group: Any, owner: type | None = None) -> Any:
        if group is None:
            return self
        held = vars(group)
        return held[self.name] if self.name in held else self.get()

    def get(self) -> Any:
        """What the environment says."""
        for variable in filter(None, (self.own, self.key)):
            text = get_variable(variable)
            if text:
                return self.read(text)
        return self.default() if callable(self.default) else self.default

    def __set__(self, group: Any, value: Any) -> None:
        if value is env:
            self.__delete__(group)
            return
        if not self.effect:
            warnings.warn(f"Deuteron has no use for triton.knobs: {self.key} ({self.name}) is ignored", stacklevel=2)
        if self.own:
            group._before.setdefault(self.own, get_variable(self.own))
            set_variable(self.own, self.write(value))
        if sys.modules["deuteron.knobs"].propagate_env:
            set_variable(self.key, self.write(value))
        vars(group)[self.name] = value

    def __delete__(self, group: Any) -> None:
        vars(group).pop(self.name, None)
        if self.own in group._before:
            set_variable(self.own, group._before.pop(self.own))

    def read(self, text: str) -> Any:
        return text

    def write(self, value: Any) -> str | None:
        return None if value is None else str(value)


class env_str(env_base):
    """A text."""


class env_opt_str(env_base):
    """A text or None."""


class env_bool(env_base):
    """True or False."""

    def __init__(self, key: str, default: bool | None | Callable[[], bool] = False, **options: Any):
        super().__init__(key, default, **options)

    def read(self, text: str) -> bool:
        return truth(text, self.key)

    def write(self, value: Any) -> str | None:
        return None if value is None else str(int(bool(value)))


class env_opt_bool(env_bool):
    """True, False or None."""

    def __init__(self, key: str, default: bool | None = None, **options: Any):
        super().__init__(key, default, **options)


class env_int(env_base):
    """A whole number."""

    def __init__(self, key: str, default: int = 0, **options: Any):
        super().__init__(key, default, **options)

    def read(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise RuntimeError(f"{self.key} must be a whole number, got '{text}'") from None


class env_class(env_base):
    """A class, in the environment as `module:name`."""

    def __init__(self, key: str, base: str, **options: Any):
        super().__init__(key, None, **options)
        self.base = base

    def read(self, text: str) -> type:
        module, _, name = text.partition(":")
        return getattr(importlib.import_module(module), name)

    def write(self, value: type | None) -> str | None:
        return None if value is None else f"{value.__module__}:{value.__name__}"


class base_knobs:
    """A group of knobs. Attributes that are no knobs, such as hooks, are kept as they are."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}  # Deuteron's variables as they were before knobs set them

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            names = [known for known in dir(type(self)) if not known.startswith("_")]
            warnings.warn(f"Deuteron has no knob '{name}': it is ignored.{suggest(name, names)}", stacklevel=2)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Deuteron has no knob '{name}'", name=name, obj=self)

    @property
    def knob_descriptors(self) -> dict[str, env_base]:
        return {name: knob for name, knob in vars(type(self)).items() if isinstance(knob, env_base)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The value of every knob."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Self:
        other = type(self)()
        vars(other).update(vars(self))
        other._before = dict(self._before)
        return other

    def reset(self) -> Self:
        """Every knob is again what the environment says."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is set within, and in the environment for these knobs, is undone after it."""
        values, before = dict(vars(self)), dict(self._before)
        names = [name for knob in self.knob_descriptors.values() for name in (knob.key, knob.own) if name]
        variables = {name: get_variable(name) for name in names}
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(values)
            self._before = before
            for name, text in variables.items():
                set_variable(name, text)

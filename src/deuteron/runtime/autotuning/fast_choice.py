"""Autotuned launches without Python: what a tuner chose for some arguments is written down for the launches like it.

    choices = FastChoices(tuner)
    choices.at(grid)(*args)                 tuner.run_noted(grid, args, {}), in machine code where a choice is found
    choices.note(args, keywords, config)    after a launch in Python that `config` was chosen for
    choices.forget()                        the choices have changed

A choice is found by the tokens of all arguments that are given, and the values of those in the tuner's `key`: where
they are equal the tuner's own key is. The launch then is one of the kernel in machine code, which is written down by
`fast_launch.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deuteron.backend.launcher.records import (
    CHOICE,
    CONDITION,
    IS_ITEM,
    IS_SUBSCRIPT,
    MOST_OPTIONS,
    to_bytes,
)
from deuteron.backend.native_launch import MISSING
from deuteron.runtime.autotuning.config import Config
from deuteron.runtime.fast_launch import MOST_ENTRIES
from deuteron.runtime.jit import JITFunction
from deuteron.runtime.launch_records import condition_record, kernel_record, numbers
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.backend.launcher.loaded import Launcher
    from deuteron.runtime.autotuning.autotuner import Autotuner

_WATCHED = ("fn", "cache", "configs", "keys")  # attributes of a tuner that a choice depends on


class FastChoices:
    """The choices of one autotuner. Only those of kernels, with a configuration without a hook, are ever fast."""

    def __init__(self, tuner: Autotuner):
        self.tuner = tuner
        self.at: Callable[[Any], Callable[..., Any]] = self._in_python
        self._entries: dict[int, tuple] = {}

    def _in_python(self, grid: Any) -> Callable[..., Any]:
        native: Callable[..., Any] | None = None

        def launch(*args: Any, **keywords: Any) -> Any:
            nonlocal native
            if native is None and self.at != self._in_python:  # since `tuner[grid]` was taken
                native = self.at(grid)
            with api_boundary:
                return native(*args, **keywords) if native else self.tuner.run_noted(grid, args, keywords)

        return launch

    def forget(self) -> None:
        self._entries.clear()

    def note(self, args: Sequence[Any], keywords: Mapping[str, Any], config: Config) -> None:
        """Let launches like this one be fast, once those of the kernel are."""
        fn = self.tuner.fn
        if type(fn) is not JITFunction or fn.fast.record is None or config.pre_hook is not None:
            return
        launcher, chosen = fn.fast.launcher, config.all_kwargs()
        if len(chosen) > MOST_OPTIONS:
            return
        words = _words(fn, args, keywords, self.tuner.keys, launcher)
        if words is None:
            return
        if self.at == self._in_python:
            record = kernel_record(fn, self._entries, launcher, self.tuner.run_noted, frozenset(self.tuner.keys))
            self.at = launcher.subscript(record)
        if len(self._entries) >= MOST_ENTRIES:
            self.forget()
        number, kept = words
        self._entries[launcher.hash(number)] = _entry(self.tuner, config, chosen, number, kept)


def _entry(tuner: Autotuner, config: Config, chosen: dict[str, Any], words: list[int], kept: list[Any]) -> tuple:
    """The record of a choice, and what it needs to live."""
    fn = tuner.fn
    conditions = list(_conditions(tuner, config))
    own_names = {param.name: param.name for param in fn.params}  # the code compares them as objects
    names = tuple(own_names.get(name, name) for name in chosen)
    objects = {
        "kernel": fn.fast.record,
        "names": names,
        "tuner": tuner,
        "attribute": "best_config",
        "config": config,
    }
    fields = {name: id(value) for name, value in objects.items()}
    counts = {"num_words": len(words), "num_conditions": len(conditions), "num_values": len(chosen)}
    described = [word for condition in conditions for word in condition_record(*condition)]
    assert len(described) == len(conditions) * len(CONDITION)
    values = [id(value) for value in chosen.values()]
    head = CHOICE.pack(**counts, **fields)
    return to_bytes([*head, *words, *described, *values]), objects, chosen, conditions, kept


def _conditions(tuner: Autotuner, config: Config) -> Iterator[tuple[int, Any, Any, Any]]:
    """What has to be as it is now. Lists of configurations that change in their middle are not noticed."""
    yield IS_ITEM, vars(tuner), "run", MISSING
    for name in _WATCHED:
        yield IS_ITEM, vars(tuner), name, vars(tuner)[name]
    yield IS_ITEM, vars(tuner.fn), "fast", tuner.fn.fast
    for place in (0, -1):
        yield IS_SUBSCRIPT, tuner.configs, place, tuner.configs[place]
    for name, value in vars(config).items():
        yield IS_ITEM, vars(config), name, value


def _words(
    fn: JITFunction, args: Sequence[Any], keywords: Mapping[str, Any], compared: Sequence[str], launcher: Launcher
) -> tuple[list[int], list[Any]] | None:
    """The words of the key, as the code makes them, and what they are addresses of; None where there are none."""
    given = dict(zip(fn.arg_names, args, strict=False))
    given |= {name: value for name, value in keywords.items() if name in fn.arg_names}
    words: list[int] = []
    kept: list[Any] = []

    def add_constant(value: Any) -> None:
        words.extend(numbers.of_constant(value))
        kept.append(value)

    try:
        for param, specialise in zip(fn.params, fn.specialisers, strict=True):
            value = given.get(param.name)
            if param.name not in given:
                words.append(0)
                continue
            if not param.is_constexpr:
                token, _ = specialise(value)
                launcher.learn(value, token)
                words.append(numbers.of(token))
            if param.is_constexpr or param.name in compared:
                add_constant(value)
        for name in (name for name in keywords if name not in given):
            words.append(id(name))
            add_constant(keywords[name])
    except Exception:  # such as a value that has no token: then the tuner finds its choice in Python
        return None
    return words, [*kept, *keywords]

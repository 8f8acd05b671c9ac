"""Launches without Python: what a launch in Python found is written down, so that the next one like it is machine code.

    fast = FastLaunches(fn)
    fast.at(grid)(*args)            fn.run_noted(grid, args, {}), in machine code where an entry is found
    fast.note(bound, found)         after a launch in Python: from now on those with these tokens are fast
    fast.forget()                   what is compiled anew, or may not be launched any more

The first launches of a process are in Python, until loading the code is worth its time. An entry is found by a key that
the code makes of the arguments, equal for equal tokens (`backend/launcher`), and it has conditions: all else that `run`
looks at. A launch that finds none, or whose conditions do not hold, is in Python, and makes an entry for what there is
then.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from deuteron import knobs
from deuteron.backend.launcher.records import (
    AS_BOOL,
    AS_DOUBLE,
    AS_FLOAT,
    AS_INTEGER,
    IS_ATTRIBUTE,
    IS_FALSE_ATTRIBUTE,
    IS_FALSE_ITEM,
    IS_IN_CELL,
    IS_ITEM,
    IS_SUBSCRIPT,
    MOST_OPTIONS,
    MOST_PARAMETERS,
    MOST_SLOTS,
    SLOT,
    WHOLE,
    apart_words,
    entry_words,
    to_bytes,
    view_words,
)
from deuteron.backend.native_launch import MISSING, NativeLaunch
from deuteron.backend.spans import view_of
from deuteron.compiler import CompiledKernel
from deuteron.errors import InternalError
from deuteron.language.functions.function import Parameter
from deuteron.language.functions.references import Reference, holder
from deuteron.language.functions.source_functions import SourceFunction
from deuteron.once import once
from deuteron.runtime.binding import Binding
from deuteron.runtime.launch_records import condition_record, kernel_record, numbers
from deuteron.runtime.specialise import Token, is_passed, is_tuple, passed_values
from deuteron.settings import LAUNCH_VARIABLES, environment_entry
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.backend.launcher.loaded import Launcher
    from deuteron.runtime.jit import JITFunction

# Launches in Python before the code is loaded: with LLVM in the process that takes 2 ms (measured), else 0.1 s as well.
FEW, MANY = 2, 200
MOST_ENTRIES = 4096  # of a function: a bound on memory, not measured
MOST_NOTED = 64  # times that one kernel is noted: then launches of this kind do not find their entry

_FORMATS = {"i1": AS_BOOL, "fp16": AS_FLOAT, "bf16": AS_FLOAT, "fp32": AS_FLOAT, "fp64": AS_DOUBLE}
_INTEGER_BITS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32)}


class _Policy:
    """When the launcher's code is loaded: after some launches that it could have done."""

    num_launches = 0

    def launcher(self) -> Launcher | None:
        self.num_launches += 1
        if self.num_launches <= (FEW if "llvmlite" in sys.modules else MANY):
            return None
        return the_launcher()


_policy = _Policy()


@once
def the_launcher() -> Launcher | None:
    from deuteron.backend.launcher.loaded import load_launcher  # deferred: brings LLVM

    try:
        return load_launcher(numbers)
    except InternalError as error:  # such as an interpreter that does not export a function
        warnings.warn(f"launches go through Python: {error.message}", RuntimeWarning, stacklevel=6)
        return None


class FastLaunches:
    """The entries of one function."""

    def __init__(self, fn: JITFunction):
        self._fn = fn
        self.at: Callable[[Any], Callable[..., Any]] = self._in_python
        self.launcher: Launcher | None = None
        self.record: tuple | None = None  # what the launcher knows of the function, once it has been told
        self._entries: dict[int, tuple] = {}
        self._is_possible = len(fn.params) <= MOST_PARAMETERS and not any(param.is_variadic for param in fn.params)

    def _in_python(self, grid: Any) -> Callable[..., Any]:
        native: Callable[..., Any] | None = None

        def launch(*args: Any, **keywords: Any) -> Any:
            nonlocal native
            if native is None and self.record is not None:  # since `kernel[grid]` was taken
                native = self.at(grid)
            with api_boundary:
                return native(*args, **keywords) if native else self._fn.run_noted(grid, args, keywords)

        return launch

    def forget(self) -> None:
        """Launch nothing any more but what is noted from now on."""
        self._entries.clear()

    def note(self, bound: Binding, found: Any) -> None:
        """Let launches with these tokens and options be fast, if they can be."""
        if not self._can_be_fast(found) or len(bound.options) > MOST_OPTIONS or found.num_noted >= MOST_NOTED:
            return
        if knobs.runtime.add_stages_inspection_hook is not None:  # what it has changed is not what is launched without
            return
        launcher = _policy.launcher()
        if launcher is None:
            return
        if self.record is None:
            record = kernel_record(self._fn, self._entries, launcher, self._fn.run_noted)
            self.launcher, self.at = launcher, launcher.subscript(record)
            self.record = record  # last: what asks for it then takes `at`
        found.num_noted += 1
        made = _entry(launcher, self._fn, bound, found)
        if made is None:
            return
        if len(self._entries) >= MOST_ENTRIES:
            self.forget()
        key, entry = made
        self._entries[key] = entry

    def _can_be_fast(self, found: Any) -> bool:
        """Those of checked kernels are not: they are told of the arrays."""
        is_plain = hasattr(found.kernel.launch, "run_packed") and not found.kernel.metadata.is_checked
        return self._is_possible and is_plain

    def prepared(self, bound: Binding, found: Any, grid: tuple[int, int, int], run: Callable[..., Any]) -> Any:
        """A function that launches what was found for arguments with the same tokens, without its conditions.

        `run(grid, args, keywords)` does it in Python. None where machine code cannot do it.
        """
        launcher = the_launcher() if self._can_be_fast(found) else None
        made = launcher and _entry(launcher, self._fn, bound, found, is_prepared=True)
        return made and launcher.prepared(kernel_record(self._fn, {}, launcher, run), made[1], grid)


def _entry(
    launcher: Launcher, fn: JITFunction, bound: Binding, found: Any, is_prepared: bool = False
) -> tuple[int, tuple] | None:
    """The hash of the key and the entry, a record and what it needs to live; None where there can be none."""
    kept: list[Any] = []
    words = list(_words(fn.params, bound, launcher, kept))
    conditions = [] if is_prepared else list(_conditions(fn))
    slots = list(_slots(found.kernel.metadata.runtime_params, bound))
    launch = found.kernel.launch
    native: NativeLaunch | None = launch.native_launch(**found.where)
    if None in conditions or len(slots) > MOST_SLOTS:
        return None
    run_packed = api_boundary(partial(launch.run_packed, **found.where))
    fields = {"kernel": found.kernel, "run_packed": run_packed, "none": None}
    numbers = {"fire": 0}
    target: tuple[int, ...] = ()
    if native is not None:
        fields |= {"fail": native.fail, "device": native.device}
        fields |= {"stream": native.stream} if native.stream else {}
        conditions += [(IS_ITEM, *condition) for condition in native.conditions]
        numbers, target = {"fire": native.function}, native.target
    described = [condition_record(*condition) for condition in conditions]
    numbers |= {name: id(value) for name, value in fields.items()}
    measures = [partial(_measure, bound.tokens[index], part) for index, part, *_ in slots]
    kept += measures
    apart = apart_words(found.kernel.metadata, _objects(fn.params, slots, is_prepared), list(map(id, measures)))
    record = to_bytes(entry_words(numbers, words, described, slots, target, apart))
    return launcher.hash(words), (record, kept, conditions, fields, bound.options)


def _objects(params: Sequence[Parameter], slots: Sequence[list[int]], is_prepared: bool) -> list[int]:
    """For each slot the number of the argument: of all, or, where a launch is prepared, of those that are passed."""
    passed = [index for index, param in enumerate(params) if not (is_prepared and param.is_constexpr)]
    return [passed.index(slot[SLOT.index("parameter")]) for slot in slots]


def _measure(token: Token, part: int, value: Any) -> bytes | None:
    """Where the elements of an array are that is an argument, or a part of one."""
    return view_words(view_of(passed_values(value, token)[0 if part == WHOLE else part]))


def _words(params: tuple[Parameter, ...], bound: Binding, launcher: Launcher, kept: list[Any]) -> Iterator[int]:
    """The words of the key. What is compared by its address is kept."""
    for param, value, token in zip(params, bound.values, bound.tokens, strict=True):
        if param.is_constexpr:
            kept.append(value)
            yield from numbers.of_constant(value)
        else:
            yield numbers.of(token)
            launcher.learn(value, token)
    for name, value in bound.options.items():
        yield id(name)
        yield from numbers.of_constant(value)


def _conditions(fn: JITFunction) -> Iterator[tuple[int, Any, Any, Any] | None]:
    """What has to be as it is now; None where something cannot be looked at."""
    yield from (_in_environment(variable) for variable in LAUNCH_VARIABLES)
    yield IS_ATTRIBUTE, SourceFunction, "num_updates", SourceFunction.num_updates
    yield IS_FALSE_ITEM, vars(fn), "pre_run_hooks", None
    yield IS_ITEM, vars(fn), "run", MISSING
    yield IS_ATTRIBUTE, type(fn), "run", type(fn).run  # nobody has replaced it now
    yield IS_ITEM, vars(knobs), "runtime", knobs.runtime
    yield IS_FALSE_ITEM, vars(knobs.runtime), "add_stages_inspection_hook", None
    for name in ("launch_enter_hook", "launch_exit_hook"):
        yield IS_FALSE_ITEM, vars(knobs.runtime), name, None
        yield IS_FALSE_ATTRIBUTE, CompiledKernel, name, None
    yield from map(_unchanged, fn.watched_now())


def _in_environment(variable: str) -> tuple[int, Any, Any, Any] | None:
    entry = environment_entry(variable)
    return entry and (IS_ITEM, entry[0], entry[1], entry[0].get(entry[1], MISSING))


def _unchanged(reference: Reference) -> tuple[int, Any, Any, Any] | None:
    how, owner = holder(reference)
    kinds = {"item": IS_ITEM, "subscript": IS_SUBSCRIPT, "attribute": IS_ATTRIBUTE, "cell": IS_IN_CELL}
    return how and (kinds[how], owner, reference.key, reference.current())


def _slots(params: tuple[Any, ...], bound: Binding) -> Iterator[list[int]]:
    """Where the compiled kernel's arguments come from."""
    types = iter(params)
    for index, (token, passed) in enumerate(zip(bound.tokens, bound.passed, strict=True)):
        if not is_passed(token):
            continue
        parts = range(len(passed)) if isinstance(passed, tuple) else (WHOLE,)
        assert not is_tuple(token) or isinstance(passed, tuple)
        for part in parts:
            type = next(types).type
            mask = (1 << _INTEGER_BITS.get(type, 64)) - 1
            yield SLOT.pack(parameter=index, part=part, format=_FORMATS.get(type, AS_INTEGER), mask=mask)
    assert next(types, None) is None

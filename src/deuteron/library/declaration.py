"""What is asked for: a library of kernels, each as a cross product of types, constexprs, options and targets.

    Library("norms", targets=["cpu", "cuda:90"], kernels=[Kernel(
        source="kernels/norms.py", name="rms_norm", grid="n_rows", host_parameters={"n_rows": "i32"},
        types={"X": ["*fp16:16", "*fp32:16"], "Y": "same:X", "n": "i32"},
        constexprs={"BLOCK": [1024, 4096]}, options={"num_warps": [4, 8]},
        exclude=[{"BLOCK": 4096, "num_warps": 4}])])

A list is an axis of the cross product, `same:X` what X has. The keys of a table in deuteron.toml are these names. What
can be said without the kernel is checked here; the rest by the worker, which has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from deuteron.aot.naming import check_header_name, is_function_name, is_namespace, no_function_name
from deuteron.aot.targets import select_target
from deuteron.errors import Location, UsageError, suggest
from deuteron.settings import BOUNDS, settings
from deuteron.tracebacks import api_boundary

SAME = "same:"
SYSTEMS = ("linux", "macos", "windows")
_NAMES_IN_CXX = ("cpu", "checked")  # in the namespace of every library
_TUNE_KEYS = {"sizes": Mapping, "arguments": Mapping, "reset_to_zero": list | tuple}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS = (bool, int, float, str)


def nowhere(*keys: str | int) -> Location | None:
    """The place of a key in a declaration that is no file."""
    return None


@api_boundary
@dataclass(frozen=True)
class Kernel:
    """A kernel of a library. `source` is a file, relative to the declaration's folder, or `module` a module.

    `out_name` is what the functions are called, without it the kernel's name. Of `exclude`, a variant that has all
    the values of a table is left out. `tuned` is a file of timings, relative to the declaration's folder, by which the
    default algorithm is chosen, and `tune` what `deuteron tune` measures: `sizes`, values of whole parameters, whose
    names are the key, `arguments`, the elements of arrays and what other parameters are, and `reset_to_zero`, arrays
    that every launch finds so. `place` says where a key was written.
    """

    name: str
    grid: str
    source: str | None = None
    module: str | None = None
    out_name: str | None = None
    types: Mapping[str, Any] = field(default_factory=dict)
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    host_parameters: Mapping[str, str] = field(default_factory=dict)
    exclude: Sequence[Mapping[str, Any]] = ()
    tuned: str | None = None
    tune: Mapping[str, Any] = field(default_factory=dict)
    place: Callable[..., Location | None] = field(default=nowhere, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("name", "grid", "source", "module", "out_name", "tuned"):
            if not isinstance(getattr(self, name), str | None):
                way_out = ' with a comma between its parts: grid = "cdiv(m, 64), n"' if name == "grid" else ""
                raise self.error(f"'{name}' is a text{way_out}, got {getattr(self, name)!r}", name)
        if bool(self.source) == bool(self.module):
            raise self.error(f"kernel '{self.name}' needs either 'source', a file, or 'module'", "name")
        if not is_function_name(self.function):
            raise self.error(f"{no_function_name(self.function)}: give an 'out_name'", "out_name")
        if self.function in _NAMES_IN_CXX:
            raise self.error(f"'{self.function}' is a name of a library's own in C++: give an 'out_name'", "out_name")
        for name in ("types", "constexprs", "options", "host_parameters"):
            if not isinstance(getattr(self, name), Mapping):
                raise self.error(f"'{name}' is a table, got {getattr(self, name)!r}", name)
        for group in ("types", "constexprs", "options"):
            self._check_axes(group)
        self._check_exclusions()
        self._check_tuning()

    @property
    def function(self) -> str:
        return self.name if self.out_name is None else self.out_name

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values of every type, constexpr and option, those that follow another one included, which have none."""
        types = {name: hinted_types(value) for name, value in self.types.items()}
        others = (self.constexprs, self.options)
        return types | {name: _values(value) for group in others for name, value in group.items()}

    def error(self, message: str, *keys: str | int) -> UsageError:
        """A mistake, at the place of a key."""
        return UsageError(message, self.place(*keys))

    def _check_axes(self, group: str) -> None:
        axes = getattr(self, group)
        for name, value in axes.items():
            if isinstance(value, list) and not value:
                raise self.error(f"the list of '{name}' is empty, so that nothing is compiled", group, name)
            for i, item in enumerate(_values(value)):
                if not isinstance(item, _SCALARS) and not (group == "constexprs" and _is_tuple(item)):
                    raise self.error(f"'{name}' cannot have the value {item!r}", group, name, i)
                if group == "types" and not isinstance(item, str):
                    raise self.error(f"the type of '{name}' is a text such as \"*fp16:16\", got {item!r}", group, name)
                if group == "types" and item == "None":
                    advice = f"a kernel with {name} = \"None\" among its constexprs, and an 'out_name', does without it"
                    raise self.error(f"None is the type of no parameter, but a value: {advice}", group, name)
                if group == "types" and len({bare_type(each) for each in hinted_types(item)}) > 1:
                    message = f"'|' is between the hints of one type, got {item!r}: types are a list"
                    raise self.error(message, group, name)
            if followed := followed_by(value):
                self._check_followed(group, name, followed)

    def _check_followed(self, group: str, name: str, followed: str) -> None:
        axes = getattr(self, group)
        if followed not in axes:
            known = ", ".join(other for other in axes if other != name) or "no others"
            message = f"'{name}' follows '{followed}', which is not among the {group}.{suggest(followed, axes)}"
            message += f" There are {known}"
            raise self.error(message, group, name)
        if followed_by(axes[followed]):
            raise self.error(f"'{name}' follows '{followed}', which follows another one itself", group, name)

    def _check_tuning(self) -> None:
        if not isinstance(self.tune, Mapping):
            raise self.error(f"'tune' is a table, got {self.tune!r}", "tune")
        for key, table in self.tune.items():
            if key not in _TUNE_KEYS:
                known = f"{suggest(key, _TUNE_KEYS)} It has {', '.join(_TUNE_KEYS)}"
                raise self.error(f"'tune' has no '{key}'.{known}", "tune", key)
            if not isinstance(table, _TUNE_KEYS[key]):
                kind = "a table" if _TUNE_KEYS[key] is Mapping else 'a list of arrays, ["counter"]'
                raise self.error(f"'{key}' is {kind}, got {table!r}", "tune", key)
        for name, sizes in self.tune.get("sizes", {}).items():
            if not _values(sizes) or not all(type(size) is int for size in _values(sizes)):
                raise self.error(f"the sizes of '{name}' are whole numbers, got {sizes!r}", "tune", "sizes", name)
        if self.tune and self.tuned is None:
            raise self.error("'tuned' names the file that is written by what 'tune' says", "tune")

    def _check_exclusions(self) -> None:
        if not isinstance(self.exclude, list | tuple):
            raise self.error(f"'exclude' is a list of tables, got {self.exclude!r}", "exclude")
        for i, excluded in enumerate(self.exclude):
            if not isinstance(excluded, Mapping) or not excluded:
                raise self.error(f"'exclude' has tables of names and values, got {excluded!r}", "exclude", i)
            for name, value in excluded.items():
                self._check_excluded(i, name, value)

    def _check_excluded(self, i: int, name: str, value: Any) -> None:
        axes = self.axes
        if name == "target":
            return
        if name not in axes:
            message = f"'exclude' names '{name}', which is no type, constexpr or option of the kernel"
            known = ", ".join([*axes, "target"])
            raise self.error(f"{message}.{suggest(name, axes)} There are {known}", "exclude", i, name)
        for item in _values(value):
            if item not in axes[name] and not followed_by(axes[name][0]):
                known = ", ".join(map(repr, axes[name]))
                raise self.error(f"'{name}' is never {item!r}: it has {known}", "exclude", i, name)


@api_boundary
@dataclass(frozen=True)
class Library:
    """A library by its name. `namespace` is that of its C++ functions; without it, its name.

    `objects` names the systems that machine code is made for besides, `torch` asks for operators of torch. With `check`
    "bounds" there are functions besides that check what kernels for processors access, with `line_info` these have
    debug information; without them DEUTERON_CHECK and DEUTERON_LINE_INFO say so. `root` is the folder that sources are
    relative to, `file` the one that declares it there.
    """

    name: str
    targets: Sequence[str]
    kernels: Sequence[Kernel]
    namespace: str | None = None
    shared: bool = False
    objects: Sequence[str] = ()
    torch: bool = False
    check: str | None = None
    line_info: bool = False
    root: Path = Path()
    file: str | None = None
    place: Callable[..., Location | None] = field(default=nowhere, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise self.error(f"'{self.name}' cannot be the name of a library: it has letters, digits and underscores")
        if not isinstance(self.targets, list | tuple) or not self.targets:
            raise self.error(f'\'targets\' is a list such as ["cpu", "cuda:90"], got {self.targets!r}', "targets")
        for i, target in enumerate(self.targets):
            self._check_target(i, target)
        self._check_names_in_c()
        for key in ("shared", "torch", "line_info"):
            if not isinstance(getattr(self, key), bool):
                raise self.error(f"'{key}' is true or false, got {getattr(self, key)!r}", key)
        if self.check not in (None, BOUNDS):
            raise self.error(f"'check' is \"{BOUNDS}\", got {self.check!r}", "check")
        self._check_objects()
        if not self.kernels:
            raise self.error(f"library '{self.name}' has no kernels")

    @property
    def declaring_files(self) -> list[str]:
        """What the library is made of beside the sources of its kernels, relative to `root`."""
        tuned = (kernel.tuned for kernel in self.kernels if kernel.tuned is not None)
        return list(dict.fromkeys([*([self.file] if self.file else []), *tuned]))

    @property
    def is_checked(self) -> bool:
        """Whether functions are made that check; DEUTERON_CHECK, where it is set, is stronger than the declaration."""
        return (self.check if settings.check is None else settings.check) == BOUNDS

    @property
    def has_lines(self) -> bool:
        return self.line_info or settings.line_info

    @property
    def cxx_namespace(self) -> str:
        return self.namespace or self.name

    def error(self, message: str, *keys: str | int) -> UsageError:
        return UsageError(message, self.place(*keys))

    def _check_names_in_c(self) -> None:
        try:
            check_header_name(self.name)
        except UsageError as error:
            raise self.error(error.message) from None
        if not isinstance(self.namespace, str | None) or not is_namespace(self.cxx_namespace):
            parts = ": its parts are words that C++ leaves free, joined by ::"
            advice = ": give a 'namespace'" if self.namespace is None else parts
            raise self.error(f"{self.namespace or self.name!r} cannot be a namespace of C++{advice}", "namespace")

    def _check_objects(self) -> None:
        if not isinstance(self.objects, list | tuple):
            raise self.error(f'\'objects\' is a list such as ["linux", "macos"], got {self.objects!r}', "objects")
        for i, system in enumerate(self.objects):
            if system not in SYSTEMS:
                raise self.error(f"objects are made for {', '.join(SYSTEMS)}, not {system!r}", "objects", i)

    def _check_target(self, i: int, target: Any) -> None:
        if not isinstance(target, str):
            raise self.error(f'a target is a text such as "cuda:90", got {target!r}', "targets", i)
        if target in self.targets[:i]:
            raise self.error(f"target '{target}' is there twice", "targets", i)
        try:
            select_target(target)
        except UsageError as error:
            raise self.error(error.message, "targets", i) from None


KERNEL_KEYS = tuple(known.name for known in fields(Kernel) if known.name != "place")
LIBRARY_KEYS = ("targets", "namespace", "shared", "objects", "torch", "check", "line_info", "kernel")


def followed_by(value: Any) -> str | None:
    """X of `same:X`."""
    return value[len(SAME) :].strip() if isinstance(value, str) and value.startswith(SAME) else None


def hinted_types(value: Any) -> list[Any]:
    """The types of an axis: `*fp16:16|*fp16` is two, of one type, which differ in their hints."""
    return [part.strip() if isinstance(part, str) else part for item in _values(value) for part in _parts(item)]


def _parts(item: Any) -> list[Any]:
    return item.split("|") if isinstance(item, str) else [item]


def bare_type(type: str) -> str:
    """A type without its hints, also those in a tuple."""
    return re.sub(r"\s*:\s*\d+\b", "", type)


def _is_tuple(value: Any) -> bool:
    """Whether it is a tuple of values, of which some may be tuples."""
    return isinstance(value, list | tuple) and all(isinstance(part, _SCALARS) or _is_tuple(part) for part in value)


def _values(value: Any) -> list[Any]:
    """The values of an axis."""
    return list(value) if isinstance(value, list) else [value]

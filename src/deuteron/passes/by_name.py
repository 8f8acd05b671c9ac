"""Passes by name, with their options as text.

    parse_passes("tile,pipeline-loads{num-stages=4},fold", {"tile": [...]}, [GPUConfig(...)])

    the passes of `tile`, PipelineLoads(GPUConfig(..., num_stages=4)), Fold()

    without(passes, ["fold"])            the others
    text_of(PipelineLoads(...))          "pipeline-loads{num-stages=4 ...}"

The options of a pass are its fields, with `-` for `_`. A field that is a dataclass (a configuration) is taken from the
objects given, and its numbers are options as well. There is no table: known is what the pipelines import.
"""

from __future__ import annotations

import difflib
import linecache
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, get_type_hints

from xdsl.passes import ModulePass

from deuteron.errors import Location, UsageError
from deuteron.passes import gpu, tile
from deuteron.passes.optimisation import Optimisation

FILE = "<passes>"
SCALARS = {int: "int", bool: "bool", float: "float", str: "str"}
_PASS = re.compile(r"\s*(?P<name>[\w-]+)(?:\{(?P<options>[^{}]*)\})?\s*(?:,|$)")
_OPTION = re.compile(r"\s*(?P<name>[\w-]+)(?:=(?P<value>[^\s,]+))?(?:[\s,]+|$)")


@dataclass(frozen=True)
class Option:
    """What can be said of a pass: a field of it, or of its field `within`."""

    name: str
    type: type
    field: str
    within: str | None = None


@cache
def known_passes() -> dict[str, type[ModulePass]]:
    """Every pass by its name, in the order of the pipelines' imports."""
    found = [value for package in (tile, gpu) for value in vars(package).values()]
    passes = [one for one in found if isinstance(one, type) and issubclass(one, ModulePass) and one is not ModulePass]
    return {one.name: one for one in passes}


def pass_class(name: str, location: Location | None = None, others: Collection[str] = ()) -> type[ModulePass]:
    """The pass of that name; raises UsageError that names the nearest, also of `others`."""
    known = known_passes()
    if name not in known:
        raise _unknown("pass", name, [*others, *known], location)
    return known[name]


def without(passes: Sequence[ModulePass], disabled: Collection[str]) -> list[ModulePass]:
    """The passes but those that are disabled; raises UsageError for what is no pass, or one that has to run."""
    for name in disabled:
        if not issubclass(pass_class(name), Optimisation):
            raise UsageError(f"pass '{name}' cannot be disabled: what comes after it needs what it makes")
    return [one for one in passes if one.name not in disabled]


def _unknown(what: str, name: str, known: Sequence[str], location: Location | None) -> UsageError:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known) or 'none'}"
    return UsageError(f"unknown {what} '{name}': {hint}", location)


def options_of(pass_class: type[ModulePass]) -> list[Option]:
    """The options of a pass, in the order of its fields."""
    return [option for name, type, _ in _typed_fields(pass_class) for option in _options_of_field(name, type)]


def _typed_fields(owner: type) -> Iterator[tuple[str, type, Any]]:
    """Name, type and default of each; MISSING where there is none."""
    types = get_type_hints(owner)
    for field in fields(owner):
        yield field.name, types[field.name], field.default


def _options_of_field(name: str, type: type) -> Iterator[Option]:
    if type in SCALARS:
        yield Option(_dashed(name), type, name)
    elif is_dataclass(type):
        for inner, inner_type, _ in _typed_fields(type):
            if inner_type in SCALARS:
                yield Option(_dashed(inner), inner_type, inner, name)


def _dashed(field: str) -> str:
    return field.replace("_", "-")


def text_of(one: ModulePass) -> str:
    """A pass and its options, as `parse_passes` takes them."""
    values = ((option.name, _option_of(one, option)) for option in options_of(type(one)))
    said = " ".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values)
    return f"{one.name}{{{said}}}" if said else one.name


def _option_of(one: ModulePass, option: Option) -> Any:
    return getattr(getattr(one, option.within) if option.within else one, option.field)


def parse_passes(
    text: str, pipelines: Mapping[str, Sequence[ModulePass]], objects: Iterable[object]
) -> list[ModulePass]:
    """The passes that a text names; raises UsageError with the place in the text."""
    _remember(text)
    given = {type(one): one for one in objects}
    return [one for found in _matches(_PASS, text, 0, "a pass") for one in _passes(found, pipelines, given)]


def _remember(text: str) -> None:
    """So that an error shows the text as the line of a file."""
    linecache.cache[FILE] = len(text), None, [text], FILE


def _matches(pattern: re.Pattern[str], text: str, begin: int, what: str, end: int | None = None) -> Iterator[re.Match]:
    end = len(text) if end is None else end
    while begin < end:
        found = pattern.match(text, begin, end)
        if found is None:
            raise UsageError(f"expected {what}, as in 'pass{{option=value}},other-pass'", _place(begin, end))
        yield found
        begin = found.end()


def _place(begin: int, end: int) -> Location:
    return Location(FILE, 1, begin + 1, end + 1)


def _passes(
    found: re.Match, pipelines: Mapping[str, Sequence[ModulePass]], given: Mapping[type, object]
) -> Sequence[ModulePass]:
    name, place = found["name"], _place(*found.span("name"))
    if name not in pipelines:
        return [_make(pass_class(name, place, pipelines), found, given, place)]
    if found["options"] is not None:
        raise UsageError(f"'{name}' is a pipeline, which has no options of its own", place)
    return pipelines[name]


def _make(made: type[ModulePass], found: re.Match, given: Mapping[type, object], place: Location) -> ModulePass:
    if made.__module__.startswith(gpu.__name__):
        _need(gpu.GPUConfig, made, given, place)
    said = _said(made, found)
    arguments = dict(said.pop(None, {}))
    for field, type, default in _typed_fields(made):
        if is_dataclass(type):
            _need(type, made, given, place)
            arguments[field] = _changed(given[type], said.get(field, {}), place)
        elif default is MISSING and field not in arguments:
            raise UsageError(f"pass '{made.name}' needs the option '{_dashed(field)}'", place)
    return made(**arguments)


def _need(type: type, made: type[ModulePass], given: Mapping[type, object], place: Location) -> None:
    if type not in given:
        raise UsageError(f"pass '{made.name}' needs a {type.__name__}: give a target that has one", place)


def _changed(given: Any, said: Mapping[str, Any], place: Location) -> Any:
    """A configuration with other values; what it refuses is an error at the pass that they are said of."""
    try:
        return replace(given, **said)
    except UsageError as error:
        raise UsageError(error.message, place) from None


def _said(made: type[ModulePass], found: re.Match) -> dict[str | None, dict[str, Any]]:
    """The values that the text has, by field; under None those of the pass itself."""
    options = {option.name: option for option in options_of(made)}
    said: dict[str | None, dict[str, Any]] = {}
    if not found["options"]:
        return said
    for match in _matches(_OPTION, found.string, found.start("options"), "an option", found.end("options")):
        option = options.get(match["name"])
        if option is None:
            raise _unknown(f"option of {made.name}", match["name"], list(options), _place(*match.span("name")))
        said.setdefault(option.within, {})[option.field] = _value(option, match)
    return said


def _value(option: Option, match: re.Match) -> Any:
    text = match["value"]
    if text is None:
        if option.type is bool:
            return True
        raise UsageError(f"option '{option.name}' needs a value", _place(*match.span("name")))
    try:
        return _READ[option.type](text)
    except (KeyError, ValueError):
        message = f"option '{option.name}' is {_EXPECTED[option.type]}, got '{text}'"
        raise UsageError(message, _place(*match.span("value"))) from None


def _count(text: str) -> int:
    """The whole numbers of passes count something."""
    if not text.isdecimal():
        raise ValueError
    return int(text)


_READ: dict[type, Callable[[str], Any]] = {
    int: _count,
    bool: {"true": True, "false": False}.__getitem__,
    float: float,
    str: str,
}
_EXPECTED = {int: "a whole number, 0 or more", bool: "true or false", float: "a number", str: "a text"}

"""What JSON gave, as the annotations of dataclasses say that it is: files may be damaged, or changed by hand.

    read_json(text)                                             {"name": "x", "type": "*fp32", ...}
    read_value(Param, {"name": "x", "type": "*fp32", ...})      Param(name="x", type="*fp32", ...)
    read_value(Param, {"name": "x", "type": 3, ...})            ValueError: type is 3, and must be a text
    read_value(tuple[Param, ...], [{"name": "x"}])              ValueError: [0].type is missing

Arrays become tuples, objects become dataclasses. Every field has to be there, one with a default too: that of `written`
would say of a kernel what nobody found out. A bool is no number. What reads a type is made once; a kernel's metadata
take 0.1 ms.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from deuteron.errors import counted

Read = Callable[[Any], Any]
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def read_json(text: str | bytes) -> Any:
    """What a text says; raises ValueError where that is nothing, or nests too deep for Python."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def read_value(kind: Any, value: Any) -> Any:
    """The value of a type; raises ValueError that says what is of another one."""
    return _reader(kind)(value)


class _WrongValue(ValueError):
    """What is wrong, and where: `at` is put before it on the way out."""

    def __init__(self, what: str, place: str = ""):
        super().__init__(f"{place.removeprefix('.') or 'it'} {what}")
        self._what, self._place = what, place

    def at(self, outer: str) -> _WrongValue:
        return _WrongValue(self._what, outer + self._place)


def _wrong(kind: Any, value: Any) -> _WrongValue:
    return _WrongValue(f"is {value!r:.60}, and must be {_in_words(kind)}")


def _in_words(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_in_words, get_args(kind))))
    return _WORDS.get(origin) or ("an array" if origin is tuple else "an object")


@functools.cache
def _reader(kind: Any) -> Read:
    if kind is Any:
        return lambda value: value
    if is_dataclass(kind):
        return functools.partial(_read_object, kind, _readers_of(kind))
    origin = get_origin(kind)
    if origin is tuple:
        return _tuple_reader(kind)
    if origin in (dict, Mapping):
        return functools.partial(_read_dict, kind, _reader(get_args(kind)[1]))
    if origin in (Union, UnionType):
        return functools.partial(_read_one_of, kind)
    return functools.partial(_read_plain, kind)


def _readers_of(kind: Any) -> dict[str, Read]:
    types = get_type_hints(kind)
    return {field.name: _reader(types[field.name]) for field in fields(kind)}


def _read_plain(kind: Any, value: Any) -> Any:
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    if kind is tuple and type(value) is list:
        return _as_tuple(value)
    raise _wrong(kind, value)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _read_object(kind: Any, readers: Mapping[str, Read], value: Any) -> Any:
    if type(value) is not dict:
        raise _wrong(kind, value)
    if readers.keys() != value.keys():
        name = next(name for name in (*readers, *value) if name not in readers or name not in value)
        raise _WrongValue("is missing" if name in readers else "is no field", f".{name}")
    return kind(**{name: _read_at(f".{name}", read, value[name]) for name, read in readers.items()})


def _read_at(place: str, read: Read, value: Any) -> Any:
    try:
        return read(value)
    except _WrongValue as error:
        raise error.at(place) from None


def _read_dict(kind: Any, read: Read, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong(kind, value)
    return {name: _read_at(f".{name}", read, item) for name, item in value.items()}


def _tuple_reader(kind: Any) -> Read:
    kinds = get_args(kind)
    if kinds[-1] is Ellipsis:
        return functools.partial(_read_array, kind, _reader(kinds[0]))
    return functools.partial(_read_items, kind, tuple(map(_reader, kinds)))


def _read_array(kind: Any, read: Read, value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise _wrong(kind, value)
    return tuple([_read_at(f"[{i}]", read, item) for i, item in enumerate(value)])


def _read_items(kind: Any, readers: tuple[Read, ...], value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise _wrong(kind, value)
    if len(value) != len(readers):
        raise _WrongValue(f"has {counted(len(value), 'item')}, and must have {len(readers)}")
    return tuple(_read_at(f"[{i}]", read, item) for i, (read, item) in enumerate(zip(readers, value, strict=True)))


def _read_one_of(kind: Any, value: Any) -> Any:
    """Of dataclasses the one that has most of these fields: what is wrong in it is said of it."""
    objects = [one for one in get_args(kind) if is_dataclass(one)]
    if objects and type(value) is dict:
        return _reader(max(objects, key=lambda one: len(value.keys() & {field.name for field in fields(one)})))(value)
    for one in get_args(kind):
        with contextlib.suppress(_WrongValue):
            return _reader(one)(value)
    raise _wrong(kind, value)

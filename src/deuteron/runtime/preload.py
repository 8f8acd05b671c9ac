"""What a kernel was compiled for as a text, from which another process compiles it before it is launched.

    written(tokens, options)            {"tokens": ["*fp32:16", "i32", {"constexpr": {"value": 128}}], "options": ...}
    read(fn, given)                     the Binding of a launch with such arguments

A constexpr may be a number, a text, None, a dtype, a member of an Enum, a function of the language, what Python imports
by its name, or tuples, lists, dictionaries and sets of these; of others there is no text (None).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from operator import attrgetter
from typing import Any
from weakref import WeakValueDictionary

from deuteron.errors import UsageError, counted
from deuteron.language.functions.names import module_of, name_of
from deuteron.language.functions.source_functions import SourceFunction
from deuteron.language.signature import DESCRIPTOR
from deuteron.language.types import dtype
from deuteron.runtime.binding import Binding
from deuteron.runtime.specialise import Token, constexpr_token, is_tuple

_functions: WeakValueDictionary[str, Any] = WeakValueDictionary()
_collecting: list[dict[str, Any]] = []
_PLAIN = (type(None), bool, int, str)
_SEVERAL = {"tuple": tuple, "list": list, "set": set}


def written(tokens: Sequence[Token], options: Mapping[str, Any]) -> dict[str, Any] | None:
    """What JSON can hold; None where something has no text."""
    try:
        found = [[name, _written_value(value)] for name, value in options.items()]
        return {"tokens": [_written_token(token) for token in tokens], "options": found}
    except LookupError:
        return None


def read(params: Sequence[Any], given: Any) -> Binding:
    """The arguments as a launch binds them, without arrays; raises UsageError for what is no such text."""
    try:
        pairs = [_read_token(token) for token in given["tokens"]]
        options = {name: _read_value(value) for name, value in given["options"]}
    except (LookupError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise UsageError(f"this is not what a kernel was compiled for: {error!r}") from error
    if len(pairs) != len(params):
        raise UsageError(f"this is of a kernel with {counted(len(pairs), 'parameter')}, and there are {len(params)}")
    tokens = tuple(token for token, _ in pairs)
    passed = [() if _has_parts(token) else 0 for token in tokens]
    return Binding([value for _, value in pairs], options, tokens, passed)


def read_specialization(text: str) -> tuple[str, Any, Any]:
    """The name of the kernel that hooks were told of in a text, what it was compiled for, and the target."""
    from deuteron.json_fields import read_json  # deferred: to define a kernel does not need it

    try:
        found = read_json(text)
        name, given, target = found["name"], found["asked"], found["target"]
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"this is not what a kernel was compiled for: {error!r}") from error
    if given is None:
        raise UsageError(f"{name} was compiled for a constexpr of which there is no text")
    return name, given, target


def _has_parts(token: Token) -> bool:
    return is_tuple(token) or (isinstance(token, str) and token.lstrip("!").startswith(DESCRIPTOR))


def _written_token(token: Token) -> Any:
    if isinstance(token, str):
        return token
    if is_tuple(token):
        items = [_written_token(item) for item in token[2:]]
        return {"tuple": items, "class": _written_name(token[1])}
    return {"constexpr": _written_value(_held(*token[1:]))}


def _read_token(found: Any) -> tuple[Token, Any]:
    """The token and an argument that has it, as far as a compile looks at it."""
    if isinstance(found, str):
        return found, 1 if found.endswith(":1") else None
    if "tuple" in found:
        kind = _read_name(found["class"])
        pairs = [_read_token(item) for item in found["tuple"]]
        values = [value for _, value in pairs]
        return ("tuple", kind, *(token for token, _ in pairs)), kind(values) if kind is tuple else kind(*values)
    return constexpr_token(_read_value(found["constexpr"]))


def _held(kind: type, *held: Any) -> Any:
    """The value of a constexpr's token."""
    if kind is float:
        return float.fromhex(held[0])
    if kind is dict:
        return {_held(*key): _held(*value) for key, value in held}
    if kind in (tuple, list):
        return kind(_held(*item) for item in held)
    return {_held(*item) for item in held[0]} if kind is set else held[0]


def _written_value(value: Any) -> Any:
    """Raises LookupError where there is no text."""
    kind = type(value)
    if kind in _PLAIN:
        return {"value": value}
    if kind is float:
        return {"float": value.hex()}
    if kind is dtype:
        return {"dtype": value.name}
    if kind is dict:
        return {"dict": [[_written_value(key), _written_value(item)] for key, item in value.items()]}
    for name, several in _SEVERAL.items():
        if kind is several:
            return {name: [_written_value(item) for item in value]}
    if isinstance(value, Enum):
        return {"member": [_written_name(kind), value.name]}
    if isinstance(value, SourceFunction):
        return {"function": [_name_of(value), value.cache_key]}
    return {"name": _written_name(value)}


def _read_value(found: dict[str, Any]) -> Any:
    ((how, content),) = found.items()
    readers = {
        "value": lambda: content,
        "float": lambda: float.fromhex(content),
        "dtype": lambda: dtype(content),
        "dict": lambda: {_read_value(key): _read_value(item) for key, item in content},
        "name": lambda: _read_name(content),
        "member": lambda: _read_name(content[0])[content[1]],
        "function": lambda: _read_function(*content),
    }
    if how in _SEVERAL:
        return _SEVERAL[how](map(_read_value, content))
    return readers[how]()


def _written_name(value: Any) -> str:
    """`module:name`, where that leads back to the object."""
    name = _name_of(value)
    try:
        if _read_name(name) is value:
            return name
    except (AttributeError, ImportError, ValueError):
        pass
    raise LookupError(f"{value!r} cannot be written down")


def _name_of(value: Any) -> str:
    return f"{name_of(getattr(value, '__module__', ''))}:{getattr(value, '__qualname__', '')}"


def register(function: Any) -> None:
    """Let a function be found by its name where Python does not import it by that; of several the last one."""
    name = _name_of(function)
    _functions[name] = function
    for found in _collecting:
        found[name] = function


@contextmanager
def collected() -> Iterator[dict[str, Any]]:
    """The functions that are registered within, under `module:name`: those, too, that are local to others."""
    found: dict[str, Any] = {}
    _collecting.append(found)
    try:
        yield found
    finally:
        _collecting.remove(found)


def _read_function(name: str, key: str) -> Any:
    """The function of that name, if it is written as it was."""
    try:
        found = _read_name(name)
    except (AttributeError, ImportError):
        found = _functions[name]
    if found.cache_key != key:
        raise ValueError(f"the source of {name}, or what it uses, is another")
    return found


def _read_name(name: str) -> Any:
    module, _, path = name.partition(":")
    return attrgetter(path)(module_of(module))

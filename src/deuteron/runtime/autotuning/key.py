"""What a choice of an autotuner holds for: the values of its `key`, and the dtypes of all arrays.

key_of_launch(["x_ptr", "n"], ["n"], (x, 100), {})          (100, "float32")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from deuteron.language.signature import leaves


def key_of_launch(names: Sequence[str], keys: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple:
    """What a choice holds for: the values of `key`, and the dtypes of all arrays."""
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in names:
            given[name] = value
    key = [key_of_value(given[name]) for name in keys if name in given]
    for value in given.values():
        dtype = getattr(value, "dtype", None)
        if dtype is not None:
            key.append(_text_of(dtype))
        elif isinstance(value, tuple):
            key += [str(array.dtype) for _, array in arrays_in({"": value})]
    return tuple(key)


def key_of_value(value: Any) -> Any:
    """What of an argument decides: a number itself, of an array its type."""
    if hasattr(value, "dtype"):
        return _text_of(value.dtype)
    if isinstance(value, tuple):
        return tuple(map(key_of_value, value))
    return value


@lru_cache
def _text_of(dtype: Any) -> str:
    """A dtype's text, which takes NumPy 5 us to make."""
    return str(dtype)


def arrays_in(named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The arrays among the arguments, those in tuples one by one, with their names."""
    parts = (part for name, value in named.items() for part in leaves(name, value))
    return [(name, part) for name, part in parts if hasattr(part, "dtype")]

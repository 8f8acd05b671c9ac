"""The content of an array, of NumPy or torch's kind, or of the arrays in a tuple: set to zero, copied, written back."""

from __future__ import annotations

from typing import Any

from deuteron.language.signature import leaves
from deuteron.runtime.mock import TensorWrapper


def fill_with_zeros(array: Any) -> None:
    array = _base(array)
    if isinstance(array, tuple):
        for item in _arrays(array):
            fill_with_zeros(item)
    elif hasattr(array, "zero_"):
        array.zero_()
    else:
        array[...] = 0


def copy_of(array: Any) -> Any:
    array = _base(array)
    if isinstance(array, tuple):
        return [copy_of(item) for item in _arrays(array)]
    return array.clone() if hasattr(array, "clone") else array.copy()


def write_back(array: Any, content: Any) -> None:
    array = _base(array)
    if isinstance(array, tuple):
        for item, its in zip(_arrays(array), content, strict=True):
            write_back(item, its)
    elif hasattr(array, "copy_"):
        array.copy_(content)
    else:
        array[...] = content


def _arrays(items: tuple) -> list[Any]:
    return [item for _, item in leaves("", items) if hasattr(_base(item), "dtype")]


def _base(array: Any) -> Any:
    return array.base if isinstance(array, TensorWrapper) else array

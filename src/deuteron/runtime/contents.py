"""The content of an array, of NumPy or torch's kind: set to zero, copied, written back."""

from __future__ import annotations

from typing import Any

from deuteron.runtime.mock import TensorWrapper


def fill_with_zeros(array: Any) -> None:
    array = _base(array)
    if hasattr(array, "zero_"):
        array.zero_()
    else:
        array[...] = 0


def copy_of(array: Any) -> Any:
    array = _base(array)
    return array.clone() if hasattr(array, "clone") else array.copy()


def write_back(array: Any, content: Any) -> None:
    array = _base(array)
    if hasattr(array, "copy_"):
        array.copy_(content)
    else:
        array[...] = content


def _base(array: Any) -> Any:
    return array.base if isinstance(array, TensorWrapper) else array

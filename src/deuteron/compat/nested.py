"""`triton._utils`: tuples within tuples, and names of types.

find_paths_if((1, (2, "a")), lambda path, value: isinstance(value, int))      [(0,), (1, 0)]
get_iterable_path((1, (2, "a")), (1, 0))                                      2
canonicalize_dtype("torch.float16")                                           "fp16"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deuteron import language
from deuteron.backend.arrays import ELEMENT_TYPES
from deuteron.language.signature import SCALARS
from deuteron.language.types import dtype


def get_iterable_path(nested: Any, path: tuple[int, ...]) -> Any:
    """What is at a path of indices."""
    for index in path:
        nested = nested[index]
    return nested


def find_paths_if(nested: Any, predicate: Callable[[tuple[int, ...], Any], bool]) -> list[tuple[int, ...]]:
    """The paths of what is in no tuple or list, where the predicate says so, in order."""

    def visit(current: Any, path: tuple[int, ...]) -> list[tuple[int, ...]]:
        if isinstance(current, tuple | list):
            return [found for index, item in enumerate(current) for found in visit(item, (*path, index))]
        return [path or (0,)] if predicate(path, current) else []

    return visit(nested, ())


def is_iterable(value: Any) -> bool:
    return isinstance(value, list | tuple | language.tuple)


def canonicalize_dtype(type: Any) -> str:
    """The name of an element type in signatures: of a dtype of any library, or of its text."""
    text = type.name if isinstance(type, dtype) else str(type).rpartition(".")[2]
    return ELEMENT_TYPES.get(text, text)


def canonicalize_ptr_dtype(type: Any, is_const: bool) -> str:
    return ("*k" if is_const else "*") + canonicalize_dtype(type)


def validate_block_shape(shape: Any) -> int:
    """The number of elements of a tile; raises TypeError, or ValueError where an extent is no power of two."""
    numel = 1
    for place, extent in enumerate(shape):
        if not isinstance(extent, int):
            raise TypeError(f"extent {place} of a tile must be a whole number known when compiling, got {extent!r}")
        if extent < 1 or extent & (extent - 1):
            raise ValueError(f"extent {place} of a tile must be a power of two, got {extent}")
        numel *= extent
    if numel > language.TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"a tile has at most {language.TRITON_MAX_TENSOR_NUMEL} elements, got {numel}")
    return numel


def get_primitive_bitwidth(type: str) -> int:
    """The bits of an element type by its name in signatures; raises KeyError for what is none."""
    return BITS[type]


BITS = {name: type.primitive_bitwidth for name, type in SCALARS.items()}
NESTED_NAMES = {
    "BITWIDTH_DICT": BITS,
    "get_primitive_bitwidth": get_primitive_bitwidth,
    "is_power_of_two": lambda number: number > 0 and number & (number - 1) == 0,
    "is_namedtuple": lambda cls: isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"),
    "type_canonicalisation_dict": dict(ELEMENT_TYPES),
    "get_iterable_path": get_iterable_path,
    "find_paths_if": find_paths_if,
    "is_iterable": is_iterable,
    "canonicalize_dtype": canonicalize_dtype,
    "canonicalize_ptr_dtype": canonicalize_ptr_dtype,
    "validate_block_shape": validate_block_shape,
    "TRITON_MAX_TENSOR_NUMEL": language.TRITON_MAX_TENSOR_NUMEL,
}

"""Types as the text of signatures, in Triton's spelling.

    parse_type("*fp16")          pointer_type(float16)
    parse_type("u8")             uint8
    type_text(float32)           "fp32"
    type_text(pointer_type(int1))   "*i1"
    parse_type("tensordesc<fp16[128,64]>")         a descriptor of a tensor, in blocks of 128x64
    parse_type("tensordesc<fp16[128,64],nan>")     the same, with NaN out of bounds

A parameter that is a tuple has a tuple of types, of the same kind (a named tuple where that is one); what it holds has
names of its own: `args_0`, or with the names of the fields `args_x`.

`*k` marks a pointer to constant data. Hints (`:16`) and `constexpr` are not types; readers of a signature strip them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from deuteron.dtypes import FLOATS, INTEGERS
from deuteron.errors import UsageError
from deuteron.language.types import (
    TRITON_MAX_TENSOR_NUMEL,
    block_type,
    constexpr_type,
    dtype,
    int32,
    int64,
    pointer_type,
    tensor_descriptor_type,
    tuple_type,
)

SCALARS: dict[str, dtype] = {type.signature: dtype(type.dtype_name) for type in (*INTEGERS, *FLOATS)}
ALIASES = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}

_LONG_NAMES = {
    "int": "i32",
    "long": "i64",
    "bool": "i1",
    "float": "fp32",
    "double": "fp64",
    "half": "fp16",
    "bfloat16": "bf16",
    **{f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}

DESCRIPTOR = "tensordesc<"
_DESCRIPTOR = re.compile(r"tensordesc<(\w+)\[([\d\s,]+)\](?:,\s*(zero|nan))?>")

_TEXTS = {type: text for text, type in SCALARS.items()}


def part_names(name: str, items: tuple) -> list[str]:
    """The names of what a parameter that is a tuple holds."""
    return [f"{name}_{field}" for field in getattr(items, "_fields", range(len(items)))]


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is in a parameter, or in its type, with the name of each: itself, or the items of a tuple, however deep."""
    if not isinstance(value, tuple):
        yield name, value
        return
    for part, item in zip(part_names(name, value), value, strict=True):
        yield from leaves(part, item)


def parse_type(text: str) -> dtype:
    """The type that a signature's text names; raises UsageError, with the nearest name, where there is none."""
    name = text.strip()
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(parse_type(name[2:] if const else name[1:]), const=const)
    if name.startswith(DESCRIPTOR):
        return _descriptor_type(name)
    scalar = SCALARS.get(ALIASES.get(name, name))
    if scalar is None:
        raise UsageError(_unknown_type(name))
    return scalar


def str_to_ty(name: Any, c: Any = None) -> dtype:
    """The type that a text means, in Triton's name for it: `*fp32`, `i32`, `tensordesc<fp16[8,8]>`, a tuple of such.

    `c` is the value where it is `constexpr`. Raises UsageError where there is no such type.
    """
    if isinstance(name, tuple):
        return tuple_type([str_to_ty(item, c) for item in name], getattr(name, "_fields", None))
    return constexpr_type(c) if name == "constexpr" else parse_type(name)


def _descriptor_type(text: str) -> tensor_descriptor_type:
    match = _DESCRIPTOR.fullmatch(text)
    if match is None:
        raise UsageError(f"Expected a descriptor such as tensordesc<fp16[128,64]>, got {text!r}.")
    element, extents, padding = match.groups()
    block_shape = [int(extent) for extent in extents.split(",")]
    if any(extent < 1 or extent & (extent - 1) for extent in block_shape):
        raise UsageError(f"The block of a descriptor has extents that are powers of two, got {text!r}.")
    if math.prod(block_shape) > TRITON_MAX_TENSOR_NUMEL:
        raise UsageError(f"The block of a descriptor has at most {TRITON_MAX_TENSOR_NUMEL} elements, got {text!r}.")
    block = block_type(parse_type(element), block_shape)
    return tensor_descriptor_type(block, padding or "zero")


class KernelArgument(NamedTuple):
    """An argument of a compiled kernel: its name, its type, and what it is promised to be a multiple of."""

    name: str
    type: dtype
    divisibility: int = 1


def descriptor_arguments(name: str, type: tensor_descriptor_type, divisibility: int = 1) -> list[KernelArgument]:
    """What a kernel gets for a descriptor: the pointer to the first element, sizes, and strides but the last, which
    is 1. Strides are multiples of 16 bytes, counted in elements; with a divisibility of 16 so is the last size.
    """
    element, rank = type.block_type.element_ty, len(type.block_type.shape)
    steps = max(16 // element.itemsize, 1)
    return [
        KernelArgument(name, pointer_type(element), 16),
        *(KernelArgument(f"{name}_shape_{axis}", int32) for axis in range(rank - 1)),
        KernelArgument(f"{name}_shape_{rank - 1}", int32, steps if divisibility % 16 == 0 else 1),
        *(KernelArgument(f"{name}_stride_{axis}", int64, steps) for axis in range(rank - 1)),
    ]


def _unknown_type(name: str) -> str:
    word = re.sub(r"^const\s+|[*\s]+$|_t\b", "", name)  # of C: const float *, int32_t
    short = word.rpartition(".")[2].lower()
    meant = [text for text, type in SCALARS.items() if type.name == short or _LONG_NAMES.get(short) == text]
    import difflib  # deferred: only a mistake needs it

    near = meant or difflib.get_close_matches(word, SCALARS, n=1)
    hint = f" Did you mean '{'*' * name.count('*')}{near[0]}'?" if near else ""
    return f"Unknown type {name!r}.{hint} Types are {', '.join(SCALARS)}, and with a * before them pointers to these."


def type_text(type: dtype) -> str:
    """The text of a type in a signature."""
    if type.is_ptr():
        return f"*{'k' if type.is_const() else ''}{type_text(type.element_ty)}"
    if isinstance(type, tensor_descriptor_type):
        block, padding = type.block_type, "" if type.padding == "zero" else f",{type.padding}"
        return f"{DESCRIPTOR}{type_text(block.element_ty)}[{','.join(map(str, block.shape))}]{padding}>"
    return _TEXTS[type]

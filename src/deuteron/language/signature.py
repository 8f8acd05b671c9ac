"""Types as the text of signatures, in Triton's spelling.

    parse_type("*fp16")          pointer_type(float16)
    parse_type("u8")             uint8
    type_text(float32)           "fp32"
    type_text(pointer_type(int1))   "*i1"

`*k` marks a pointer to constant data. Hints (`:16`) and `constexpr` are not types; readers of a signature strip them.
"""

from __future__ import annotations

import difflib

from deuteron.errors import UsageError
from deuteron.language.types import (
    bfloat16,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pointer_type,
    uint8,
    uint16,
    uint32,
    uint64,
)

SCALARS: dict[str, dtype] = {
    "i1": int1,
    "i8": int8,
    "i16": int16,
    "i32": int32,
    "i64": int64,
    "u8": uint8,
    "u16": uint16,
    "u32": uint32,
    "u64": uint64,
    "fp8e4nv": float8e4nv,
    "fp8e5": float8e5,
    "fp16": float16,
    "bf16": bfloat16,
    "fp32": float32,
    "fp64": float64,
}
ALIASES = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}

_TEXTS = {type: text for text, type in SCALARS.items()}


def parse_type(text: str) -> dtype:
    """The type that a signature's text names; raises UsageError, with the nearest name, where there is none."""
    name = text.strip()
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(parse_type(name[2:] if const else name[1:]), const=const)
    scalar = SCALARS.get(ALIASES.get(name, name))
    if scalar is None:
        raise UsageError(_unknown_type(name))
    return scalar


def _unknown_type(name: str) -> str:
    near = difflib.get_close_matches(name, SCALARS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"Unknown type {name!r}.{hint} Types are {', '.join(SCALARS)}, and with a * before them pointers to these."


def type_text(type: dtype) -> str:
    """The text of a type in a signature."""
    if type.is_ptr():
        return f"*{'k' if type.is_const() else ''}{type_text(type.element_ty)}"
    return _TEXTS[type]

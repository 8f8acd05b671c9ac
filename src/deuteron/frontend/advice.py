"""What to write instead of a name that is not there, by who writes it: NumPy's, torch's and Python's words.

    x.astype(tl.float32)     A value of type int32[8] has no 'astype'. Use .to(dtype).
    tl.half                  Module 'deuteron.language' has no 'half'. It is called tl.float16.
    round(x)                 'round' runs at compile time ... Use tl.floor(x + 0.5), or libdevice.rint(x).
    load(p)                  'load' is not defined. Did you mean 'tl.load'?

Nothing here decides what a kernel means.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from types import MethodType, ModuleType
from typing import Any

from deuteron import language
from deuteron.dtypes import FLOATS, INTEGERS
from deuteron.errors import suggest
from deuteron.language.types import dtype

TYPES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bool": "int1",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool_": "int1",
    "float8_e4m3fn": "float8e4nv",
    "float8_e5m2": "float8e5",
    **{type.signature: type.name for type in (*INTEGERS, *FLOATS)},
}
"""What other libraries, and signatures, call a type."""

METHODS = {
    **{name: f"Use .to(tl.{type})." for name, type in TYPES.items()},
    **dict.fromkeys(("astype", "type_as"), "Use .to(dtype)."),
    **dict.fromkeys(("clone", "copy", "contiguous", "detach"), "Leave it out: a value never changes."),
    **dict.fromkeys(("numpy", "cpu", "tolist"), "A kernel gives its results by storing them through pointers."),
    **dict.fromkeys(("dim", "ndim"), "Use len(x.shape)."),
    **dict.fromkeys(("matmul", "mm", "bmm"), "Use tl.dot(a, b)."),
    "size": "Use x.shape, or x.numel.",
    "mean": "Use tl.sum(x, axis) / n.",
    "prod": "Use tl.reduce with a function that multiplies.",
    "any": "Use tl.max(x != 0).",
    "all": "Use tl.min(x != 0).",
    "pow": "Use libdevice.pow.",
    "masked_fill": "Use tl.where(mask, value, x).",
    "transpose": "Use .trans(), or .permute(dims).",
    "flatten": "Use .ravel().",
    **dict.fromkeys(("squeeze", "unsqueeze"), "They are functions: tl.squeeze(x, dim), tl.unsqueeze(x, dim)."),
    **dict.fromkeys(("clamp", "clip"), "Use tl.clamp(x, min, max)."),
    **dict.fromkeys(("expand", "repeat"), "Use tl.broadcast_to(x, shape)."),
    **dict.fromkeys(
        ("at", "fill_", "zero_", "copy_", "add_", "scatter_"), "A value never changes: build one by tl.where."
    ),
    **dict.fromkeys(("stride", "strides"), "A tile has no place in memory, and no strides."),
    **dict.fromkeys(("var", "std"), "Use tl.sum((x - mean) * (x - mean), axis) / n."),
}
"""Methods that arrays and torch's tensors have, and a value of a kernel has not."""

NO_EXTENTS = "A pointer knows no sizes or strides of its array. Pass them as arguments."

FUNCTIONS = {
    **dict.fromkeys(("str", "repr", "format"), "Print a run-time value with tl.device_print."),
    **dict.fromkeys(("open", "input", "exec", "eval"), "Give the kernel what it needs as arguments."),
    "round": "Use tl.floor(x + 0.5), or libdevice.rint(x).",
    **dict.fromkeys(("random", "rand", "uniform"), "Use tl.rand(seed, offsets), numbers from 0 to 1."),
    **dict.fromkeys(("randint", "randrange"), "Use tl.randint(seed, offsets), of 32 bits."),
    "pow": "Multiply, or use libdevice.pow(x, y).",
    "divmod": "Use // and %.",
    "any": "Use tl.max(x != 0).",
    "all": "Use tl.min(x != 0).",
    "sorted": "Use tl.sort.",
    "range": "Loop over it as in `for i in range(n)`, or down as in `for i in range(n - 1, -1, -1)`.",
}
"""Python's own functions, which know nothing of run-time values."""

CALLED_OTHERWISE = {
    **{name: FUNCTIONS[name] for name in ("round", "pow", "any", "all")},
    **dict.fromkeys(("concat", "concatenate"), "Use tl.cat, which is for what may be reordered, or tl.join."),
    "stack": "Use tl.join(a, b), for a new last dimension.",
    "transpose": "Use tl.trans(x), or tl.permute(x, dims).",
    "matmul": "Use tl.dot(a, b).",
    "mean": "Use tl.sum(x, axis) / n.",
    "relu": "Use tl.maximum(x, 0.0).",
    "reverse": "Use tl.flip(x, axis).",
    **dict.fromkeys(("take", "index_select"), "Use tl.gather(x, index, axis)."),
    "power": "Multiply, or use libdevice.pow(x, y).",
    "sign": "Use tl.where(x > 0, 1, tl.where(x < 0, -1, 0)).",
    "prod": METHODS["prod"],
    **dict.fromkeys(("var", "std"), METHODS["var"]),
    "logsumexp": "Use m + tl.log(tl.sum(tl.exp(x - m), axis)), with m = tl.max(x, axis).",
    "gelu": "Use 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)).",
    "silu": "Use x * tl.sigmoid(x).",
    "clip": METHODS["clip"],
    **dict.fromkeys(("ones", "ones_like"), "Use tl.full(shape, 1, dtype)."),
    "empty": "Use tl.zeros(shape, dtype).",
    "empty_like": "Use tl.zeros_like(x).",
    "linspace": "Use start + step * tl.arange(0, BLOCK).",
    **dict.fromkeys(("tril", "triu"), "Use tl.where(rows[:, None] >= columns[None, :], x, 0), or <=."),
    "one_hot": "Compare, as in x[:, None] == tl.arange(0, BLOCK)[None, :].",
    "outer": "Use x[:, None] * y[None, :].",
    "einsum": "Use tl.dot(a, b), or tl.sum of a product.",
    "roll": "Use tl.gather(x, (tl.arange(0, BLOCK) + BLOCK - shift) % BLOCK, 0).",
    "argsort": "Sort the places along with the keys: tl.sort((key.to(tl.int64) << 32) | place).",
    "bincount": "Use tl.histogram(x, num_bins).",
    "scatter": "Store at computed offsets: tl.store(pointer + index, x).",
    "atomic_sub": "Use tl.atomic_add(pointer, -x).",
    "atomic_inc": "Use tl.atomic_add(pointer, 1).",
    "atomic_exch": "Use tl.atomic_xchg(pointer, x).",
    "size": METHODS["size"],
    "inf": 'Write float("inf").',
    "nan": 'Write float("nan").',
    "pi": "Write math.pi.",
    **dict.fromkeys(("syncthreads", "barrier"), "Use tl.debug_barrier()."),
    **dict.fromkeys(("thread_id", "thread_idx", "lane_id"), "A program works on tiles: use tl.arange(0, BLOCK)."),
    **dict.fromkeys(("block_id", "block_idx"), "Use tl.program_id(axis)."),
    **dict.fromkeys(("grid", "grid_dim"), "Use tl.program_id(axis) and tl.num_programs(axis)."),
    **dict.fromkeys(("block_dim", "local_size"), "Use the constexpr that tl.arange(0, BLOCK) has."),
    "shared": "Which memory a tile is in is up to the compiler: leave it out.",
}
"""Functions that array libraries have in their module, and the language has by another name, or not."""


def type_named(value: Any) -> str:
    """Which type of the language may be meant by another's, by a function or class of that name, or by a text."""
    name = value if isinstance(value, str) else getattr(value, "__name__", None) or str(value).rpartition(".")[2]
    name = TYPES.get(name, name)
    is_type = isinstance(getattr(language, name, None), dtype) if name.isidentifier() else False
    return f"Did you mean tl.{name}?" if is_type else "Convert to one such as tl.float16 or x.dtype."


def for_function(function: Any) -> str:
    """What is written instead of a function of Python: one of the language that is called alike, an argument."""
    name = getattr(function, "__name__", "")
    if name in FUNCTIONS:
        return f" {FUNCTIONS[name]}"
    if hasattr(language, name):
        return f" Use tl.{name}."
    if isinstance(function, MethodType):
        return " Decorate it with @jit."
    if isinstance(function, type) and function.__module__ != "builtins":
        return " Make it a NamedTuple, or an @aggregate, which may hold what is known at run time."
    return " Call it in Python, and pass what it gives."


def for_method(type: Any, name: str, known: Iterable[str]) -> str:
    if type.is_ptr() and name in ("size", "stride", "strides", "nelement", "is_contiguous"):
        return f" {NO_EXTENTS}"
    return f" {METHODS[name]}" if name in METHODS else suggest(name, known)


def for_module(module: ModuleType, name: str) -> str:
    """After "Module 'm' has no 'name'": a full stop and what takes its place, or a colon and why it is not there."""
    own = _of_deuteron(module)
    if instead := _instead(own, name):
        return f". {instead}"
    if (why := vars(module).get("__why__")) and (reason := why(name)):  # of modules under Triton's names
        return f"{reason}."
    return f".{suggest(name, [known for known in dir(own) if not isinstance(getattr(own, known), ModuleType)])}"


def _of_deuteron(module: ModuleType) -> ModuleType:
    """What a module under Triton's name (compat/finder.py) stands for; any other is itself."""
    path = module.__name__.partition(".")[2]
    return sys.modules.get(f"deuteron.{path}", module) if "__why__" in vars(module) else module


def _instead(module: ModuleType, name: str) -> str:
    """What is known to be meant by a name of a module of ours. Modules in it are for those who wrote it."""
    if module is language and name in TYPES:
        return f"It is called tl.{TYPES[name]}."
    if module is not language and hasattr(language, name) and module.__name__.partition(".")[0] == "deuteron":
        return f"It is in the language: tl.{name}."
    is_ours = module in (language, language.math)
    if is_ours and _snake_case(name) in CALLED_OTHERWISE:
        return CALLED_OTHERWISE[_snake_case(name)]
    if module is language and hasattr(language, _snake_case(name)):
        return f"It is called tl.{_snake_case(name)}."
    if is_ours and hasattr(language.extra.libdevice, name):
        return f"It is in libdevice: `from triton.language.extra import libdevice`, and libdevice.{name}(...)."
    return ""


def _snake_case(name: str) -> str:
    """What CUDA writes as blockIdx, atomicAdd or __syncthreads."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name.strip("_")).lower()


def for_name(name: str, variables: Iterable[str], names: Mapping[str, Any]) -> str:
    """What a name that is not defined may be meant to be."""
    module = next((alias for alias, value in names.items() if value is language), None)
    if module is not None and hasattr(language, name):
        return f" Did you mean '{module}.{name}'?"
    if near := suggest(name, [*variables, *names]):
        return near
    instead = "" if module is None else _instead(language, name)
    return f" {instead}" if instead else ""

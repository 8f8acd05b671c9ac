"""What launches of a program pass, by lot, and how: parameters declared otherwise, numbers, arrays in one memory, ways.

    case = declared(case)                                   def kernel(x1, n2: tl.int64, extra=None): ...
    Number.of("typed", argument, rng).type                  "i64", or "constexpr" where it is 1
    memory = Memory(case.arguments, rng)                    arrays at any elements, aligned to 16 bytes or not
    shown(argument, memory.arrays["x1"], rng)               an array of NumPy or torch, in any shape, or one wrapped
    WAYS                                                    by `kernel[grid]`, prepared, read from the cache on disk ...

The types of numbers are said here as docs/language.md has them, and not asked of what is tested.
"""

from __future__ import annotations

import ast
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np

import deuteron
from deuteron import language
from deuteron.dtypes import FLOATS
from tests.fuzz.case import GUARD, POISON, SIGNATURE, STORAGE, Argument, Case

EXTRA = Argument("extra", "int32", 4, "zeros")
"""An array that a launch may leave out, or give None for."""

PLAIN, TYPED, CONSTANT, UNALIGNED, UNSPECIALISED = "plain", "typed", "constexpr", "unaligned", "unspecialised"
_ARRAY_NAMES = {declared.name: declared.array_name for declared in FLOATS} | {"int1": "bool"}
_SHARE_LIKELY, _SHARE_UNLIKELY = 0.7, 0.1


def lot(case: Case, *what: Any) -> np.random.Generator:
    """Random numbers that stay as they are where other parts of a program are left out."""
    return np.random.default_rng([case.seed, *(zlib.crc32(repr(one).encode()) for one in what)])


def form_of(case: Case, argument: Argument) -> str:
    """How a parameter is declared."""
    forms = [PLAIN] * 5 + [UNALIGNED, UNSPECIALISED]
    if argument.size is None and "int" in argument.dtype and argument.dtype != "int1":
        forms += [TYPED] + [CONSTANT] * (argument.dtype == "int32")
    return forms[lot(case, "form", argument.name).integers(len(forms))]


def declared(case: Case) -> Case:
    """With annotations, `do_not_specialize`, and one more parameter, an array that there may be or not."""
    forms = {argument.name: form_of(case, argument) for argument in case.arguments}
    dtypes = {argument.name: argument.dtype for argument in case.arguments}
    tree = ast.parse(case.source)
    kernel = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "kernel")
    for parameter in kernel.args.args:
        if forms[parameter.arg] in (TYPED, CONSTANT):
            name = CONSTANT if forms[parameter.arg] == CONSTANT else dtypes[parameter.arg]
            parameter.annotation = _expression(f"tl.{name}")
    kernel.args.args.append(ast.arg(EXTRA.name))
    kernel.args.defaults.append(ast.Constant(None))
    kernel.body[:0] = ast.parse(f"if {EXTRA.name} is not None:\n    tl.store({EXTRA.name} + 1, 16)").body
    less, none = ([name for name, form in forms.items() if form == one] for one in (UNALIGNED, UNSPECIALISED))
    decorator = f"triton.jit(do_not_specialize_on_alignment={less}, do_not_specialize={none})"
    kernel.decorator_list = [_expression(decorator)]
    return case.with_(source=f"{ast.unparse(ast.fix_missing_locations(tree))}\n")


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@dataclass(frozen=True)
class Number:
    """A number as it is given for a parameter, and what the language says of its type."""

    form: str
    dtype: str
    value: Any

    @classmethod
    def of(cls, form: str, argument: Argument, rng: np.random.Generator) -> Number:
        """Of Python where that has the type, seldom where it has another one; else of NumPy."""
        dtype, value = argument.dtype, argument.fill
        is_likely = dtype in ("int1", "int32", "float32") or form == TYPED
        if form == CONSTANT or rng.random() < (_SHARE_LIKELY if is_likely else _SHARE_UNLIKELY):
            return cls(form, dtype, bool(value) if dtype == "int1" else value)
        return cls(form, dtype, _scalar_type(dtype)(value))

    @property
    def plain(self) -> Any:
        """Of Python."""
        return self.value.item() if isinstance(self.value, np.generic) else self.value

    @property
    def type(self) -> str:
        """In a signature: "constexpr" where the value is known to the compiler."""
        type = self._type
        is_one = self.plain == 1 and type[0] in "iu" and type != "i1"
        return "constexpr" if self.form == CONSTANT or (is_one and self.form != UNSPECIALISED) else type

    @property
    def _type(self) -> str:
        if self.form == TYPED or isinstance(self.value, np.generic):
            return signature_of(self.dtype)
        if isinstance(self.value, bool | float):
            return "i1" if isinstance(self.value, bool) else "fp32"
        bits = 32 if -(2**31) <= self.value < 2**31 else 64
        return f"{'i' if self.value < 2**63 else 'u'}{bits}"


def _scalar_type(dtype: str) -> type:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(_ARRAY_NAMES.get(dtype, dtype)).type


def signature_of(dtype: str) -> str:
    return SIGNATURE.get(dtype, dtype.replace("uint", "u").replace("int", "i").replace("float", "fp"))


class Memory:
    """The arrays of a program, each somewhere in one block of memory."""

    def __init__(self, arguments: Sequence[Argument], rng: np.random.Generator):
        places, end = {}, 0
        for argument in arguments:
            dtype = np.dtype(STORAGE.get(argument.dtype, argument.dtype))
            begin = end + int(rng.choice([0, GUARD, 3 * GUARD]))
            begin += -begin % 16 + int(rng.choice([0, dtype.itemsize * rng.integers(16)]))
            end = begin + dtype.itemsize * argument.size
            places[argument.name] = begin, dtype, argument.size
        self._bytes = np.full(end + 2 * GUARD, POISON, np.uint8)
        first = -self._bytes.ctypes.data % GUARD
        self.arrays = {
            name: np.frombuffer(memoryview(self._bytes)[first + begin :], dtype, size)
            for name, (begin, dtype, size) in places.items()
        }

    def fill(self, arguments: Sequence[Argument]) -> list[np.ndarray]:
        """The arrays, with what they hold before a launch; all else is as at first."""
        self._bytes[:] = POISON
        for argument in arguments:
            self.arrays[argument.name][:] = argument.array()
        return [self.arrays[argument.name] for argument in arguments]

    def damage(self) -> str | None:
        """What was written beside the arrays."""
        is_between = np.full(self._bytes.shape, True)
        for array in self.arrays.values():
            begin = array.ctypes.data - self._bytes.ctypes.data
            is_between[begin : begin + array.nbytes] = False
        places = np.flatnonzero(is_between & (self._bytes != POISON)) + self._bytes.ctypes.data
        near = {name: places[0] - array.ctypes.data for name, array in self.arrays.items()} if places.size else {}
        return f"{places.size} bytes beside the arrays were written, the first at {near}" if near else None


def shown(argument: Argument, array: np.ndarray, rng: np.random.Generator) -> Any:
    """The array as it is passed."""
    if find_spec("torch") and rng.random() < 0.5:
        found = _of_torch(argument, array)
        if found is not None:
            return found
    name = _ARRAY_NAMES.get(argument.dtype, argument.dtype)
    if not hasattr(np, name) and (not hasattr(ml_dtypes, name) or rng.random() < 0.3):
        return deuteron.reinterpret(array, getattr(language, argument.dtype))
    array = array.view(name if hasattr(np, name) else getattr(ml_dtypes, name))
    if rng.random() < 0.3 and array.size % 2 == 0:
        array = array.reshape(2, -1).T
    if argument.name.startswith("x") and rng.random() < 0.3:
        array.flags.writeable = False
    return array


def _of_torch(argument: Argument, array: np.ndarray) -> Any:
    import torch

    dtype = getattr(torch, _ARRAY_NAMES.get(argument.dtype, argument.dtype), None)
    return None if dtype is None else torch.from_numpy(array.view(np.uint8)).view(dtype)


Grid = tuple[int, ...]
Given = dict[str, Any]


def subscript(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    kernel[grid](*passed.values(), **options)


def _keywords(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    """What is None is left out, if it may be."""
    kernel[grid](**{name: value for name, value in passed.items() if value is not None}, **options)


def _function(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    kernel[lambda arguments: grid](*passed.values(), **options)


def _run(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    kernel.run(*passed.values(), grid=grid, **options)


def _warmed(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    kernel.warmup(*passed.values(), grid=grid, **options)
    kernel[grid](*passed.values(), **options)


def _from_disk(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    kernel.device_caches.clear()
    kernel[grid](*passed.values(), **options)


def _prepared(kernel: Any, grid: Grid, passed: Given, options: Given) -> None:
    prepared = kernel.prepare(*passed.values(), grid=grid, **options)
    given = [value for param, value in zip(kernel.params, passed.values(), strict=True) if not param.is_constexpr]
    prepared.launch(*given)


WAYS = (subscript, _keywords, _function, _run, _warmed, _from_disk, _prepared)

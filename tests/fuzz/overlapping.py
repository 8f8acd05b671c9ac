"""The executors `overlapping`, `overlapping:80` and `overlapping:90`: the CPU, and the emulator, with arrays that are
views of one, at random places, where the order matters.

    difference_of_overlapping(case, module, kernel, run, runs)      what differs from the interpreter with these views

A kernel is launched as it would be by its users: by the code that takes arrays to be apart where they are, by that for
arrays which overlap elsewhere. Of several programs at once nobody knows what they store, so that there is one. Where
the interpreter does not get through there is nothing to compare. Outputs are compared, unless floats of another type
are stored to the same memory: of these nobody knows the last bits. Those of a NaN, which an array of another type that
is read may show, differ between the runs of the interpreter (`perturb/`), but for those of fp8 and of atomics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deuteron.compiler import CompiledKernel
from deuteron.errors import DeuteronError
from tests.fuzz.case import FP8, MANTISSA, STORAGE, Argument, Case, decode, fill
from tests.fuzz.oracle import Bounds, Expected, expect

ALIGNMENT = 16


@dataclass(frozen=True)
class Overlapping(Case):
    """The same program with other arrays."""

    def values(self) -> list[Any]:
        rng = np.random.default_rng([self.seed, 1])
        shared = [argument for argument in self.arguments if argument.size and _may_share(argument)]
        largest = max((_num_bytes(argument) for argument in shared), default=0)
        room = int(rng.choice([0, 4, largest // ALIGNMENT + 1]))
        memory = _aligned(largest + ALIGNMENT * room)
        views = {a.name: _view(memory, a, ALIGNMENT * int(rng.integers(0, room + 1))) for a in shared}
        return [a.fill if a.size is None else views.get(a.name, a.array()) for a in self.arguments]


def _may_share(argument: Argument) -> bool:
    """Whether it may hold anything: indices are of something, and a truth value is 0 or 1."""
    is_index = isinstance(argument.fill, tuple) or argument.fill in ("index", "unique")
    return not is_index and argument.dtype != "int1"


def _num_bytes(argument: Argument) -> int:
    return argument.size * _storage(argument).itemsize


def _storage(argument: Argument) -> np.dtype:
    return np.dtype(STORAGE.get(argument.dtype, argument.dtype))


def _aligned(num_bytes: int) -> memoryview:
    """Memory that no array of NumPy is the owner of, so that nothing around a view is taken for guards."""
    space = np.zeros(num_bytes + 64, np.uint8)
    begin = -space.ctypes.data % 64
    return memoryview(space)[begin : begin + num_bytes]


def _view(memory: memoryview, argument: Argument, offset: int) -> np.ndarray:
    """What it is filled with is in part overwritten by the next ones."""
    array = np.frombuffer(memory, _storage(argument), argument.size, offset)
    if argument.fill != "poison":
        array[:] = fill(argument.dtype, argument.size, argument.fill, argument.seed, argument.bound)
    return array


def difference_of_overlapping(
    case: Case, module: Any, kernel: CompiledKernel, run: Callable[..., None], runs: int
) -> str | None:
    """`run(kernel, grid, values)` launches what is compiled for such arrays."""
    other = Overlapping(**{**vars(case), "grid": (1,)})
    try:
        expected = expect(other, module, runs)
    except DeuteronError:
        return None
    values = other.values()
    passed = [value.ctypes.data if isinstance(value, np.ndarray) else value for value in values]
    tensors = [_Tensor(value) if isinstance(value, np.ndarray) else value for value in values]
    run(kernel.for_launch(passed, tensors), (1, 1, 1), values)
    return difference_between(other, expected, [value for value in values if isinstance(value, np.ndarray)])


def difference_between(case: Case, expected: Expected, arrays: Sequence[np.ndarray]) -> str | None:
    """What is wrong with arrays that are views of one."""
    bounds = list(zip(expected.bounds, arrays, strict=True))
    is_updated = "tl.atomic_" in case.source
    if any(_shows_nan(one, array, bounds, is_updated) for one, array in bounds):
        return None
    outputs = [(one, array) for one, array in bounds if _is_output(one.argument)]
    with np.errstate(all="ignore"):
        found = (b.difference(array) for b, array in outputs if not _has_others_floats(b.argument, array, outputs))
        return next(filter(None, found), None)


def _is_output(argument: Argument) -> bool:
    return argument.name.startswith(("out", "io"))


def _shows_nan(
    bounds: Bounds, array: np.ndarray, all_bounds: Sequence[tuple[Bounds, np.ndarray]], is_updated: bool
) -> bool:
    """Whether a NaN is in it whose bits nobody knows, and an array of another type has its memory."""
    argument = bounds.argument
    if not _is_output(argument) or argument.dtype not in MANTISSA or not _has_nan(bounds):
        return False
    if argument.dtype not in FP8 and not is_updated:
        return False
    return any(o.argument.dtype != argument.dtype and np.shares_memory(array, other) for o, other in all_bounds)


def _has_nan(bounds: Bounds) -> bool:
    return bool(np.isnan(decode(bounds.stored, bounds.argument.dtype)).any())


def _has_others_floats(argument: Argument, array: np.ndarray, outputs: Sequence[tuple[Bounds, np.ndarray]]) -> bool:
    return any(
        bounds.argument.dtype in MANTISSA and bounds.argument.dtype != argument.dtype and np.shares_memory(array, other)
        for bounds, other in outputs
    )


class _Tensor:
    """An array without the dtype of NumPy, which has none for some types of ours."""

    def __init__(self, array: np.ndarray):
        self._array, self.dtype, self.shape = array, "uint8", array.shape

    def data_ptr(self) -> int:
        return self._array.ctypes.data

    def stride(self) -> list[int]:
        return [1]

    def element_size(self) -> int:
        return self._array.itemsize

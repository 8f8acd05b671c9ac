"""The executor `checked`: the CPU with every access checked, which raises nothing where a program is right.

    launch_checked(case, kernel, values)        a launch
    difference_of_short(case, kernel)           where checks and interpreter differ

The second launches with one of the arrays too short by some elements. The interpreter runs what the tile passes left:
a load that nothing uses is not made.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.backend.spans import bounded
from deuteron.compiler import CompiledKernel
from deuteron.errors import MemoryAccessError
from tests.fuzz.case import Case


def launch_checked(case: Case, kernel: CompiledKernel, values: list) -> None:
    """Run a kernel that was compiled with `check="bounds"`."""
    passed = [bounded(v.ctypes.data, v) if isinstance(v, np.ndarray) else v for v in values]
    kernel.launch((*case.grid, 1, 1)[:3], passed)


def difference_of_short(case: Case, kernel: CompiledKernel) -> str | None:
    """What is wrong with what the checks find, if anything."""
    from deuteron.interpreter import run_module
    from deuteron.ir.text import parse_module

    module = parse_module(kernel.asm["ttir"])
    rng = np.random.default_rng(case.seed)
    arrays = [number for number, argument in enumerate(case.arguments) if argument.size]
    if not arrays:
        return None
    chosen = int(rng.choice(arrays))
    missing = int(rng.integers(1, 3))
    grid = (*case.grid, 1, 1)[:3]

    def short() -> list:
        values = case.values()
        values[chosen] = values[chosen][: max(len(values[chosen]) - missing, 0)]
        return values

    expected = _error_of(lambda: run_module(module, short(), grid))
    found = _error_of(lambda: launch_checked(case, kernel, short()))
    name = case.arguments[chosen].name
    if bool(expected) != bool(found):
        return f"{name} without its last {missing} elements: interpreter: {expected}\nchecked: {found}"
    if expected and f"of {name}, which has" in expected and f"of {name}, which has" not in found:
        return f"interpreter: {expected}\nchecked: {found}"
    return None


def _error_of(launch: Callable[[], None]) -> str:
    try:
        with np.errstate(all="ignore"):
            launch()
    except MemoryAccessError as error:
        return str(error)
    return ""

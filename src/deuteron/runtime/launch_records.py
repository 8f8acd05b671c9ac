"""What machine code knows of a kernel, or of an autotuner, as records: its parameters, and the conditions of entries.

record = kernel_record(fn, entries, launcher, fn.run_noted)         a tuple: a KERNEL, and what has to live as long
launcher.subscript(record)                                          `fn[grid]` in machine code
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING, Any

from deuteron.backend.launcher.records import (
    ARRAYS_ALIGNED,
    ARRAYS_CALLED,
    ARRAYS_UNALIGNED,
    CONDITION,
    KERNEL,
    PARAMETER,
    to_bytes,
)
from deuteron.backend.launcher.tokens import Numbers
from deuteron.backend.native_launch import MISSING
from deuteron.language.functions.function import Parameter
from deuteron.language.types import dtype
from deuteron.runtime.grid import check_extents, grid_of, raise_located
from deuteron.runtime.specialise import Specialiser, constexpr_token, is_its_own_token, takes_arrays, with_alignment
from deuteron.tracebacks import api_boundary

if TYPE_CHECKING:
    from deuteron.backend.launcher.loaded import Launcher
    from deuteron.runtime.jit import JITFunction

# Arguments whose token tells it of all of their kind, as far as the code tells them apart.
_EXAMPLES: dict[str, tuple[Any, ...]] = {
    "none": (None,),
    "float": (0.5, 1.0, 16.0, -2.0, 3.0),
    "false": (False,),
    "true": (True,),
    "i32": (3, 17, -1, -16, -(1 << 31)),
    "i32_one": (1,),
    "i32_16": (0, 16, (1 << 31) - 16),
    "i64": ((1 << 40) + 1, 1 << 31 | 1, -(1 << 40), -(1 << 63), (1 << 63) - 1),
    "i64_16": (1 << 31, 1 << 40, 1 << 62),
}

numbers = Numbers(constexpr_token, is_its_own_token)
numbers.compare_by_identity(dtype)


def kernel_record(
    fn: JITFunction,
    entries: dict[int, tuple],
    launcher: Launcher,
    run_slowly: Callable[..., Any],
    compared: Container[str] | None = None,
) -> tuple:
    """What the code knows of a function, and what has to live as long. Of an autotuner `compared` are the parameters
    whose values it compares.
    """
    extents = api_boundary(partial(check_extents, kernel=fn.__name__))
    failed = api_boundary(partial(raise_located, what=grid_of(fn.__name__)))
    names = dict.fromkeys(param.name for param in fn.params)
    objects = {"entries": entries, "run_slowly": run_slowly, "extents": extents, "grid_failed": failed, "names": names}
    fields = {name: id(value) for name, value in objects.items()}
    is_choice = compared is not None
    fields |= {"shared": launcher.shared, "definition": launcher.definition(is_choice), "is_choice": int(is_choice)}
    words = KERNEL.pack(num_parameters=len(fn.params), **fields)
    for param, specialise in zip(fn.params, fn.specialisers, strict=True):
        words += _parameter_record(param, specialise, is_choice and param.name in compared)
    return to_bytes(words), objects, fn, launcher


def _parameter_record(param: Parameter, specialise: Specialiser, is_compared: bool) -> list[int]:
    default = id(param.default) if param.has_default else 0
    fields = {"name": id(param.name), "default": default, "specialise": id(specialise)}
    fields["is_compared"] = int(is_compared)
    if param.is_constexpr:
        return PARAMETER.pack(is_constexpr=1, **fields)
    arrays = (ARRAYS_ALIGNED if with_alignment(param) else ARRAYS_UNALIGNED) if takes_arrays(param) else ARRAYS_CALLED
    tokens = {name: _token_of_all(specialise, examples) for name, examples in _EXAMPLES.items()}
    return PARAMETER.pack(arrays=arrays, **fields, **tokens)


def _token_of_all(specialise: Specialiser, examples: tuple[Any, ...]) -> int:
    """The number of the token that all of the examples have, which are passed as they are; 0 where that is not so."""
    try:
        found = [specialise(example) for example in examples]
    except Exception:  # whatever it raises, a launch with such an argument raises it again
        return 0
    tokens = {token for token, _ in found}
    as_they_are = all(passed == example for (_, passed), example in zip(found, examples, strict=True))
    return numbers.of(tokens.pop()) if len(tokens) == 1 and as_they_are else 0


def condition_record(kind: int, owner: Any, name: Any, expected: Any) -> list[int]:
    """What has to be so, as `CONDITION` has it."""
    found = 0 if expected is MISSING else id(expected)
    return CONDITION.pack(kind=kind, owner=id(owner), name=id(name), expected=found)

"""What calls a kernel: functions compiled once in the process. A launch makes one call for all its programs.

    run_range(kernel, values, count, grid, begin, end, scratch)
    run_shared(kernel, values, count, grid, total, scratch, chunk, counter)
    run_here(target, extents, values, stream)       of compiled launchers: `native_launch.py`

`values` holds the arguments in slots of 8 bytes, `count` of them; the kernel gets an array of their addresses. Of
`run_shared` every thread calls one with the same counter: each takes the next `chunk` programs until none are left.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

from deuteron.backend.llvm.loader import load_kept
from deuteron.once import once

_POINTER, _WORD = ctypes.c_void_p, ctypes.c_uint64
_COMMON_TYPES = [_POINTER, ctypes.c_char_p, _WORD, ctypes.c_char_p]


class Trampolines(NamedTuple):
    """The functions as ctypes calls them, without the interpreter's lock; values and grid are bytes objects. Of
    `run_here` the address: machine code calls it.
    """

    run_range: Any
    run_shared: Any
    run_here: int


@once
def trampolines() -> Trampolines:
    loaded = load_kept("trampolines", _text, ["run_range", "run_shared", "run_here"])
    run_range = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _WORD, _POINTER)(loaded.address("run_range"))
    run_shared = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _POINTER, _WORD, _POINTER)(loaded.address("run_shared"))
    run_range.loaded = loaded  # keeps the code of both
    return Trampolines(run_range, run_shared, loaded.address("run_here"))


def _text() -> str:
    from deuteron.backend.cpu.trampoline_code import trampoline_module  # deferred: the code is kept on disk

    return trampoline_module().text()


def target_words(function: int, num_arguments: int, scratch_bytes: int, time: int) -> tuple[int, ...]:
    """The words of TARGET; `time` is the address of a word that is 0 while the time of a program is not known."""
    return function, num_arguments, scratch_bytes, time, _clock()


@cache
def _clock() -> int:
    """The address of clock_gettime, 0 where there is none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0

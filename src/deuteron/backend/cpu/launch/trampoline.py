"""What calls a kernel: functions compiled once in the process. A launch makes one call for all its programs.

    run_with_python(target, count, grid, total, values)     of Python, which may be interrupted: `TARGET`
    help(pool, job)                                         of several threads of Python, with the same `JOB`
    work(pool, worker)                                      of a thread of the pool; it never returns
    run_here(target, extents, values, stream)               of compiled launchers: `native_launch.py`
    begin_updating(pool)                                    of who forks: `pool_updates.py`

`values` holds the arguments in slots of 8 bytes, `count` of them; the kernel gets an array of their addresses.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from deuteron.backend.llvm.loader import keep_loaded, load_kept
from deuteron.once import once

_POINTER, _WORD, _NUMBER = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64


class Trampolines(NamedTuple):
    """The functions as ctypes calls them: `run_with_python` with the interpreter's lock, which it gives away itself,
    the others without it. Of those that machine code calls the address.
    """

    run_with_python: Any
    help: Any
    work: Any
    begin_updating: Any
    run_here: int
    own_scratch: int


@once
def trampolines() -> Trampolines:
    loaded = load_kept("trampolines", _text, Trampolines._fields)
    keep_loaded(loaded)  # threads are in this code for as long as the process lives
    run_with_python = ctypes.PYFUNCTYPE(_NUMBER, _POINTER, _WORD, ctypes.c_char_p, _WORD, ctypes.c_char_p)
    help = ctypes.CFUNCTYPE(_NUMBER, _POINTER, _POINTER)
    work = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)
    begin_updating = ctypes.CFUNCTYPE(None, _POINTER)
    return Trampolines(
        run_with_python(loaded.address("run_with_python")),
        help(loaded.address("help")),
        work(loaded.address("work")),
        begin_updating(loaded.address("begin_updating")),
        loaded.address("run_here"),
        loaded.address("own_scratch"),
    )


def _text() -> str:
    from deuteron.backend.cpu.launch.trampoline_code import trampoline_module  # deferred: the code is kept on disk

    return trampoline_module().text()

"""What calls a kernel: two functions compiled once in the process. A launch makes one call for all its programs.

    run_range(kernel, values, count, grid, begin, end, scratch)
    run_shared(kernel, values, count, grid, total, scratch, chunk, counter)

`values` holds the arguments in slots of 8 bytes, `count` of them; the kernel gets an array of their addresses. Of
`run_shared` every thread calls one with the same counter: each takes the next `chunk` programs until none are left.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import emit_object
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

_COMMON = [("ptr", "kernel"), ("ptr", "values"), ("i64", "count"), ("ptr", "grid")]
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_uint64
_COMMON_TYPES = [_POINTER, ctypes.c_char_p, _WORD, ctypes.c_char_p]


class Trampolines(NamedTuple):
    """The two functions as ctypes calls them, without the interpreter's lock; values and grid are bytes objects."""

    run_range: Any
    run_shared: Any


@cache
def trampolines() -> Trampolines:
    loaded = load_object(emit_object(_module().text(), "generic"), ["run_range", "run_shared"])
    run_range = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _WORD, _POINTER)(loaded.address("run_range"))
    run_shared = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _POINTER, _WORD, _POINTER)(loaded.address("run_shared"))
    run_range.loaded = loaded  # keeps the code of both
    return Trampolines(run_range, run_shared)


def _module() -> Module:
    module = Module("trampolines")
    b = module.function(
        "run_range", "void", [*_COMMON, ("i64", "begin"), ("i64", "end"), ("ptr", "scratch")], "external"
    )
    kernel, values, count, grid, begin, end, scratch = b.parameters
    b.call_pointer("void", kernel, _addresses(b, values, count), grid, begin, end, scratch)
    b.ret()
    extra = [("i64", "total"), ("ptr", "scratch"), ("i64", "chunk"), ("ptr", "counter")]
    b = module.function("run_shared", "void", [*_COMMON, *extra], "external")
    _emit_shared(b)
    return module


def _emit_shared(b: Builder) -> None:
    kernel, values, count, grid, total, scratch, chunk, counter = b.parameters
    args = _addresses(b, values, count)
    take, run, done = b.block("take"), b.block("run"), b.block("done")
    b.br(take)
    b.position(take)
    begin = b.atomicrmw("add", counter, chunk)
    b.cond_br(b.icmp("ult", begin, total), run, done)
    b.position(run)
    end = b.add(begin, chunk)
    b.call_pointer("void", kernel, args, grid, begin, b.select(b.icmp("ult", end, total), end, total), scratch)
    b.br(take)
    b.position(done)
    b.ret()


def _addresses(b: Builder, values: Value, count: Value) -> Value:
    """The array of the slots' addresses, on the stack."""
    addresses = b.alloca("ptr", count, align=16)
    with b.loop(const("i64", 0), count, const("i64", 1)) as loop:
        b.store(b.gep("i64", values, loop.index), b.gep("ptr", addresses, loop.index))
    return addresses

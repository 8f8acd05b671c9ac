"""What calls a kernel: functions compiled once in the process. A launch makes one call for all its programs.

    run_range(kernel, values, count, grid, begin, end, scratch)
    run_shared(kernel, values, count, grid, total, scratch, chunk, counter)
    run_one(target, extents, values, stream)        of the compiled launcher: `native_launch.py`

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
from deuteron.backend.llvm.types import Value, array_const, const
from deuteron.backend.native_launch import PYTHON_LAUNCHES

_COMMON = [("ptr", "kernel"), ("ptr", "values"), ("i64", "count"), ("ptr", "grid")]
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_uint64
_COMMON_TYPES = [_POINTER, ctypes.c_char_p, _WORD, ctypes.c_char_p]


MOST_SCRATCH = 16 << 10  # bytes of the caller's stack that `run_one` takes


class Trampolines(NamedTuple):
    """The functions as ctypes calls them, without the interpreter's lock; values and grid are bytes objects. Of
    `run_one` the address: machine code calls it.
    """

    run_range: Any
    run_shared: Any
    run_one: int


@cache
def trampolines() -> Trampolines:
    loaded = load_object(emit_object(_module().text(), "generic"), ["run_range", "run_shared", "run_one"])
    run_range = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _WORD, _POINTER)(loaded.address("run_range"))
    run_shared = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _POINTER, _WORD, _POINTER)(loaded.address("run_shared"))
    run_range.loaded = loaded  # keeps the code of both
    return Trampolines(run_range, run_shared, loaded.address("run_one"))


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
    arguments = [("ptr", "target"), ("ptr", "extents"), ("ptr", "values"), ("i64", "stream")]
    _emit_one(module.function("run_one", "i64", arguments, "external"))
    return module


def _emit_one(b: Builder) -> None:
    """A grid of one program, whose extents are words; any other is left to Python."""
    target, extents, values, _ = b.parameters
    sizes = [b.load("i64", b.gep("i64", extents, const("i64", axis))) for axis in range(3)]
    others = b.sub(b.or_(b.or_(*sizes[:2]), sizes[2]), const("i64", 1))
    several, one = b.block("several"), b.block("one")
    b.cond_br(b.icmp("ne", others, const("i64", 0)), several, one)
    b.position(several)
    b.ret(const("i64", PYTHON_LAUNCHES))
    b.position(one)
    kernel, count, size = (b.load("i64", b.gep("i64", target, const("i64", word))) for word in range(3))
    scratch = b.alloca("i8", size)
    grid = b.module.constant(array_const("i32", [1, 1, 1]))
    begin, end = const("i64", 0), const("i64", 1)
    b.call_pointer("void", b.inttoptr(kernel), _addresses(b, values, count), grid, begin, end, scratch)
    b.ret(begin)


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

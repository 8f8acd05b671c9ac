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

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.loader import load_kept
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.native_launch import PYTHON_LAUNCHES
from deuteron.once import once

_COMMON = [("ptr", "kernel"), ("ptr", "values"), ("i64", "count"), ("ptr", "grid")]
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_uint64
_COMMON_TYPES = [_POINTER, ctypes.c_char_p, _WORD, ctypes.c_char_p]


MOST_SCRATCH = 16 << 10  # bytes of the caller's stack that `run_here` takes

# What `run_here` is given of a kernel; `time` points to the time that a program takes, which it writes.
_TARGET = "function num_arguments scratch_bytes time clock".split()  # noqa: SIM905
# A grid that takes less runs on the caller's thread: Python, and waking others, takes as long (on two cores: 8 us).
SHORT_NANOSECONDS = 20_000
UNITS = 1024  # of a nanosecond, in which the time of a program is kept
_MOST_EXTENT = 1 << 20  # the product of three fits a word
_MONOTONIC = 1  # CLOCK_MONOTONIC


class Trampolines(NamedTuple):
    """The functions as ctypes calls them, without the interpreter's lock; values and grid are bytes objects. Of
    `run_here` the address: machine code calls it.
    """

    run_range: Any
    run_shared: Any
    run_here: int


@once
def trampolines() -> Trampolines:
    loaded = load_kept(_module().text(), ["run_range", "run_shared", "run_here"])
    run_range = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _WORD, _POINTER)(loaded.address("run_range"))
    run_shared = ctypes.CFUNCTYPE(None, *_COMMON_TYPES, _WORD, _POINTER, _WORD, _POINTER)(loaded.address("run_shared"))
    run_range.loaded = loaded  # keeps the code of both
    return Trampolines(run_range, run_shared, loaded.address("run_here"))


def target_words(function: int, num_arguments: int, scratch_bytes: int, time: int) -> tuple[int, ...]:
    """The words of _TARGET; `time` is the address of a word that is 0 while the time of a program is not known."""
    return function, num_arguments, scratch_bytes, time, _clock()


@cache
def _clock() -> int:
    """The address of clock_gettime, 0 where there is none."""
    try:
        return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):
        return 0


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
    _emit_here(module.function("run_here", "i64", arguments, "external"))
    return module


def _emit_here(b: Builder) -> None:
    """A grid of one program, or one that is short by what is known of it, whose time is then written down."""
    target, extents, values, _ = b.parameters
    words = {name: b.load("i64", b.gep("i64", target, const("i64", word))) for word, name in enumerate(_TARGET)}
    sizes = [b.load("i64", b.gep("i64", extents, const("i64", axis))) for axis in range(3)]
    grid, time = b.alloca("i32", 3, align=8), b.alloca("i64", 2, align=8)
    for axis, size in enumerate(sizes):
        b.store(b.trunc(size, "i32"), b.gep("i32", grid, const("i64", axis)))
    total = b.mul(b.mul(*sizes[:2]), sizes[2])
    several, short, one, in_python = (b.block(name) for name in ("several", "short", "one", "in_python"))
    largest = b.or_(b.or_(*sizes[:2]), sizes[2])
    b.cond_br(b.icmp("eq", largest, const("i64", 1)), one, several)

    def run(count: Value) -> None:
        scratch = b.alloca("i8", words["scratch_bytes"], align=64)
        args = _addresses(b, values, words["num_arguments"])
        b.call_pointer("void", b.inttoptr(words["function"]), args, grid, const("i64", 0), count, scratch)

    def now() -> Value:
        b.call_pointer("i32", b.inttoptr(words["clock"]), const("i32", _MONOTONIC), time)
        seconds, rest = (b.load("i64", b.gep("i64", time, const("i64", word))) for word in range(2))
        return b.add(b.mul(seconds, const("i64", 10**9)), rest)

    b.position(one)
    run(const("i64", 1))
    b.ret(const("i64", 0))
    b.position(several)
    known = b.inttoptr(words["time"])
    expected = b.mul(b.load("i64", known), total)
    is_short = b.icmp("ult", b.sub(expected, const("i64", 1)), const("i64", SHORT_NANOSECONDS * UNITS))
    can_tell = b.and_(b.icmp("ult", largest, const("i64", _MOST_EXTENT)), b.icmp("ne", words["clock"], const("i64", 0)))
    b.cond_br(b.and_(is_short, can_tell), short, in_python)
    b.position(short)
    begin = now()
    run(total)
    took = b.udiv(b.mul(b.sub(now(), begin), const("i64", UNITS)), total)
    b.store(b.add(took, const("i64", 1)), known)
    b.ret(const("i64", 0))
    b.position(in_python)
    b.ret(const("i64", PYTHON_LAUNCHES))


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

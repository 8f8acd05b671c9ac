"""The time of the system's monotonic clock, by a function of the module.

define internal i64 @nanoseconds()              calls clock_gettime of the C library (POSIX)
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const

_NAME = "nanoseconds"
_CLOCK_MONOTONIC = const("i32", 1)  # of Linux


def nanoseconds(b: Builder, defined: set[str]) -> Value:
    """Nanoseconds, i64; `defined` are the names of the functions that the module has already."""
    if _NAME not in defined:
        defined.add(_NAME)
        _define(b)
    return b.call("i64", _NAME)


def _define(outer: Builder) -> None:
    """A function of its own, since memory for the two words of a `timespec` in a loop would grow the stack."""
    b = outer.module.function(_NAME, "i64", [], attributes="noinline nounwind")
    time = b.alloca("i64", 2, align=16)
    b.call("i32", "clock_gettime", _CLOCK_MONOTONIC, time)
    seconds, rest = b.load("i64", time), b.load("i64", b.gep("i64", time, const("i64", 1)))
    b.ret(b.add(b.mul(seconds, const("i64", 1_000_000_000)), rest))

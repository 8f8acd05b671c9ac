"""The machine code of `trampoline.py`, as LLVM IR.

trampoline_module()         the functions run_range, run_shared and run_here
"""

from __future__ import annotations

from deuteron.backend.cpu.native_target import SHORT_NANOSECONDS, TARGET, UNITS
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.native_launch import PYTHON_LAUNCHES

_COMMON = [("ptr", "kernel"), ("ptr", "values"), ("i64", "count"), ("ptr", "grid")]
_MOST_EXTENT = 1 << 20  # the product of three fits a word
_MONOTONIC = 1  # CLOCK_MONOTONIC


def trampoline_module() -> Module:
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
    words = {name: b.load("i64", b.gep("i64", target, const("i64", word))) for word, name in enumerate(TARGET)}
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

"""The floating environment of a kernel: rounding to nearest, with denormal numbers, without traps, whoever calls it.

    saved = mxcsr                                   at the beginning of a call
    if saved differs from the standard: mxcsr = standard
    ...                                             its programs
    if saved differs from the standard: mxcsr = saved

Programs round upward for interval arithmetic, flush denormal numbers for speed (`-ffast-math` does, torch too if told)
or let the processor trap a division by zero. What a kernel computes would depend on which of its threads runs a
program then; functions that rely on rounding to nearest would be wrong in some four digits less; and lanes that are
masked off, which compute anything, would end the process.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.intrinsics import GET_FPCR, LDMXCSR, SET_FPCR, STMXCSR
from deuteron.backend.llvm.types import Value, const

# All traps are masked, and nothing else is set. The bits are those of MXCSR but for the flags of what has happened.
_MXCSR, _MXCSR_BITS = 0x1F80, 0xFFC0
_FPCR = 0


@dataclass(frozen=True)
class CallersEnvironment:
    """What the caller of a kernel had (of MXCSR the address of it), and whether it is another one than the standard."""

    saved: Value
    is_other: Value


def enter_environment(b: Builder, architecture: str) -> CallersEnvironment:
    """Before anything is computed."""
    enter = _enter_on_aarch64 if architecture == "aarch64" else _enter_on_x86
    return enter(b)


def leave_environment(b: Builder, callers: CallersEnvironment) -> None:
    """After all programs."""
    name = LDMXCSR if callers.saved.type == "ptr" else SET_FPCR
    with b.if_(callers.is_other, "environment"):
        b.call("void", name, callers.saved)


def _enter_on_x86(b: Builder) -> CallersEnvironment:
    saved, standard = b.alloca("i32", align=4), b.module.constant(const("i32", _MXCSR))
    b.call("void", STMXCSR, saved)
    is_other = b.icmp("ne", b.and_(b.load("i32", saved), const("i32", _MXCSR_BITS)), const("i32", _MXCSR))
    with b.if_(is_other, "environment"):
        b.call("void", LDMXCSR, standard)
    return CallersEnvironment(saved, is_other)


def _enter_on_aarch64(b: Builder) -> CallersEnvironment:
    saved = b.call("i64", GET_FPCR)
    is_other = b.icmp("ne", saved, const("i64", _FPCR))
    with b.if_(is_other, "environment"):
        b.call("void", SET_FPCR, const("i64", _FPCR))
    return CallersEnvironment(saved, is_other)

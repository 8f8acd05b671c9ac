"""Options of LLVM that only the process has, changed for one emission.

    with as_usual(): machine.emit_assembly(module)
    with changed(STRENGTH_REDUCTION): machine.emit_assembly(module)       without it

LLVM has neither an attribute of functions nor a flag of target machines for these. So code is optimised and emitted by
one thread at a time, as llvmlite's own lock has it anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import llvmlite.binding as llvm

from deuteron.once import ForkLock

# An option that is off, and as usual.
STRENGTH_REDUCTION = ("--disable-lsr=true", "--disable-lsr=false")  # of loops, in code generation
SINKING = ("--instcombine-code-sinking=false", "--instcombine-code-sinking=true")  # to the block of the only user

_emission = ForkLock()


def as_usual() -> AbstractContextManager[object]:
    """Nobody changes an option meanwhile."""
    return _emission.here()


@contextmanager
def changed(*options: tuple[str, str]) -> Iterator[None]:
    """Without what these options stand for."""
    with _emission.here():
        try:
            for off, _ in options:
                llvm.set_option("deuteron", off)
            yield
        finally:
            for _, usual in options:
                llvm.set_option("deuteron", usual)

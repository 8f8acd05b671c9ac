"""LLVM's loop strength reduction, which code generation runs unless an option of the process says otherwise.

    with as_usual(): machine.emit_assembly(module)
    with without_strength_reduction(): machine.emit_assembly(module)

LLVM has neither an attribute of functions nor a flag of target machines for it. So code is emitted by one thread at a
time, as llvmlite's own lock has it anyway, and the option is set for one emission.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import llvmlite.binding as llvm

from deuteron.once import ForkLock

_emission = ForkLock()


def as_usual() -> AbstractContextManager[object]:
    """Nobody leaves strength reduction out meanwhile."""
    return _emission.here()


@contextmanager
def without_strength_reduction() -> Iterator[None]:
    with _emission.here():
        llvm.set_option("deuteron", "--disable-lsr=true")
        try:
            yield
        finally:
            llvm.set_option("deuteron", "--disable-lsr=false")

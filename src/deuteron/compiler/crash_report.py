"""What a process says that ends while it compiles, as it does where LLVM finds a defect and aborts.

    with_report("add", "cpu:native", "obj", emit)      emit(), which if it aborts leaves on standard error:

    Fatal Python error: Aborted
      File ".../deuteron/backend/llvm/compile.py", line 58 in emit_object
      File "<Deuteron compiles kernel 'add' for cpu:native, stage 'obj'; ...>", line 1 in <module>

Python writes the stack when a process gets such a signal; what is compiled is in the name of one of its frames. Nothing
can be raised any more: with DEUTERON_ISOLATE=1 a process of its own is what ends.
"""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

Result = TypeVar("Result")

_HINT = "what is cached stays whole; DEUTERON_ISOLATE=1 compiles in a process of its own"


def with_report(kernel: str, target: str, stage: str, run: Callable[[], Result]) -> Result:
    """What `run` returns; if it ends the process, the stack on standard error names the kernel and the stage."""
    text = f"<Deuteron compiles kernel '{kernel}' for {target}, stage '{stage}'; {_HINT}>"
    with _stack_is_written():
        return eval(compile("run()", text, "eval"), {"run": run})


@contextlib.contextmanager
def _stack_is_written() -> Iterator[None]:
    """Within, Python writes its stack when a signal ends the process; programs that ask for that have it anyway."""
    if faulthandler.is_enabled() or sys.__stderr__ is None:
        yield
        return
    with contextlib.suppress(ValueError, OSError):  # standard error may be closed
        faulthandler.enable(sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.disable()

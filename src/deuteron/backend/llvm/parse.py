"""LLVM IR as text becomes a module, if LLVM accepts it; the only place where LLVM reads what we wrote.

    with parsed(llir, "nvptx64-nvidia-cuda") as module:     verified, in a context of its own
        assembly = machine.emit_assembly(module)

    check_text(llir, "kernel.llir")                         what comes from outside says nothing of the processor

    kernel.py:7:12: error: LLVM does not accept the generated IR: Instruction does not dominate all uses! ...

LLVM's parser verifies a module that has debug information, and ends the process where that fails. That is turned off,
and the verifier run here: what it refuses is an InternalError, at the line of the kernel that the instruction is for.

CodeGenPrepare begins anew with all of a function each time that it splits a block, unless the function is huge to it,
by default from 10,000 blocks on. 400 loops over tiles took it 2.9 s of the 4.3 s of code generation, and take 0.03 s;
100 dots, which are 354 blocks, 5 s, and take 0.1 s.

GVN looks for what each load might find in up to 200 blocks before it: 120 dots in a loop took the passes 13.8 s, and
take 9.5 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import PurePath

import llvmlite.binding as llvm

from deuteron.errors import InternalError, IRError, Location

HUGE = 128  # blocks of a function: more than any example has, whose code stays what it was
MOST_SEARCHED = 100  # blocks before a load: no example's code gets better by more
MOST_EXPRESSION = 64  # the ops of an expression that LLVM looks into for how a loop counts: no example has more
_LINE = re.compile(r"^<string>:(\d+):", re.MULTILINE)
_DEBUG = re.compile(r"!dbg (!\d+)")
_PLACE = re.compile(r"line: (\d+), column: (\d+), scope: (!\d+)")
_FILE = re.compile(r"\bfile: (!\d+)")
_PROCESSOR = re.compile(r'"(?:target-(?:cpu|features)|tune-cpu)"\s*=\s*"[^"]*"')
_PATH = re.compile(r'filename: "(.*?)", directory: "(.*?)"')


@contextmanager
def parsed(llir: str, triple: str) -> Iterator[llvm.ModuleRef]:
    """A verified module in a context of its own, so that what a compile allocates is freed after it.

    The module goes at the end, also where an error passes, which would keep it until Python collects its traceback:
    that may free the context first, and LLVM would crash.
    """
    _set_options()
    try:
        module = llvm.parse_assembly(llir, llvm.create_context())
    except RuntimeError as error:
        raise _refused(error, llir) from error
    with module:
        module.triple = triple
        try:
            module.verify()
        except RuntimeError as error:
            raise _refused(error, str(module)) from error  # LLVM numbers metadata anew
        yield module


@cache
def _set_options() -> None:
    """Before the first parse; they hold for the process."""
    limits = f"--cgpp-huge-func={HUGE}", f"--memdep-block-number-limit={MOST_SEARCHED}"
    counting = f"--scalar-evolution-huge-expr-threshold={MOST_EXPRESSION}"
    for option in ("--disable-auto-upgrade-debug-info", *limits, counting):
        llvm.set_option("deuteron", option)


def check_text(llir: str, file: str) -> None:
    """Refuse what LLVM accepts, and the target may not run: functions with instructions of another processor."""
    found = _PROCESSOR.search(llir)
    if found:
        place = Location(file, llir.count("\n", 0, found.start()) + 2)  # after the line of metadata
        message = f"the attribute {found[0]} is for a processor of its own. Remove it: the target says which one"
        raise IRError(message, place)


def _refused(error: RuntimeError, llir: str) -> InternalError:
    return InternalError(f"LLVM does not accept the generated IR: {error}", _location(llir, str(error)))


def _location(llir: str, message: str) -> Location | None:
    """The place in the kernel's source that LLVM's message is about, if the instruction has one."""
    line = _LINE.search(message)
    lines = ["", *llir.splitlines(), ""]  # LLVM counts from 1, and the end is a line
    debug = _DEBUG.search(lines[int(line[1])] if line else message)
    place = debug and _PLACE.search(_node(llir, debug[1]))
    if not place:
        return None
    file = _FILE.search(_node(llir, place[3]))
    path = file and _PATH.search(_node(llir, file[1]))
    return Location(str(PurePath(path[2], path[1])), int(place[1]), int(place[2])) if path else None


def _node(llir: str, number: str) -> str:
    """The text of a metadata node."""
    found = re.search(rf"^{number} = (.*)$", llir, re.MULTILINE)
    return found[1] if found else ""

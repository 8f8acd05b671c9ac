"""Machine code that gives the packed arguments of an entry to its target, or to Python where the target says so.

run(record, extents, slots, stream)         1, or 0 with an exception
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from deuteron.backend.launcher.arguments import DONE, UNKNOWN
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.records import ENTRY, WORD
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value
from deuteron.backend.native_launch import PYTHON_LAUNCHES


def define_run(module: Module) -> None:
    """Give an entry's kernel to its target; returns 1, or 0 with an exception.

    The stream is the given one, unless the entry says whom to ask. Python is told which, or None where it is to ask.
    """
    given = [("ptr", "record"), ("ptr", "extents"), ("ptr", "slots"), ("i64", "stream")]
    c = module.function("run", "i32", given, kind=Code)
    record, extents, slots, stream_given = c.parameters
    stream, told, result = c.variable("i64", stream_given), c.variable("ptr", NULL), c.variable("ptr", NULL)
    in_python, raised, done = c.block("in_python"), c.block("raised"), c.block("ran")
    fire = c.field(record, ENTRY, "fire", "ptr")
    c.leave_if(c.is_null(fire), in_python)
    ask = c.field(record, ENTRY, "stream", "ptr")
    with c.when(c.is_not_null(ask)):
        found = c.python("PyObject_CallOneArg", ask, c.field(record, ENTRY, "device", "ptr"))
        c.leave_if(c.is_null(found), raised)
        c.store(c.python("PyLong_AsUnsignedLongLongMask", found), stream)
        c.python("Py_DecRef", found)
        c.leave_if(c.has_raised(), raised)  # it is no number
    target = c.after(record, c.field(record, ENTRY, "target"))
    thread = c.python("PyEval_SaveThread")
    status = c.call_pointer("i64", fire, target, extents, slots, c.load("i64", stream))
    c.python("PyEval_RestoreThread", thread)
    c.leave_if(c.is_null(status), done)
    c.leave_if(c.has_raised(), raised)
    with c.when(c.differ(status, c.word(PYTHON_LAUNCHES))):
        error = c.python("PyLong_FromLongLong", status), c.call("ptr", "triple", extents)
        _call_and_drop(c, c.field(record, ENTRY, "fail", "ptr"), error, result)
        c.br(raised)
    c.store(c.python("PyLong_FromUnsignedLongLong", c.load("i64", stream)), told)
    c.br(in_python)
    c.position(in_python)
    size = c.shl(c.field(record, ENTRY, "num_slots"), c.word(WORD.bit_length() - 1))
    stream_told, nobody = c.load("ptr", told), c.field(record, ENTRY, "none", "ptr")
    with c.when(c.is_null(stream_told)):
        c.python("Py_IncRef", nobody)
        c.store(nobody, told)
    packed = c.call("ptr", "triple", extents), c.python("PyBytes_FromStringAndSize", slots, size), c.load("ptr", told)
    _call_and_drop(c, c.field(record, ENTRY, "run_packed", "ptr"), packed, result)
    with c.when(c.is_not_null(c.load("ptr", result))):
        c.python("Py_DecRef", c.load("ptr", result))
        c.br(done)
    c.br(raised)
    c.position(raised)
    c.ret(UNKNOWN)
    c.position(done)
    c.ret(DONE)


def _call_and_drop(c: Code, function: Value, args: Sequence[Value], result: Value) -> None:
    """Call with objects that were made for it; of one that could not be made the exception is set."""
    are_made = [c.is_not_null(arg) for arg in args]
    with c.when(reduce(c.and_, are_made)):
        c.call_with(function, args, result)
    for arg, is_made in zip(args, are_made, strict=True):
        with c.when(is_made):
            c.python("Py_DecRef", arg)

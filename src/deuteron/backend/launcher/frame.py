"""What a launch in machine code keeps on its stack, how it finds its entry, and how it ends where it does not launch.

frame = Frame(c)
record = find_entry(c, frame, kernel, (args, num_args, names), slowly)
...
end(c, frame, slowly, fail, (kernel, grid, args, num_args, names))      `slowly`: in Python; `fail`: it has raised
"""

from __future__ import annotations

from deuteron.backend.launcher.arguments import BOUND
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.entries import record_of
from deuteron.backend.launcher.records import (
    BY_IDENTITY,
    KERNEL,
    MOST_OPTIONS,
    MOST_PARAMETERS,
    MOST_SLOTS,
    MOST_WORDS,
    SHARED,
    VIEW,
)
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value


def define_release(module: Module) -> None:
    given = [("ptr", "bound"), ("i64", "num_bound"), ("ptr", "entry"), ("ptr", "overlapping")]
    c = module.function("release", "void", given, kind=Code)
    bound, num_bound, *entries = c.parameters
    with c.repeat(num_bound) as index:
        passed = c.field(c.after(bound, c.mul(index, c.word(len(BOUND)))), BOUND, "passed", "ptr")
        with c.when(c.is_not_null(passed)):
            c.python("Py_DecRef", passed)
    for entry in entries:
        with c.when(c.is_not_null(entry)):
            c.python("Py_DecRef", entry)
    c.ret()


def define_run_slowly(module: Module) -> None:
    """The launch in Python, unless what the code met is no error of the launch, such as an interrupt."""
    given = [("ptr", "kernel"), ("ptr", "grid"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("run_slowly", "ptr", given, kind=Code)
    kernel, grid, args, num_args, names = c.parameters
    result = c.variable("ptr", NULL)
    fail = c.block("fail")
    with c.when(c.has_raised()):
        exception = c.field(c.field(kernel, KERNEL, "shared", "ptr"), SHARED, "exception", "ptr")
        c.leave_if(c.is_null(c.python("PyErr_ExceptionMatches", exception)), fail)
        c.python("PyErr_Clear")
    given = c.python("PyTuple_New", num_args)
    c.leave_if(c.is_null(given), fail)
    with c.repeat(num_args) as index:
        c.set_item(given, index, c.at(args, index, "ptr"))
    keywords = c.python("PyDict_New")
    drop_given, drop = c.block("drop_given"), c.block("drop")
    c.leave_if(c.is_null(keywords), drop_given)
    with c.when(c.is_not_null(names)), c.repeat(c.python("PyTuple_Size", names)) as index:
        name = c.python("PyTuple_GetItem", names, index)
        status = c.python("PyDict_SetItem", keywords, name, c.at(args, c.add(num_args, index), "ptr"))
        c.leave_if(c.is_not_null(status), drop)
    c.call_with(c.field(kernel, KERNEL, "run_slowly", "ptr"), [grid, given, keywords], result)
    c.br(drop)
    c.position(drop)
    c.python("Py_DecRef", keywords)
    c.br(drop_given)
    c.position(drop_given)
    c.python("Py_DecRef", given)
    c.ret(c.load("ptr", result))
    c.position(fail)
    c.ret(NULL)


class Frame:
    """What a launch keeps on its stack."""

    def __init__(self, c: Code):
        self.entry, self.overlapping = c.variable("ptr", NULL), c.variable("ptr", NULL)
        self.num_bound, self.num_options = c.variable("i64", c.word(0)), c.variable("i64", c.word(0))
        self.objects = c.alloca("ptr", MOST_PARAMETERS, align=16)
        self.options = c.alloca("ptr", 2 * MOST_OPTIONS, align=16)
        self.bound = c.alloca("i64", len(BOUND) * MOST_PARAMETERS, align=16)
        self.words = c.alloca("i64", MOST_WORDS, align=16)
        self.slots = c.alloca("i64", MOST_SLOTS, align=16)
        self.num_words, self.record = c.variable("i64"), c.variable("ptr")
        self.views = c.alloca("i64", len(VIEW) * MOST_SLOTS, align=16)
        self.extents = c.alloca("i64", 3, align=16)


def find_entry(c: Code, frame: Frame, kernel: Value, given: tuple[Value, ...], slowly: Block) -> Value:
    """The record of the entry of such arguments, if its conditions hold."""
    found = frame.objects, frame.options, frame.num_options
    c.leave_if(c.is_null(c.call("i32", "bind", kernel, *given, *found)), slowly)
    num_options = c.load("i64", frame.num_options)
    bound = frame.bound, frame.num_bound
    count = c.call("i64", "key", kernel, frame.objects, frame.options, num_options, *bound, frame.words)
    c.leave_if(c.is_null(count), slowly)
    c.store(count, frame.num_words)
    record = _look_up(c, frame, kernel, frame.entry, slowly)
    c.leave_if(c.is_null(c.call("i32", "holds", record)), slowly)
    return record


def find_overlapping(c: Code, frame: Frame, kernel: Value, record: Value, slowly: Block) -> Value:
    """The record of the entry of arguments that are packed for `record`, with one option more: they overlap."""
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    words = [c.field(shared, SHARED, "may_alias"), c.word(BY_IDENTITY), c.field(shared, SHARED, "true")]
    for word in words:
        c.put(frame.words, c.increase(frame.num_words), word)
    overlapping = _look_up(c, frame, kernel, frame.overlapping, slowly)
    with c.when(c.is_null(c.call("i32", "are_packed_alike", record, overlapping))):
        c.leave_if(c.is_null(c.call("i32", "holds", overlapping)), slowly)
        c.leave_if(c.is_null(c.call("i32", "pack", shared, overlapping, frame.bound, frame.slots)), slowly)
    return overlapping


def _look_up(c: Code, frame: Frame, kernel: Value, entry: Value, slowly: Block) -> Value:
    key = frame.words, c.load("i64", frame.num_words)
    c.leave_if(c.is_null(c.call("i32", "find", kernel, *key, entry)), slowly)
    return record_of(c, c.load("ptr", entry))


def release(c: Code, frame: Frame) -> None:
    entries = (c.load("ptr", entry) for entry in (frame.entry, frame.overlapping))
    c.call("void", "release", frame.bound, c.load("i64", frame.num_bound), *entries)


def end(c: Code, frame: Frame, slowly: Block, fail: Block, launch: tuple[Value, ...]) -> None:
    c.position(slowly)
    release(c, frame)
    c.ret(c.call("ptr", "run_slowly", *launch))
    c.position(fail)
    release(c, frame)
    c.ret(NULL)

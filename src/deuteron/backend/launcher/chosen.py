"""Machine code that launches what an autotuner chose.

    launch_chosen(self, args, num_args, names)      self is ((record of the tuner, ...), grid)

    the words of the key -> the CHOICE -> its conditions -> the keywords of the configuration -> the launch

The key has the words of all arguments that are given, and the values of those that the tuner is told to compare.
"""

from __future__ import annotations

from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.entries import record_of
from deuteron.backend.launcher.frame import Frame, end, find_entry, release
from deuteron.backend.launcher.records import CHOICE, CONDITION, MOST_OPTIONS, MOST_PARAMETERS
from deuteron.backend.llvm.module import Module


def define_chosen(module: Module) -> None:
    """Add the functions `join_keywords` and `launch_chosen`."""
    _define_join_keywords(module)
    _define_launch_chosen(module)


def _define_launch_chosen(module: Module) -> None:
    """Launch what an autotuner chose for such arguments: with the keywords of its configuration after those given."""
    given = [("ptr", "self"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("launch_chosen", "ptr", given, "external", kind=Code)
    own, args, num_args, names = c.parameters
    frame, result = Frame(c), c.variable("ptr", NULL)
    everything = c.alloca("ptr", MOST_PARAMETERS + 2 * MOST_OPTIONS, align=16)
    slowly, fail, drop = c.block("slowly"), c.block("fail"), c.block("drop")
    kernel = record_of(c, c.python("PyTuple_GetItem", own, c.word(0)))
    grid = c.python("PyTuple_GetItem", own, c.word(1))
    record = find_entry(c, frame, kernel, (args, num_args, names), slowly)
    all_names = c.call("ptr", "join_keywords", record, args, num_args, names, everything)
    c.leave_if(c.is_null(all_names), fail)
    tuner, attribute, config = (c.field(record, CHOICE, field, "ptr") for field in ("tuner", "attribute", "config"))
    c.leave_if(c.is_not_null(c.python("PyObject_SetAttr", tuner, attribute, config)), drop)
    launched = record_of(c, c.field(record, CHOICE, "kernel", "ptr"))
    c.store(c.call("ptr", "launch_kernel", launched, grid, everything, num_args, all_names), result)
    c.br(drop)
    c.position(drop)
    c.python("Py_DecRef", all_names)
    release(c, frame)
    c.ret(c.load("ptr", result))
    end(c, frame, slowly, fail, (kernel, grid, args, num_args, names))


def _define_join_keywords(module: Module) -> None:
    """Arguments and keywords of a launch, then those of a CHOICE; a new reference to the names, NULL with an exception.

    There is room for all: a launch binds at most so many, and `fast_choice.py` sees to it that a choice adds few.
    """
    given = [("ptr", "record"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names"), ("ptr", "everything")]
    c = module.function("join_keywords", "ptr", given, kind=Code)
    record, args, num_args, names, everything = c.parameters
    num_given, fail = c.variable("i64", num_args), c.block("fail")
    own_names, count = c.field(record, CHOICE, "names", "ptr"), c.field(record, CHOICE, "num_values")
    joined = c.variable("ptr", own_names)
    with c.when(c.is_not_null(names)):
        before = c.python("PyTuple_Size", names)
        c.store(c.add(num_args, before), num_given)
        items = c.python("PyTuple_New", c.add(before, count))
        c.leave_if(c.is_null(items), fail)
        with c.repeat(before) as index:
            c.set_item(items, index, c.python("PyTuple_GetItem", names, index))
        with c.repeat(count) as index:
            c.set_item(items, c.add(before, index), c.python("PyTuple_GetItem", own_names, index))
        c.store(items, joined)
    with c.when(c.is_null(names)):
        c.python("Py_IncRef", own_names)
    total = c.load("i64", num_given)
    with c.repeat(total) as index:
        c.put(everything, index, c.at(args, index, "ptr"))
    values = c.after(record, c.add(c.field(record, CHOICE, "num_words"), c.word(len(CHOICE))))
    values = c.after(values, c.mul(c.field(record, CHOICE, "num_conditions"), c.word(len(CONDITION))))
    with c.repeat(count) as index:
        c.put(everything, c.add(total, index), c.at(values, index, "ptr"))
    c.ret(c.load("ptr", joined))
    c.position(fail)
    c.ret(NULL)

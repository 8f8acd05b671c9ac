"""Machine code for the grid of a launch: three extents, as `runtime/grid.py` finds them.

    evaluate_grid(kernel, grid, objects, options, num_options, extents)     1, or 0 with an exception

A tuple of `int` and an `int` are read here. A function is called with the arguments by name. Whatever else it is, or is
given back, and what is out of range, goes to the function `extents` of the kernel, which returns three numbers or
raises.
"""

from __future__ import annotations

from deuteron.backend.launcher.arguments import DONE, UNKNOWN
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.records import KERNEL, PARAMETER, SHARED
from deuteron.backend.llvm.module import Module

MAX_EXTENT = 2**31 - 1


def define_grid(module: Module) -> None:
    """Add the functions `triple` and `evaluate_grid`, and those that they call."""
    define_triple(module)
    define_read_extent(module)
    _define_read_extents(module)
    _define_arguments_by_name(module)
    _define_call_grid(module)
    _define_evaluate_grid(module)


def define_triple(module: Module) -> None:
    """The extents as a new tuple, or NULL with an exception."""
    c = module.function("triple", "ptr", [("ptr", "extents")], kind=Code)
    (extents,) = c.parameters
    fail, drop = c.block("fail"), c.block("drop")
    items = c.python("PyTuple_New", c.word(3))
    c.leave_if(c.is_null(items), fail)
    for axis in range(3):
        number = c.python("PyLong_FromLongLong", c.at(extents, c.word(axis)))
        c.leave_if(c.is_null(number), drop)
        c.python("PyTuple_SetItem", items, c.word(axis), number)
    c.ret(items)
    c.position(drop)
    c.python("Py_DecRef", items)
    c.br(fail)
    c.position(fail)
    c.ret(NULL)


def define_read_extent(module: Module) -> None:
    """Of an `int` from 0 to MAX_EXTENT."""
    c = module.function("read_extent", "i32", [("ptr", "shared"), ("ptr", "obj"), ("ptr", "extent")], kind=Code)
    shared, obj, extent = c.parameters
    overflow = c.variable("i32")
    unknown = c.block("unknown")
    c.leave_if(c.differ(c.class_of(obj), c.field(shared, SHARED, "int", "ptr")), unknown)
    value = c.python("PyLong_AsLongLongAndOverflow", obj, overflow)
    c.leave_if(c.is_not_null(c.load("i32", overflow)), unknown)
    c.leave_if(c.icmp("ugt", value, c.word(MAX_EXTENT)), unknown)
    c.put(extent, c.word(0), value)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_read_extents(module: Module) -> None:
    c = module.function("read_extents", "i32", [("ptr", "shared"), ("ptr", "grid"), ("ptr", "extents")], kind=Code)
    shared, grid, extents = c.parameters
    unknown = c.block("unknown")
    for axis in range(3):
        c.put(extents, c.word(axis), c.word(1))
    with c.when(c.differ(c.class_of(grid), c.field(shared, SHARED, "tuple", "ptr"))):
        c.ret(c.call("i32", "read_extent", shared, grid, extents))
    count = c.python("PyTuple_Size", grid)
    c.leave_if(c.icmp("ugt", c.sub(count, c.word(1)), c.word(2)), unknown)
    with c.repeat(count) as axis:
        item = c.python("PyTuple_GetItem", grid, axis)
        c.leave_if(c.is_null(c.call("i32", "read_extent", shared, item, c.after(extents, axis))), unknown)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_arguments_by_name(module: Module) -> None:
    """A new dictionary with the arguments, then the options; NULL with an exception.

    It begins as a copy of one that has the names: that takes half as long as to let it grow (20 arguments).
    """
    given = [("ptr", "kernel"), ("ptr", "objects"), ("ptr", "options"), ("i64", "num_options")]
    c = module.function("arguments_by_name", "ptr", given, kind=Code)
    kernel, objects, options, num_options = c.parameters
    fail, drop = c.block("fail"), c.block("drop")
    named = c.python("PyDict_Copy", c.field(kernel, KERNEL, "names", "ptr"))
    c.leave_if(c.is_null(named), fail)
    with c.repeat(c.field(kernel, KERNEL, "num_parameters")) as index:
        place = c.add(c.mul(index, c.word(len(PARAMETER))), c.word(len(KERNEL) + PARAMETER.index("name")))
        status = c.python("PyDict_SetItem", named, c.at(kernel, place, "ptr"), c.at(objects, index, "ptr"))
        c.leave_if(c.is_not_null(status), drop)
    with c.repeat(num_options) as index:
        pair = c.after(options, c.shl(index, c.word(1)))
        status = c.python("PyDict_SetItem", named, c.at(pair, c.word(0), "ptr"), c.at(pair, c.word(1), "ptr"))
        c.leave_if(c.is_not_null(status), drop)
    c.ret(named)
    c.position(drop)
    c.python("Py_DecRef", named)
    c.br(fail)
    c.position(fail)
    c.ret(NULL)


def _define_call_grid(module: Module) -> None:
    """What a grid that is a function gives. Its error is given to `grid_failed` of the kernel, which raises another."""
    c = module.function("call_grid", "ptr", [("ptr", "kernel"), ("ptr", "grid"), ("ptr", "named")], kind=Code)
    kernel, grid, named = c.parameters
    kind, error, trace = (c.variable("ptr", NULL) for _ in range(3))
    result = c.python("PyObject_CallOneArg", grid, named)
    with c.when(c.is_not_null(result)):
        c.ret(result)
    c.python("PyErr_Fetch", kind, error, trace)
    c.python("PyErr_NormalizeException", kind, error, trace)
    raised, traceback = c.load("ptr", error), c.load("ptr", trace)
    with c.when(c.is_not_null(traceback)):
        c.python("PyException_SetTraceback", raised, traceback)
        c.python("Py_DecRef", traceback)
    c.python("Py_DecRef", c.load("ptr", kind))
    c.call_with(c.field(kernel, KERNEL, "grid_failed", "ptr"), [raised, grid, named], error)
    c.python("Py_DecRef", raised)
    c.ret(NULL)


def _define_evaluate_grid(module: Module) -> None:
    given = [("ptr", "kernel"), ("ptr", "grid"), ("ptr", "objects"), ("ptr", "options"), ("i64", "num_options")]
    c = module.function("evaluate_grid", "i32", [*given, ("ptr", "extents")], kind=Code)
    kernel, grid, objects, options, num_options, extents = c.parameters
    result = c.variable("ptr", grid)
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    fail = c.block("fail")
    with c.when(c.is_not_null(c.call("i32", "read_extents", shared, grid, extents))):
        c.ret(DONE)
    c.python("Py_IncRef", grid)
    with c.when(c.is_not_null(c.python("PyCallable_Check", grid))):
        named = c.call("ptr", "arguments_by_name", kernel, objects, options, num_options)
        c.python("Py_DecRef", grid)
        c.leave_if(c.is_null(named), fail)
        c.store(c.call("ptr", "call_grid", kernel, grid, named), result)
        c.python("Py_DecRef", named)
        c.leave_if(c.is_null(c.load("ptr", result)), fail)
    found = c.load("ptr", result)
    status = c.call("i32", "read_extents", shared, found, extents)
    with c.when(c.is_not_null(status)):
        c.python("Py_DecRef", found)
        c.ret(DONE)
    checked = c.python("PyObject_CallOneArg", c.field(kernel, KERNEL, "extents", "ptr"), found)
    c.python("Py_DecRef", found)
    c.leave_if(c.is_null(checked), fail)
    status = c.call("i32", "read_extents", shared, checked, extents)
    c.python("Py_DecRef", checked)
    c.ret(status)
    c.position(fail)
    c.ret(UNKNOWN)

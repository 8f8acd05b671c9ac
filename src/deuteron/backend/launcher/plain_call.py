"""Launches with all that is to be known given in order, by machine code: what `compiler/runner.py` does in Python.

    run(gx, gy, gz, stream, function, packed_metadata, launch_metadata, enter, exit, *args)

    the hooks are empty -> the extents -> the slots, of tensors their addresses -> run

Where the code cannot tell it calls `run_in_python` with the same arguments, having done nothing that can be seen. It
reads a RUNNER record: after it come the slots of the kernel, and what its target needs. Where arrays overlap that the
kernel takes to be apart, it calls the same function of the kernel that is compiled for such, once there is one.
"""

from __future__ import annotations

from deuteron.backend.launcher.apart import OVERLAP, define_apart
from deuteron.backend.launcher.arguments import DONE, UNKNOWN, is_negative
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.entries import define_convert, record_of
from deuteron.backend.launcher.grid import define_read_extent, define_triple
from deuteron.backend.launcher.records import (
    AS_ADDRESS,
    ENTER,
    EXIT,
    MOST_SLOTS,
    PLAIN_SLOT,
    RUNNER,
    SHARED,
    STREAM,
    VIEW,
)
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value
from deuteron.backend.native_launch import PYTHON_LAUNCHES


def plain_module() -> Module:
    """The module with the function `run_plain`."""
    module = Module("plain_launcher")
    define_convert(module)
    define_read_extent(module)
    define_triple(module)
    define_apart(module)
    _define_address(module)
    _define_slots(module)
    _define_call_all(module)
    _define_in_python(module)
    _define_run_plain(module)
    return module


def _define_address(module: Module) -> None:
    """Of a tensor, a number, or None."""
    c = module.function("address", "i32", [("ptr", "shared"), ("ptr", "obj"), ("ptr", "slot")], kind=Code)
    shared, obj, slot = c.parameters
    unknown, tensor = c.block("unknown"), c.block("tensor")
    kind = c.class_of(obj)
    for name in ("tensor", "parameter"):
        c.leave_if(c.equal(kind, c.field(shared, SHARED, name, "ptr")), tensor)
    with c.when(c.equal(kind, c.field(shared, SHARED, "int", "ptr"))):
        c.put(slot, c.word(0), c.python("PyLong_AsUnsignedLongLongMask", obj))
        c.ret(DONE)
    c.leave_if(c.differ(obj, c.field(shared, SHARED, "none", "ptr")), unknown)
    c.put(slot, c.word(0), c.word(0))
    c.ret(DONE)
    c.position(tensor)
    handle = c.gep("i8", obj, c.field(shared, SHARED, "tensor_offset"))
    c.leave_if(is_negative(c, shared, handle), unknown)
    status = c.call_pointer("i32", c.field(shared, SHARED, "tensor_data", "ptr"), handle, slot)
    c.leave_if(c.is_not_null(status), unknown)
    c.leave_if(c.is_null(c.at(slot, c.word(0))), unknown)  # where it has elements, they have no memory
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_slots(module: Module) -> None:
    c = module.function("fill_slots", "i32", [("ptr", "record"), ("ptr", "args"), ("ptr", "slots")], kind=Code)
    record, args, slots = c.parameters
    unknown = c.block("unknown")
    shared = c.field(record, RUNNER, "shared", "ptr")
    with c.repeat(c.field(record, RUNNER, "num_slots")) as index:
        described = c.after(record, c.add(c.mul(index, c.word(len(PLAIN_SLOT))), c.word(len(RUNNER))))
        obj = c.at(args, c.field(described, PLAIN_SLOT, "argument"), "ptr")
        form, slot = c.field(described, PLAIN_SLOT, "format"), c.after(slots, index)
        number, done = c.block("number"), c.block("done")
        c.leave_if(c.differ(form, c.word(AS_ADDRESS)), number)
        c.leave_if(c.is_null(c.call("i32", "address", shared, obj, slot)), unknown)
        c.br(done)
        c.position(number)
        c.leave_if(c.is_null(c.call("i32", "convert", shared, obj, form, slot)), unknown)
        c.br(done)
        c.position(done)
        c.put(slots, index, c.and_(c.at(slots, index), c.field(described, PLAIN_SLOT, "mask")))
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_in_python(module: Module) -> None:
    """The launch in Python, unless what the code met is no error of the launch, such as an interrupt."""
    given = [("ptr", "record"), ("ptr", "args"), ("i64", "num_args")]
    c = module.function("run_in_python", "ptr", given, kind=Code)
    record, args, num_args = c.parameters
    fail = c.block("fail")
    with c.when(c.is_not_null(c.python("PyErr_Occurred"))):
        exception = c.field(c.field(record, RUNNER, "shared", "ptr"), SHARED, "exception", "ptr")
        c.leave_if(c.is_null(c.python("PyErr_ExceptionMatches", exception)), fail)
        c.python("PyErr_Clear")
    c.ret(c.call("ptr", "call_all", c.field(record, RUNNER, "in_python", "ptr"), args, num_args))
    c.position(fail)
    c.ret(NULL)


def _define_call_all(module: Module) -> None:
    """Call a function of Python with all arguments."""
    c = module.function("call_all", "ptr", [("ptr", "function"), ("ptr", "args"), ("i64", "num_args")], kind=Code)
    function, args, num_args = c.parameters
    items = c.python("PyTuple_New", num_args)
    with c.when(c.is_null(items)):
        c.ret(NULL)
    with c.repeat(num_args) as index:
        c.set_item(items, index, c.at(args, index, "ptr"))
    result = c.python("PyObject_Call", function, items, NULL)
    c.python("Py_DecRef", items)
    c.ret(result)


def _define_run_plain(module: Module) -> None:
    """A function as CPython calls it; `self` is a tuple that begins with the record."""
    given = [("ptr", "self"), ("ptr", "args"), ("i64", "num_args")]
    c = module.function("run_plain", "ptr", given, "external", kind=Code)
    own, args, num_args = c.parameters
    extents, slots = c.alloca("i64", 3, align=16), c.alloca("i64", MOST_SLOTS, align=16)
    views = c.alloca("i64", len(VIEW) * MOST_SLOTS, align=16)
    in_python, done = c.block("in_python"), c.block("done")
    record = record_of(c, own)
    shared = c.field(record, RUNNER, "shared", "ptr")
    c.leave_if(c.differ(num_args, c.field(record, RUNNER, "num_args")), in_python)
    for hook in (ENTER, EXIT):
        obj = c.at(args, c.word(hook), "ptr")
        with c.when(c.differ(obj, c.field(shared, SHARED, "none", "ptr"))):
            c.leave_if(c.is_not_null(c.python("PyObject_IsTrue", obj)), in_python)
    for axis in range(3):
        extent = c.after(extents, axis)
        c.leave_if(c.is_null(c.call("i32", "read_extent", shared, c.at(args, c.word(axis), "ptr"), extent)), in_python)
    stream = c.at(args, c.word(STREAM), "ptr")
    c.leave_if(c.differ(c.class_of(stream), c.field(shared, SHARED, "int", "ptr")), in_python)
    queue = c.python("PyLong_AsUnsignedLongLongMask", stream)
    c.leave_if(c.is_null(c.call("i32", "fill_slots", record, args, slots)), in_python)
    apart = c.after(record, c.field(record, RUNNER, "apart"))
    are_apart = c.call("i32", "are_apart", shared, apart, args, slots, views)
    c.leave_if(c.is_null(are_apart), in_python)
    with c.when(c.equal(are_apart, OVERLAP)):
        other = c.load("ptr", c.field(record, RUNNER, "overlapping", "ptr"))
        c.leave_if(c.is_null(other), in_python)
        c.ret(c.call("ptr", "call_all", other, args, num_args))
    for axis in range(3):
        c.leave_if(c.is_null(c.at(extents, c.word(axis))), done)
    _fire(c, record, extents, slots, queue, done, in_python)
    c.position(done)
    none = c.field(shared, SHARED, "none", "ptr")
    c.python("Py_IncRef", none)
    c.ret(none)
    c.position(in_python)
    c.ret(c.call("ptr", "run_in_python", record, args, num_args))


def _fire(c: Code, record: Value, extents: Value, slots: Value, queue: Value, done, in_python) -> None:
    """Give the kernel to its target, without Python's lock."""
    target = c.after(record, c.field(record, RUNNER, "target"))
    thread = c.python("PyEval_SaveThread")
    status = c.call_pointer("i64", c.field(record, RUNNER, "fire", "ptr"), target, extents, slots, queue)
    c.python("PyEval_RestoreThread", thread)
    c.leave_if(c.is_null(status), done)
    failed, no_number, no_sizes = c.block("failed"), c.block("no_number"), c.block("no_sizes")
    c.leave_if(c.has_raised(), no_number)
    c.leave_if(c.equal(status, c.word(PYTHON_LAUNCHES)), in_python)
    result = c.alloca("ptr", align=8)
    number = c.python("PyLong_FromLongLong", status)
    c.leave_if(c.is_null(number), no_number)
    sizes = c.call("ptr", "triple", extents)
    c.leave_if(c.is_null(sizes), no_sizes)
    c.call_with(c.field(record, RUNNER, "fail", "ptr"), [number, sizes], result)
    c.python("Py_DecRef", sizes)
    c.br(failed)
    c.position(no_sizes)
    c.br(failed)
    c.position(failed)
    c.python("Py_DecRef", number)
    c.br(no_number)
    c.position(no_number)
    c.ret(NULL)

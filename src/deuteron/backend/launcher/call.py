"""Machine code of a launch: `kernel[grid]` makes a callable of grid and kernel, and this is what it does.

    launch(self, args, num_args, names)     as CPython calls a function; self is ((record of the kernel, ...), grid)
    with_grid(self, grid)                   the callable; self is (record of the kernel, ...)
    launch_chosen(self, args, ...)          the same of an autotuner: finds what it chose, and launches that
    launch_prepared(self, args, ...)        self is ((record of the kernel, ...), (record of an entry, ...), grid)

    bind the arguments -> the words of the key -> the entry -> its conditions -> pack -> the grid -> run

Where arrays overlap that the entry's kernel takes to be apart, it is the entry of the same key with `may_alias=True`;
conditions and slots that are those of the first entry, as they mostly are, are not gone through again.

Wherever the code cannot tell it calls `run_slowly(grid, args, keywords)`, which does all of it in Python, and raises
what is to be raised. It has done nothing then that can be seen. Once a grid that is a function has been called, it goes
on to the end.
"""

from __future__ import annotations

from deuteron.backend.launcher.apart import OVERLAP, define_apart
from deuteron.backend.launcher.arguments import BOUND, DONE, UNKNOWN, define_arguments
from deuteron.backend.launcher.bind import define_bind, define_key, parameter_of
from deuteron.backend.launcher.chosen import define_chosen
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.entries import define_entries, record_of
from deuteron.backend.launcher.frame import (
    Frame,
    define_release,
    define_run_slowly,
    end,
    find_entry,
    find_overlapping,
    release,
)
from deuteron.backend.launcher.grid import define_grid
from deuteron.backend.launcher.records import ENTRY, KERNEL, PARAMETER, SHARED
from deuteron.backend.launcher.run import define_run
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value


def launcher_module() -> Module:
    """The module with the functions that are called from Python (`records.EXPORTED`)."""
    module = Module("launcher")
    define_arguments(module)
    define_entries(module)
    define_apart(module)
    define_grid(module)
    define_bind(module)
    define_key(module)
    define_release(module)
    define_run_slowly(module)
    define_run(module)
    _define_launch_kernel(module)
    _define_launch(module)
    define_chosen(module)
    _define_fit(module)
    _define_launch_prepared(module)
    _define_with_grid(module)
    return module


def _define_launch(module: Module) -> None:
    given = [("ptr", "self"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("launch", "ptr", given, "external", kind=Code)
    own, *arguments = c.parameters
    kernel = record_of(c, c.python("PyTuple_GetItem", own, c.word(0)))
    c.ret(c.call("ptr", "launch_kernel", kernel, c.python("PyTuple_GetItem", own, c.word(1)), *arguments))


def _define_launch_kernel(module: Module) -> None:
    given = [("ptr", "kernel"), ("ptr", "grid"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("launch_kernel", "ptr", given, kind=Code)
    kernel, grid, args, num_args, names = c.parameters
    frame = Frame(c)
    slowly, fail = c.block("slowly"), c.block("fail")
    record = find_entry(c, frame, kernel, (args, num_args, names), slowly)
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    c.leave_if(c.is_null(c.call("i32", "pack", shared, record, frame.bound, frame.slots)), slowly)
    c.store(record, frame.record)
    apart = _are_apart(c, frame, shared, record, frame.objects, slowly)
    with c.when(c.equal(apart, OVERLAP)):
        c.store(find_overlapping(c, frame, kernel, record, slowly), frame.record)
    record = c.load("ptr", frame.record)
    options = frame.options, c.load("i64", frame.num_options)
    evaluated = c.call("i32", "evaluate_grid", kernel, grid, frame.objects, *options, frame.extents)
    c.leave_if(c.is_null(evaluated), fail)
    result = c.field(record, ENTRY, "kernel", "ptr")
    _finish(c, frame, record, result, fail)
    end(c, frame, slowly, fail, (kernel, grid, args, num_args, names))


def _are_apart(c: Code, frame: Frame, shared: Value, record: Value, objects: Value, slowly: Block) -> Value:
    """What `are_apart` says of the arrays that the kernel of an entry takes to be apart."""
    apart = c.after(record, c.field(record, ENTRY, "apart"))
    found = c.call("i32", "are_apart", shared, apart, objects, frame.slots, frame.views)
    c.leave_if(c.is_null(found), slowly)
    return found


def _finish(c: Code, frame: Frame, record: Value, result: Value, fail: Block) -> None:
    """Run the programs that there are, and return an object."""
    is_empty = c.block("is_empty")
    for axis in range(3):
        c.leave_if(c.is_null(c.at(frame.extents, c.word(axis))), is_empty)
    c.leave_if(c.is_null(c.call("i32", "run", record, frame.extents, frame.slots, c.word(0))), fail)
    c.br(is_empty)
    c.position(is_empty)
    c.python("Py_IncRef", result)
    release(c, frame)
    c.ret(result)


def _define_launch_prepared(module: Module) -> None:
    """The arguments are those of the parameters that are no constexprs; they have to have the tokens of the entry."""
    given = [("ptr", "self"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("launch_prepared", "ptr", given, "external", kind=Code)
    own, args, num_args, names = c.parameters
    frame = Frame(c)
    slowly, fail = c.block("slowly"), c.block("fail")
    kernel, record = (record_of(c, c.python("PyTuple_GetItem", own, c.word(item))) for item in range(2))
    grid = c.python("PyTuple_GetItem", own, c.word(2))
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    c.leave_if(c.is_not_null(names), slowly)
    arguments = args, num_args, frame.bound, frame.num_bound
    c.leave_if(c.is_null(c.call("i32", "fit", kernel, record, *arguments)), slowly)
    c.leave_if(c.is_null(c.call("i32", "holds", record)), slowly)
    c.leave_if(c.is_null(c.call("i32", "pack", shared, record, frame.bound, frame.slots)), slowly)
    c.leave_if(c.equal(_are_apart(c, frame, shared, record, args, slowly), OVERLAP), slowly)
    c.leave_if(c.is_null(c.call("i32", "read_extents", shared, grid, frame.extents)), slowly)
    _finish(c, frame, record, c.field(shared, SHARED, "none", "ptr"), fail)
    end(c, frame, slowly, fail, (kernel, grid, args, num_args, names))


def _define_fit(module: Module) -> None:
    """What positional arguments are, if they have the tokens of an entry."""
    given = [("ptr", "kernel"), ("ptr", "record"), ("ptr", "args"), ("i64", "num_args")]
    c = module.function("fit", "i32", [*given, ("ptr", "bound"), ("ptr", "num_bound")], kind=Code)
    kernel, record, args, num_args, bound, num_bound = c.parameters
    place, word = c.variable("i64", c.word(0)), c.variable("i64", c.word(len(ENTRY)))
    unknown = c.block("unknown")
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    with c.repeat(c.field(kernel, KERNEL, "num_parameters")) as index:
        parameter, argument = parameter_of(c, kernel, index), c.after(bound, c.mul(index, c.word(len(BOUND))))
        c.put(argument, c.word(BOUND.index("passed")), NULL)
        c.store(c.add(index, c.word(1)), num_bound)
        constant, done = c.block("constant"), c.block("done")
        c.leave_if(c.is_not_null(c.field(parameter, PARAMETER, "is_constexpr")), constant)
        number = c.increase(place)
        c.leave_if(c.icmp("uge", number, num_args), unknown)
        obj = c.at(args, number, "ptr")
        c.leave_if(c.is_null(c.call("i32", "argument", shared, parameter, obj, argument)), unknown)
        c.leave_if(c.differ(c.field(argument, BOUND, "token"), c.at(record, c.increase(word))), unknown)
        c.br(done)
        c.position(constant)
        c.increase(word, 2)
        c.br(done)
        c.position(done)
    c.leave_if(c.differ(c.load("i64", place), num_args), unknown)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _define_with_grid(module: Module) -> None:
    c = module.function("with_grid", "ptr", [("ptr", "self"), ("ptr", "grid")], "external", kind=Code)
    own, grid = c.parameters
    kernel = record_of(c, own)
    definition = c.field(kernel, KERNEL, "definition", "ptr")
    pair = c.python("PyTuple_New", c.word(2))
    with c.when(c.is_null(pair)):
        c.ret(NULL)
    c.set_item(pair, c.word(0), own)
    c.set_item(pair, c.word(1), grid)
    function = c.python("PyCFunction_NewEx", definition, pair, NULL)
    c.python("Py_DecRef", pair)
    c.ret(function)

"""Machine code of a launch: `kernel[grid]` makes a callable of grid and kernel, and this is what it does.

    launch(self, args, num_args, names)     as CPython calls a function; self is ((record of the kernel, ...), grid)
    with_grid(self, grid)                   the callable; self is (record of the kernel, ...)
    launch_prepared(self, args, ...)        self is ((record of the kernel, ...), (record of an entry, ...), grid)

    bind the arguments -> the words of the key -> the entry -> its conditions -> pack -> the grid -> run

Wherever the code cannot tell it calls `run_slowly(grid, args, keywords)`, which does all of it in Python, and raises
what is to be raised. It has done nothing then that can be seen. Once a grid that is a function has been called, it goes
on to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from deuteron.backend.launcher.arguments import BOUND, DONE, UNKNOWN, define_arguments
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.entries import define_entries, record_of
from deuteron.backend.launcher.grid import define_grid
from deuteron.backend.launcher.records import (
    ENTRY,
    KERNEL,
    MOST_OPTIONS,
    MOST_PARAMETERS,
    MOST_SLOTS,
    MOST_WORDS,
    PARAMETER,
    SHARED,
    WORD,
)
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value
from deuteron.backend.native_launch import PYTHON_LAUNCHES

EXPORTED = ("launch", "launch_prepared", "with_grid", "hash_words")


def launcher_module() -> Module:
    """The module with the functions EXPORTED."""
    module = Module("launcher")
    define_arguments(module)
    define_entries(module)
    define_grid(module)
    _define_bind(module)
    _define_key(module)
    _define_release(module)
    _define_run_slowly(module)
    _define_run(module)
    _define_launch(module)
    _define_fit(module)
    _define_launch_prepared(module)
    _define_with_grid(module)
    return module


class _Found(NamedTuple):
    """The addresses of what binding finds: arguments in order, pairs of a name and an option, the number of these."""

    objects: Value
    options: Value
    num_options: Value


def _define_bind(module: Module) -> None:
    """The arguments in the order of the parameters; keywords that are none of these with their names in `options`."""
    arguments = [("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    variables = [("ptr", name) for name in _Found._fields]
    c = module.function("bind", "i32", [("ptr", "kernel"), *arguments, *variables], kind=Code)
    kernel, args, num_args, names, *variables = c.parameters
    found, objects = _Found(*variables), variables[0]
    unknown = c.block("unknown")
    count = c.field(kernel, KERNEL, "num_parameters")
    c.leave_if(c.icmp("ugt", num_args, count), unknown)
    with c.repeat(num_args) as index:
        c.put(objects, index, c.at(args, index, "ptr"))
    with c.loop(num_args, count, c.word(1)) as rest:
        c.put(objects, rest.index, NULL)
    with c.when(c.is_not_null(names)), c.repeat(c.python("PyTuple_Size", names)) as index:
        name = c.python("PyTuple_GetItem", names, index)
        position = c.add(num_args, index)
        _bind_keyword(c, kernel, name, c.at(args, position, "ptr"), position, found, unknown)
    with c.loop(num_args, count, c.word(1)) as rest, c.when(c.is_null(c.at(objects, rest.index, "ptr"))):
        default = c.field(_parameter(c, kernel, rest.index), PARAMETER, "default", "ptr")
        c.leave_if(c.is_null(default), unknown)
        c.put(objects, rest.index, default)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def _parameter(c: Code, kernel: Value, index: Value) -> Value:
    return c.after(kernel, c.add(c.mul(index, c.word(len(PARAMETER))), c.word(len(KERNEL))))


def _bind_keyword(
    c: Code, kernel: Value, name: Value, value: Value, position: Value, found: _Found, unknown: Block
) -> None:
    """Names are compared as objects, from the parameter at the keyword's place on: most keywords are in order."""
    count = c.field(kernel, KERNEL, "num_parameters")
    done, is_found = c.block("bound"), c.block("found")
    with c.repeat(count) as tried:
        sum = c.add(position, tried)
        place = c.select(c.icmp("uge", sum, count), c.urem(sum, count), sum)
        own = c.field(_parameter(c, kernel, place), PARAMETER, "name", "ptr")
        c.leave_if(c.equal(own, name), is_found)
    number = c.increase(found.num_options)
    c.leave_if(c.icmp("uge", number, c.word(MOST_OPTIONS)), unknown)
    c.put(found.options, c.shl(number, c.word(1)), name)
    c.put(found.options, c.add(c.shl(number, c.word(1)), c.word(1)), value)
    c.br(done)
    c.position(is_found)
    c.leave_if(c.is_not_null(c.at(found.objects, place, "ptr")), unknown)
    c.put(found.objects, place, value)
    c.br(done)
    c.position(done)


def _define_key(module: Module) -> None:
    """The words of the key, and how many; 0 where one is not known. `num_bound` counts what is to be released."""
    given = [("ptr", "kernel"), ("ptr", "objects"), ("ptr", "options"), ("i64", "num_options")]
    c = module.function("key", "i64", [*given, ("ptr", "bound"), ("ptr", "num_bound"), ("ptr", "words")], kind=Code)
    kernel, objects, options, num_options, bound, num_bound, words = c.parameters
    count = c.variable("i64", c.word(0))
    unknown = c.block("unknown")
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    with c.repeat(c.field(kernel, KERNEL, "num_parameters")) as index:
        parameter, argument = _parameter(c, kernel, index), c.after(bound, c.mul(index, c.word(len(BOUND))))
        obj = c.at(objects, index, "ptr")
        c.put(argument, c.word(BOUND.index("passed")), NULL)
        c.store(c.add(index, c.word(1)), num_bound)
        constant, done = c.block("constant"), c.block("done")
        c.leave_if(c.is_not_null(c.field(parameter, PARAMETER, "is_constexpr")), constant)
        c.leave_if(c.is_null(c.call("i32", "argument", shared, parameter, obj, argument)), unknown)
        c.put(words, c.increase(count), c.field(argument, BOUND, "token"))
        c.br(done)
        c.position(constant)
        c.leave_if(c.is_null(c.call("i32", "constant", shared, obj, c.after(words, c.increase(count, 2)))), unknown)
        c.br(done)
        c.position(done)
    with c.repeat(num_options) as index:
        pair = c.after(options, c.shl(index, c.word(1)))
        c.put(words, c.increase(count), c.at(pair, c.word(0)))
        value = c.at(pair, c.word(1), "ptr")
        c.leave_if(c.is_null(c.call("i32", "constant", shared, value, c.after(words, c.increase(count, 2)))), unknown)
    c.ret(c.load("i64", count))
    c.position(unknown)
    c.ret(c.word(0))


def _define_release(module: Module) -> None:
    c = module.function("release", "void", [("ptr", "bound"), ("i64", "num_bound"), ("ptr", "entry")], kind=Code)
    bound, num_bound, entry = c.parameters
    with c.repeat(num_bound) as index:
        passed = c.field(c.after(bound, c.mul(index, c.word(len(BOUND)))), BOUND, "passed", "ptr")
        with c.when(c.is_not_null(passed)):
            c.python("Py_DecRef", passed)
    with c.when(c.is_not_null(entry)):
        c.python("Py_DecRef", entry)
    c.ret()


def _define_run_slowly(module: Module) -> None:
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


def _define_run(module: Module) -> None:
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


class _Memory:
    """What a launch keeps on its stack."""

    def __init__(self, c: Code):
        self.entry = c.variable("ptr", NULL)
        self.num_bound, self.num_options = c.variable("i64", c.word(0)), c.variable("i64", c.word(0))
        self.objects = c.alloca("ptr", MOST_PARAMETERS, align=16)
        self.options = c.alloca("ptr", 2 * MOST_OPTIONS, align=16)
        self.bound = c.alloca("i64", len(BOUND) * MOST_PARAMETERS, align=16)
        self.words = c.alloca("i64", MOST_WORDS, align=16)
        self.slots = c.alloca("i64", MOST_SLOTS, align=16)
        self.extents = c.alloca("i64", 3, align=16)


def _define_launch(module: Module) -> None:
    given = [("ptr", "self"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("launch", "ptr", given, "external", kind=Code)
    own, args, num_args, names = c.parameters
    memory = _Memory(c)
    slowly, fail = c.block("slowly"), c.block("fail")
    kernel = record_of(c, c.python("PyTuple_GetItem", own, c.word(0)))
    grid = c.python("PyTuple_GetItem", own, c.word(1))
    record = _prepare(c, memory, kernel, (args, num_args, names), slowly)
    options = memory.options, c.load("i64", memory.num_options)
    evaluated = c.call("i32", "evaluate_grid", kernel, grid, memory.objects, *options, memory.extents)
    c.leave_if(c.is_null(evaluated), fail)
    result = c.field(record, ENTRY, "kernel", "ptr")
    _finish(c, memory, record, result, fail)
    _end(c, memory, slowly, fail, (kernel, grid, args, num_args, names))


def _finish(c: Code, memory: _Memory, record: Value, result: Value, fail: Block) -> None:
    """Run the programs that there are, and return an object."""
    is_empty = c.block("is_empty")
    for axis in range(3):
        c.leave_if(c.is_null(c.at(memory.extents, c.word(axis))), is_empty)
    c.leave_if(c.is_null(c.call("i32", "run", record, memory.extents, memory.slots, c.word(0))), fail)
    c.br(is_empty)
    c.position(is_empty)
    c.python("Py_IncRef", result)
    _release(c, memory)
    c.ret(result)


def _end(c: Code, memory: _Memory, slowly: Block, fail: Block, launch: tuple[Value, ...]) -> None:
    c.position(slowly)
    _release(c, memory)
    c.ret(c.call("ptr", "run_slowly", *launch))
    c.position(fail)
    _release(c, memory)
    c.ret(NULL)


def _define_launch_prepared(module: Module) -> None:
    """The arguments are those of the parameters that are no constexprs; they have to have the tokens of the entry."""
    given = [("ptr", "self"), ("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    c = module.function("launch_prepared", "ptr", given, "external", kind=Code)
    own, args, num_args, names = c.parameters
    memory = _Memory(c)
    slowly, fail = c.block("slowly"), c.block("fail")
    kernel, record = (record_of(c, c.python("PyTuple_GetItem", own, c.word(item))) for item in range(2))
    grid = c.python("PyTuple_GetItem", own, c.word(2))
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    c.leave_if(c.is_not_null(names), slowly)
    arguments = args, num_args, memory.bound, memory.num_bound
    c.leave_if(c.is_null(c.call("i32", "fit", kernel, record, *arguments)), slowly)
    c.leave_if(c.is_null(c.call("i32", "holds", record)), slowly)
    c.leave_if(c.is_null(c.call("i32", "pack", shared, record, memory.bound, memory.slots)), slowly)
    c.leave_if(c.is_null(c.call("i32", "read_extents", shared, grid, memory.extents)), slowly)
    _finish(c, memory, record, c.field(shared, SHARED, "none", "ptr"), fail)
    _end(c, memory, slowly, fail, (kernel, grid, args, num_args, names))


def _define_fit(module: Module) -> None:
    """What positional arguments are, if they have the tokens of an entry."""
    given = [("ptr", "kernel"), ("ptr", "record"), ("ptr", "args"), ("i64", "num_args")]
    c = module.function("fit", "i32", [*given, ("ptr", "bound"), ("ptr", "num_bound")], kind=Code)
    kernel, record, args, num_args, bound, num_bound = c.parameters
    place, word = c.variable("i64", c.word(0)), c.variable("i64", c.word(len(ENTRY)))
    unknown = c.block("unknown")
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    with c.repeat(c.field(kernel, KERNEL, "num_parameters")) as index:
        parameter, argument = _parameter(c, kernel, index), c.after(bound, c.mul(index, c.word(len(BOUND))))
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


def _prepare(c: Code, memory: _Memory, kernel: Value, given: tuple[Value, ...], slowly: Block) -> Value:
    """The record of the entry, when all is known and packed."""
    found = memory.objects, memory.options, memory.num_options
    c.leave_if(c.is_null(c.call("i32", "bind", kernel, *given, *found)), slowly)
    num_options = c.load("i64", memory.num_options)
    bound = memory.bound, memory.num_bound
    count = c.call("i64", "key", kernel, memory.objects, memory.options, num_options, *bound, memory.words)
    c.leave_if(c.is_null(count), slowly)
    c.leave_if(c.is_null(c.call("i32", "find", kernel, memory.words, count, memory.entry)), slowly)
    record = record_of(c, c.load("ptr", memory.entry))
    c.leave_if(c.is_null(c.call("i32", "holds", record)), slowly)
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    c.leave_if(c.is_null(c.call("i32", "pack", shared, record, memory.bound, memory.slots)), slowly)
    return record


def _release(c: Code, memory: _Memory) -> None:
    c.call("void", "release", memory.bound, c.load("i64", memory.num_bound), c.load("ptr", memory.entry))


def _define_with_grid(module: Module) -> None:
    c = module.function("with_grid", "ptr", [("ptr", "self"), ("ptr", "grid")], "external", kind=Code)
    own, grid = c.parameters
    kernel = record_of(c, own)
    definition = c.field(c.field(kernel, KERNEL, "shared", "ptr"), SHARED, "definition", "ptr")
    pair = c.python("PyTuple_New", c.word(2))
    with c.when(c.is_null(pair)):
        c.ret(NULL)
    c.set_item(pair, c.word(0), own)
    c.set_item(pair, c.word(1), grid)
    function = c.python("PyCFunction_NewEx", definition, pair, NULL)
    c.python("Py_DecRef", pair)
    c.ret(function)

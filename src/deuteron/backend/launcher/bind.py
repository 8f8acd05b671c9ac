"""Machine code that binds the arguments of a launch, and makes the words of its key.

    bind(kernel, args, num_args, names, objects, options, num_options)      the arguments in order, the other keywords
    key(kernel, objects, options, num_options, bound, num_bound, words)     how many words

Both give 0 where Python has to look at the launch.
"""

from __future__ import annotations

from typing import NamedTuple

from deuteron.backend.launcher.arguments import BOUND, DONE, UNKNOWN
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.records import KERNEL, MOST_OPTIONS, PARAMETER
from deuteron.backend.llvm.control_flow import Block
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value


class Found(NamedTuple):
    """The addresses of what binding finds: arguments in order, pairs of a name and an option, the number of these."""

    objects: Value
    options: Value
    num_options: Value


def define_bind(module: Module) -> None:
    """The arguments in the order of the parameters; keywords that are none of these with their names in `options`."""
    arguments = [("ptr", "args"), ("i64", "num_args"), ("ptr", "names")]
    variables = [("ptr", name) for name in Found._fields]
    c = module.function("bind", "i32", [("ptr", "kernel"), *arguments, *variables], kind=Code)
    kernel, args, num_args, names, *variables = c.parameters
    found, objects = Found(*variables), variables[0]
    unknown = c.block("unknown")
    count = c.field(kernel, KERNEL, "num_parameters")
    is_choice = c.is_not_null(c.field(kernel, KERNEL, "is_choice"))
    c.leave_if(c.icmp("ugt", num_args, count), unknown)
    with c.repeat(num_args) as index:
        c.put(objects, index, c.at(args, index, "ptr"))
    with c.loop(num_args, count, c.word(1)) as rest:
        c.put(objects, rest.index, NULL)
    with c.when(c.is_not_null(names)), c.repeat(c.python("PyTuple_Size", names)) as index:
        name = c.python("PyTuple_GetItem", names, index)
        position = c.add(num_args, index)
        _bind_keyword(c, kernel, name, c.at(args, position, "ptr"), position, found, unknown)
    with c.when(is_choice):
        c.ret(DONE)
    with c.loop(num_args, count, c.word(1)) as rest, c.when(c.is_null(c.at(objects, rest.index, "ptr"))):
        default = c.field(parameter_of(c, kernel, rest.index), PARAMETER, "default", "ptr")
        c.leave_if(c.is_null(default), unknown)
        c.put(objects, rest.index, default)
    c.ret(DONE)
    c.position(unknown)
    c.ret(UNKNOWN)


def parameter_of(c: Code, kernel: Value, index: Value) -> Value:
    return c.after(kernel, c.add(c.mul(index, c.word(len(PARAMETER))), c.word(len(KERNEL))))


def _bind_keyword(
    c: Code, kernel: Value, name: Value, value: Value, position: Value, found: Found, unknown: Block
) -> None:
    """Names are compared as objects, from the parameter at the keyword's place on: most keywords are in order."""
    count = c.field(kernel, KERNEL, "num_parameters")
    done, is_found = c.block("bound"), c.block("found")
    with c.repeat(count) as tried:
        sum = c.add(position, tried)
        place = c.select(c.icmp("uge", sum, count), c.urem(sum, count), sum)
        own = c.field(parameter_of(c, kernel, place), PARAMETER, "name", "ptr")
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


def define_key(module: Module) -> None:
    """The words of the key, and how many; 0 where one is not known. `num_bound` counts what is to be released."""
    given = [("ptr", "kernel"), ("ptr", "objects"), ("ptr", "options"), ("i64", "num_options")]
    c = module.function("key", "i64", [*given, ("ptr", "bound"), ("ptr", "num_bound"), ("ptr", "words")], kind=Code)
    kernel, objects, options, num_options, bound, num_bound, words = c.parameters
    count = c.variable("i64", c.word(0))
    unknown = c.block("unknown")
    shared = c.field(kernel, KERNEL, "shared", "ptr")
    with c.repeat(c.field(kernel, KERNEL, "num_parameters")) as index:
        parameter, argument = parameter_of(c, kernel, index), c.after(bound, c.mul(index, c.word(len(BOUND))))
        obj = c.at(objects, index, "ptr")
        c.put(argument, c.word(BOUND.index("passed")), NULL)
        c.store(c.add(index, c.word(1)), num_bound)
        constant, missing, done = (c.block(name) for name in ("constant", "missing", "done"))
        c.leave_if(c.is_null(obj), missing)
        c.leave_if(c.is_not_null(c.field(parameter, PARAMETER, "is_constexpr")), constant)
        c.leave_if(c.is_null(c.call("i32", "argument", shared, parameter, obj, argument)), unknown)
        c.put(words, c.increase(count), c.field(argument, BOUND, "token"))
        c.cond_br(c.is_null(c.field(parameter, PARAMETER, "is_compared")), done, constant)
        c.position(constant)
        c.leave_if(c.is_null(c.call("i32", "constant", shared, obj, c.after(words, c.increase(count, 2)))), unknown)
        c.br(done)
        c.position(missing)
        c.put(words, c.increase(count), c.word(0))
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

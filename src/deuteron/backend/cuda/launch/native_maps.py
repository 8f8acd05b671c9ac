"""Machine code that makes a kernel's tensor maps for a launch, by the driver's cuTensorMapEncodeTiled.

    define_encode(module)                   encode(map, values, encode_tiled, place): 1, or 0 where Python has to look
    map_words(tensor_map)                   what `map` points to; None for an expression that is too deep

A map is described by words: _MAP, then programs for the base, the sizes and the strides, innermost dimension first. A
program is an expression of the arguments in postfix form, pairs of an operation, with its bits, and an operand, ended
by a 0:

    ("mul", 32, ("argument", 1, 32), ("constant", 8))     ARGUMENT|32, 1   CONSTANT, 8   MUL|32, 0   0
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from deuteron.backend.cuda.launch.map_encoder import FILLS, NO_INTERLEAVE, PROMOTION_128B
from deuteron.backend.launcher.code import Code
from deuteron.backend.launcher.records import Record
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, array_const, const
from deuteron.backend.tensor_map import (
    DATA_TYPES,
    DIVISIBILITY,
    MOST_SIZE,
    STRIDES_END,
    SWIZZLES,
    Expression,
    TensorMap,
)

_MAP = Record("num_words data_type rank swizzle fill element_bytes box box_2 box_3")  # a box is five numbers of 32 bits
_MOST_DEPTH = 16
_MOST_RANK = 5
_OPERATIONS = {
    name: number for number, name in enumerate(["constant", "argument", "add", "sub", "mul", "max", "min"], 1)
}
_BITS_AT = 8  # of the word of an operation

_OK, _FAILED = const("i32", 1), const("i32", 0)


def map_words(described: TensorMap) -> list[int] | None:
    """The words of a map; None where the code cannot evaluate it."""
    expressions = [described.base, *reversed(described.sizes), *reversed(described.strides)]
    if max(map(_depth, expressions)) > _MOST_DEPTH or not set(map(str, _names(expressions))) <= _OPERATIONS.keys():
        return None
    programs = [word for expression in expressions for word in (*_program(expression), 0)]
    box = [*reversed(described.box), 0, 0, 0, 0, 0][: _MOST_RANK + 1]
    first, second, third = struct.unpack("<3Q", struct.pack("<6I", *box))
    fields = _MAP.pack(
        num_words=len(_MAP) + len(programs),
        data_type=DATA_TYPES[described.element][1],
        rank=len(described.box),
        swizzle=SWIZZLES[described.swizzle][1],
        fill=FILLS[described.padding],
        element_bytes=described.element_bytes,
        box=first,
        box_2=second,
        box_3=third,
    )
    return [*fields, *programs]


def _names(expressions: list[Expression]) -> Iterator[str]:
    for name, *parts in expressions:
        yield name
        yield from _names([part for part in parts if isinstance(part, tuple)])


def _depth(expression: Expression) -> int:
    """How many values are on the stack at a time."""
    parts = [part for part in expression[1:] if isinstance(part, tuple)]
    return max((place + _depth(part) for place, part in enumerate(parts)), default=1)


def _program(expression: Expression) -> Iterator[int]:
    name, *parts = expression
    if name == "constant":
        yield from (_OPERATIONS[name], parts[0])
    elif name == "argument":
        yield from (_OPERATIONS[name] | parts[1] << _BITS_AT, parts[0])
    else:
        bits, x, y = parts
        yield from _program(x)
        yield from _program(y)
        yield from (_OPERATIONS[name] | bits << _BITS_AT, 0)


def define_encode(module: Module) -> None:
    """Add the functions `evaluate` and `encode`."""
    _define_evaluate(module)
    given = [("ptr", "map"), ("ptr", "values"), ("ptr", "encode_tiled"), ("ptr", "place")]
    c = module.function("encode", "i32", given, kind=Code)
    described, values, encode_tiled, place = c.parameters
    at = c.variable("ptr", c.after(described, len(_MAP)))
    sizes, strides = (c.alloca("i64", _MOST_RANK, align=8) for _ in range(2))
    fail = c.block("fail")
    rank = c.field(described, _MAP, "rank")
    base = _next(c, at, values)
    c.leave_if(c.is_not_null(c.and_(base, c.word(DIVISIBILITY - 1))), fail)
    with c.repeat(rank) as axis:
        size = _next(c, at, values)
        c.leave_if(c.icmp("uge", c.sub(size, c.word(1)), c.word(MOST_SIZE)), fail)
        c.put(sizes, axis, size)
    with c.repeat(c.sub(rank, c.word(1))) as axis:
        elements = _next(c, at, values)
        c.leave_if(c.icmp("uge", elements, c.word(STRIDES_END)), fail)  # so that bytes do not overflow
        stride = c.mul(elements, c.field(described, _MAP, "element_bytes"))
        c.leave_if(c.is_not_null(c.and_(stride, c.word(DIVISIBILITY - 1))), fail)
        c.leave_if(c.icmp("uge", stride, c.word(STRIDES_END)), fail)
        c.put(strides, axis, stride)
    _call_driver(c, described, encode_tiled, (place, base, sizes, strides), fail)
    c.ret(_OK)
    c.position(fail)
    c.ret(_FAILED)


def _call_driver(c: Code, described: Value, encode_tiled: Value, made: tuple[Value, ...], fail) -> None:
    place, base, sizes, strides = made

    def number(name: str) -> Value:
        return c.trunc(c.field(described, _MAP, name), "i32")

    steps = c.module.constant(array_const("i32", [1] * _MOST_RANK))
    box = c.after(described, _MAP.index("box"))
    head = place, number("data_type"), number("rank"), c.inttoptr(base), sizes, strides, box, steps
    tail = const("i32", NO_INTERLEAVE), number("swizzle"), const("i32", PROMOTION_128B), number("fill")
    c.leave_if(c.is_not_null(c.call_pointer("i32", encode_tiled, *head, *tail)), fail)


def _next(c: Code, at: Value, values: Value) -> Value:
    """The value of the next program."""
    return c.call("i64", "evaluate", at, values)


def _define_evaluate(module: Module) -> None:
    """The value of the program at the address in a variable, which is moved behind it."""
    c = module.function("evaluate", "i64", [("ptr", "at"), ("ptr", "values")], kind=Code)
    at, values = c.parameters
    depth = c.variable("i64", c.word(0))
    stack = c.alloca("i64", _MOST_DEPTH, align=8)
    step, done = c.block("step"), c.block("done")
    c.br(step)
    c.position(step)
    program = c.load("ptr", at)
    code, operand = c.at(program, c.word(0)), c.at(program, c.word(1))
    c.leave_if(c.is_null(code), done)
    c.store(c.after(program, 2), at)
    operation, bits = c.and_(code, c.word((1 << _BITS_AT) - 1)), c.lshr(code, c.word(_BITS_AT))
    for name in ("constant", "argument"):
        with c.when(c.equal(operation, c.word(_OPERATIONS[name]))):
            value = operand if name == "constant" else _wrapped(c, c.at(values, operand), bits)
            c.put(stack, c.increase(depth), value)
            c.br(step)
    c.increase(depth, -1)
    top = c.load("i64", depth)
    x, y = c.at(stack, c.sub(top, c.word(1))), c.at(stack, top)
    c.put(stack, c.sub(top, c.word(1)), _wrapped(c, _chosen(c, operation, x, y), bits))
    c.br(step)
    c.position(done)
    c.store(c.after(program, 1), at)
    c.ret(c.at(stack, c.word(0)))


def _chosen(c: Code, operation: Value, x: Value, y: Value) -> Value:
    """The result of the operation of that number."""
    largest, least = (c.intrinsic(f"llvm.s{name}", "i64", x, y) for name in ("max", "min"))
    results = {"add": c.add(x, y), "sub": c.sub(x, y), "mul": c.mul(x, y), "max": largest, "min": least}
    found = results.pop("add")
    for name, result in results.items():
        found = c.select(c.equal(operation, c.word(_OPERATIONS[name])), result, found)
    return found


def _wrapped(c: Code, value: Value, bits: Value) -> Value:
    """A number of so many bits, with its sign."""
    unused = c.sub(c.word(64), bits)
    return c.ashr(c.shl(value, unused), unused)

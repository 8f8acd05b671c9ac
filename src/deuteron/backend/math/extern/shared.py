"""Long functions: not expanded in line, but called, one lane at a time; in double for float, too.

    lgamma = shared("lgamma", body)        body(x): of a scalar double
    lgamma(x)                              call double @libdevice.lgamma.f64(double %x), which the module gets once

Their bodies may have branches and loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, const, element, width, zero
from deuteron.backend.math.number import FloatUnit, Function, Number


def shared(name: str, body: Function) -> Function:
    """The function as it is emitted where it is used."""

    def emit(*numbers: Number) -> Number:
        last = numbers[-1]
        wide = [x.extend("double") if x.is_float else x for x in numbers]
        result = wide[-1].type
        symbol = f"libdevice.{name}.{mangle(result)}"
        if not last.b.module.has_function(symbol):
            _define(last.b, symbol, [x.type for x in wide], last.unit, body)
        called = last.make(last.b.call(result, symbol, *(x.value for x in wide)))
        return called if last.is_double else called.narrow("float")

    return emit


def branch(condition: Number, then: Callable[[], Number], otherwise: Callable[[], Number]) -> Number:
    """One of two, of which the other is not computed; of scalars."""
    b = condition.b
    with b.if_(condition.value) as way:
        way.yield_(then().value)
        way.otherwise()
        way.yield_(otherwise().value)
    return condition.make(way.results[0])


def repeat(
    start: Number, stop: Number, step: int, first: Sequence[Number], body: Callable[..., Sequence[Number]]
) -> list[Number]:
    """What `body(index, *carried)` makes of the first values, for i64 indices from start on, below stop."""
    b = start.b
    with b.loop(start.value, stop.value, const("i64", step), [x.value for x in first], "term") as loop:
        carried = [start.make(value) for value in loop.carried]
        loop.next(*(x.value for x in body(start.make(loop.index), *carried)))
    return [start.make(value) for value in loop.results]


def _define(outer: Builder, symbol: str, types: Sequence[str], unit: FloatUnit, body: Function) -> None:
    parameters = [(type, f"x{i}") for i, type in enumerate(types)]
    b = outer.module.function(symbol, types[-1], parameters, attributes="noinline nounwind")
    values = [Value(type, parameter.text) for type, parameter in zip(types, b.parameters, strict=True)]
    lanes = width(types[-1])
    if lanes == 1:
        b.ret(body(*(Number(b, value, unit) for value in values)).value)
        return
    with b.loop(const("i64", 0), const("i64", lanes), const("i64", 1), [zero(types[-1])], "lane") as loop:
        scalars = [Number(b, b.extractelement(value, loop.index), unit) for value in values]
        assert element(types[-1]) == "double"
        loop.next(b.insertelement(loop.carried[0], body(*scalars).value, loop.index))
    b.ret(loop.results[0])

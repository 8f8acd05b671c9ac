"""Long functions: not expanded in line, but called; in double for float, too.

    lgamma = shared("lgamma", body)        body(x): of a double, or of as many lanes as LANES
    lgamma(x)                              call <8 x double> @libdevice.lgamma.v8f64(<8 x double> %x), for each 8 lanes
    jn = shared("jn", body, by_lane=True)  body(n, x): of a double, in a loop over the lanes

Their bodies may have branches, and where they are called by lane loops. A side of a branch that no lane takes is not
computed: each lane has, bit by bit, what it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, const, element, width, zero
from deuteron.backend.math.number import FloatUnit, Function, Number, where
from deuteron.backend.math.vectors import any_lane, concatenated

LANES = 8  # those of a register of AVX-512; of more at once there would only be more code


def shared(name: str, body: Function, by_lane: bool = False) -> Function:
    """The function as it is emitted where it is used."""

    def emit(*numbers: Number) -> Number:
        last = numbers[-1]
        wide = [x.extend("double") if x.is_float else x for x in numbers]
        lanes = width(last.type)
        parts = [range(first, first + LANES) for first in range(0, lanes, LANES)] if lanes > LANES else [None]
        b = last.b
        called = last.make(concatenated(b, [call(b, last.unit, [_part(x, part) for x in wide]) for part in parts]))
        return called if last.is_double else called.narrow("float")

    def call(b: Builder, unit: FloatUnit, values: Sequence[Value]) -> Value:
        result = values[-1].type
        symbol = f"libdevice.{name}.{mangle(result)}"
        if not b.module.has_function(symbol):
            _define(b, symbol, [value.type for value in values], unit, body, by_lane)
        return b.call(result, symbol, *values)

    return emit


def branch(condition: Number, then: Callable[[], Number], otherwise: Callable[[], Number]) -> Number:
    """One of two, of which the other is not computed; of vectors where no lane needs it."""
    if width(condition.type) > 1:
        first, second = _if_any(condition, then), _if_any(condition ^ True, otherwise)
        return where(condition, first, second)
    b = condition.b
    with b.if_(condition.value) as way:
        way.yield_(then().value)
        way.otherwise()
        way.yield_(otherwise().value)
    return condition.make(way.results[0])


def _if_any(condition: Number, compute: Callable[[], Number]) -> Number:
    """What is computed where any lane is on; else 0."""
    b = condition.b
    with b.if_(any_lane(b, condition.value)) as way:
        value = compute().value
        way.yield_(value)
        way.otherwise()
        way.yield_(zero(value.type))
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


def _part(x: Number, lanes: range | None) -> Value:
    return x.value if lanes is None else x.b.shufflevector(x.value, None, lanes)


def _define(outer: Builder, symbol: str, types: Sequence[str], unit: FloatUnit, body: Function, by_lane: bool) -> None:
    parameters = [(type, f"x{i}") for i, type in enumerate(types)]
    b = outer.module.function(symbol, types[-1], parameters, attributes="noinline nounwind")
    values = [Value(type, parameter.text) for type, parameter in zip(types, b.parameters, strict=True)]
    lanes = width(types[-1])
    if lanes == 1 or not by_lane:
        b.ret(body(*(Number(b, value, unit) for value in values)).value)
        return
    with b.loop(const("i64", 0), const("i64", lanes), const("i64", 1), [zero(types[-1])], "lane") as loop:
        scalars = [Number(b, b.extractelement(value, loop.index), unit) for value in values]
        assert element(types[-1]) == "double"
        loop.next(b.insertelement(loop.carried[0], body(*scalars).value, loop.index))
    b.ret(loop.results[0])

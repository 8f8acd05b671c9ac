"""Loads, stores and atomics of one array, one after the other, at places that move from one iteration to the next.

Places are sums of a number, multiples of the indices of loops, and a range; or that modulo a size. Iterations come to
places where others have been; a program does it all in order, by whichever threads. Each program has a part of the
array of its own, as large as what it may touch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.generator.builder import Builder, Value, statement_of
from tests.fuzz.generator.control import MAX_TRIPS, nested

EXTENTS = (8, 16, 32, 64, 128)
TYPES = ("int32", "int32", "int64", "int16", "int8")


@dataclass
class _Loop:
    """`first + step * n` for n below `trips`."""

    index: str
    first: int
    step: int
    trips: int

    def ends(self, factor: int) -> tuple[int, int]:
        """The least and the most that the index adds to a place."""
        ends = factor * self.first, factor * (self.first + self.step * max(self.trips - 1, 0))
        return min(ends), max(ends)


@dataclass
class _Accesses:
    """The lines that touch an array: of `extent` neighbours at a time, from `@` on, which is set when all are known."""

    name: str
    dtype: str
    extent: int
    range: str
    total: Value
    loops: list[_Loop] = field(default_factory=list)
    low: int = 0
    high: int = 0

    def touch(self, low: int, high: int) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)


@statement_of("memory")
def accesses_in_order(b: Builder) -> None:
    nested(b)
    dtype, extent = b.rng.choice(TYPES), b.rng.choice(EXTENTS)
    name, origin, range_ = b.array(dtype, 1, "normal", prefix="io"), b.name("o"), b.name("i")
    number = len(b.arguments) - 1
    b.emit(f"{range_} = tl.arange(0, {extent})")
    place = len(b.lines)
    total = b.define(f"tl.zeros(({extent},), tl.int32)", "int32", (extent,))
    accesses = _Accesses(origin, dtype, extent, range_, total)
    _some(b, accesses, 1)
    _loop(b, accesses, 0)
    _some(b, accesses, 1)
    size = accesses.high - accesses.low + 1
    b.arguments[number] = b.arguments[number].__class__(name, dtype, size * b.programs, "normal", 7 + number)
    b.lines.insert(place, "    " * b.depth + f"{origin} = {name} + pid * {size} + {-accesses.low}")


def _loop(b: Builder, accesses: _Accesses, depth: int) -> None:
    loop = _Loop(b.name("k"), b.rng.choice((0, 0, 1, 3)), b.rng.choice((1, 1, 2)), b.rng.randint(0, MAX_TRIPS + 1))
    end = loop.first + loop.step * loop.trips
    bound = b.number("int32", end) if b.chance(0.7) else end
    hint = b.rng.choice(("", "", "", ", num_stages=3"))
    with b.block(f"for {loop.index} in tl.range({loop.first}, {bound}, {loop.step}{hint}):"):
        accesses.loops.append(loop)
        _some(b, accesses, 4)
        if depth == 0 and b.chance(0.3):
            _loop(b, accesses, 1)
            _some(b, accesses, 2)
        accesses.loops.pop()


def _some(b: Builder, accesses: _Accesses, most: int) -> None:
    for _ in range(b.rng.randint(min(most, 2), most)):
        if b.chance(0.1) and accesses.loops:
            with b.block(f"if {accesses.loops[-1].index} != {b.rng.randint(0, 3)}:"):
                _access(b, accesses)
        else:
            _access(b, accesses)


def _access(b: Builder, accesses: _Accesses) -> None:
    kind = b.rng.choice(("load", "load", "load", "store", "store", "store", "scalar load", "scalar store", "atomic"))
    index = " + ".join([f"{n + 3} * {loop.index}" for n, loop in enumerate(accesses.loops)]) or "5"
    if kind.startswith("scalar"):
        at = f"{accesses.name} + {_begin(b, accesses, 0)}"
        if kind == "scalar load":
            b.emit(f"{accesses.total} = {accesses.total} * 3 + tl.load({at}).to(tl.int32)")
        else:
            b.emit(f"tl.store({at}, {b.rng.choice((index, f'tl.sum({accesses.total})'))})")
        return
    at, mask = _tile(b, accesses), _mask(b, accesses)
    if kind == "load":
        other = ", other=1" if mask else ""
        b.emit(f"{accesses.total} = {accesses.total} * 3 + tl.load({at}{mask}{other}).to(tl.int32)")
    elif kind == "store":
        value = b.rng.choice((f"{accesses.range} + {index}", f"{accesses.total} + 1", str(accesses.total)))
        b.emit(f"tl.store({at}, ({value}).to(tl.{accesses.dtype}){mask})")
    elif accesses.dtype in ("int32", "int64"):
        word, order = b.rng.choice(("add", "max", "xor", "xchg")), b.rng.choice(("", ', sem="relaxed"'))
        old = b.name("v")
        b.emit(f"{old} = tl.atomic_{word}({at}, ({accesses.range} + {index}).to(tl.{accesses.dtype}){mask}{order})")
        if b.chance(0.5) and not mask:
            b.emit(f"{accesses.total} = {accesses.total} * 3 + {old}.to(tl.int32)")


def _begin(b: Builder, accesses: _Accesses, reach: int, positive: bool = False) -> str:
    """Where an access begins, which goes on for `reach` elements after that."""
    extent = accesses.extent
    factors = (0, 1, extent // 2, extent, extent, extent, 2 * extent, extent + 1, *(() if positive else (-extent, -1)))
    number = b.rng.choice((0, 0, extent, 1, extent // 2, 2 * extent))
    terms, low, high = [str(number)], number, number
    for loop in accesses.loops:
        factor = b.rng.choice(factors)
        if factor:
            ends = loop.ends(factor)
            low, high = low + ends[0], high + ends[1]
            terms.append(f"{loop.index} * {factor}")
    if not positive:
        accesses.touch(low, high + reach)
    return " + ".join(terms)


def _tile(b: Builder, accesses: _Accesses) -> str:
    extent, i = accesses.extent, accesses.range
    kind = b.rng.choice(("plain", "plain", "plain", "reversed", "strided", "around"))
    if kind == "around":
        size = extent * b.rng.choice((1, 2, 3)) + b.rng.choice((0, 0, 5))
        divisor = b.number("int32", size) if b.chance(0.5) else size
        accesses.touch(0, size - 1)
        return f"{accesses.name} + ({_begin(b, accesses, 0, positive=True)} + {i}) % {divisor}"
    stride = b.rng.choice((2, 3)) if kind == "strided" else 1
    form = {"plain": i, "reversed": f"({extent - 1} - {i})", "strided": f"{i} * {stride}"}[kind]
    return f"{accesses.name} + {_begin(b, accesses, stride * (extent - 1))} + {form}"


def _mask(b: Builder, accesses: _Accesses) -> str:
    if not b.chance(0.2):
        return ""
    return f", mask={accesses.range} < {b.number('int32', b.rng.randint(0, accesses.extent))}"

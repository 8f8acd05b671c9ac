"""Programs whose state is in memory: bounds, conditions and places are loaded from cells that the same loops store to.

    while (tl.load(io + 3) & 7 != 0) & (fuel > 0):              what the body stores decides whether it runs again
        at = tl.load(io + (k & 15)) & 15                        a place that was loaded
        tl.store(io + at, tl.load(io + 5) + 1)
        tile = tl.load(io + ((i + at) & 15))                    all cells, by all threads, after one has stored one
        if tl.load(io + at) > n: break
        tl.store(io + i, tile, mask=tile != at)

A program has cells of its own, and does all in order. Loops have fuel, so that they end. Pointers to two arrays of
cells change places.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.generator.builder import Builder, Value, statement_of
from tests.fuzz.generator.control import nested

FUEL = 9
TYPES = ("int32", "int32", "int32", "int64", "int16", "int8")


@dataclass
class _Cells:
    """Pointers to cells, as many as a power of two; their numbers, and what was read: a scalar and a tile."""

    pointers: list[str]
    dtype: str
    count: int
    range: str
    scalar: str
    tile: Value
    fuel: str


@statement_of("state")
def state_in_memory(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        return
    dtype, count = b.rng.choice(TYPES), b.rng.choice((8, 16, 64, 256))
    pointers, range_, fuel = [], b.name("i"), b.name("fuel")
    for _ in range(b.rng.choice((1, 2))):
        name = b.name("p")
        b.emit(f"{name} = {b.array(dtype, count * b.programs, 'normal', prefix='io')} + pid * {count}")
        pointers.append(name)
    b.emit(f"{range_} = tl.arange(0, {count})")
    scalar, tile = b.define("0", "int32", ()), b.define(f"tl.zeros(({count},), tl.{dtype})", dtype, (count,))
    b.emit(f"{scalar} = tl.load({pointers[0]}).to(tl.int32)")
    b.emit(f"{fuel} = {b.number('int32', FUEL)}")
    cells = _Cells(pointers, dtype, count, range_, scalar.text, tile, fuel)
    for _ in range(b.rng.choice((1, 2))):
        _loop(b, cells, 0)
        _some(b, cells, 2, 0)


def _loop(b: Builder, cells: _Cells, depth: int) -> None:
    counter = b.name("k")
    headers = (
        f"while ({_number(b, cells)} % 3 != 0) & ({cells.fuel} > 0):",
        f"while ({_number(b, cells)} > {cells.scalar}) & ({cells.fuel} > 0):",
        f"while {cells.fuel} > 0:",
        f"for {counter} in range({_number(b, cells)} & 3):",
        f"for {counter} in range({_number(b, cells)} & 1, {_number(b, cells)} & 7, {b.rng.choice((1, 2))}):",
        f"for {counter} in tl.range(0, {b.number('int32', b.rng.randint(0, 4))}, num_stages=3):",
    )
    header = b.rng.choice(headers)
    with b.block(header):
        b.emit(f"{cells.fuel} -= 1")
        if header.startswith("for "):
            b.emit(f"{cells.scalar} += {counter}")
        _some(b, cells, 4, depth)
        if depth < 2 and b.chance(0.3):
            _loop(b, cells, depth + 1)
        if b.chance(0.3):
            with b.block(f"if {_condition(b, cells)}:"):
                b.rng.choice(_ACCESSES)(b, cells)
                b.emit(b.rng.choice(("break", "continue", "break", "return")))
        _some(b, cells, 3, depth)


def _some(b: Builder, cells: _Cells, most: int, depth: int) -> None:
    for _ in range(b.rng.randint(1, most)):
        if b.chance(0.2):
            with b.block(f"if {_condition(b, cells)}:"):
                b.rng.choice(_ACCESSES)(b, cells)
            if b.chance(0.5):
                with b.block("else:"):
                    b.rng.choice(_ACCESSES)(b, cells)
        else:
            b.rng.choice(_ACCESSES)(b, cells)


def _condition(b: Builder, cells: _Cells) -> str:
    ways = (
        f"{_number(b, cells)} > {_number(b, cells)}",
        f"{cells.scalar} % 2 == 0",
        f"tl.max({cells.tile}) > {cells.scalar}",
        f"({_number(b, cells)} > 0) and ({_number(b, cells)} < 50)",
    )
    return b.rng.choice(ways)


def _place(b: Builder, cells: _Cells) -> str:
    known = str(b.rng.randrange(cells.count))
    return b.rng.choice((known, known, "0", f"({cells.scalar} & {cells.count - 1})", _loaded_place(b, cells)))


def _loaded_place(b: Builder, cells: _Cells) -> str:
    return (
        f"(tl.load({b.rng.choice(cells.pointers)} + {b.rng.randrange(cells.count)}).to(tl.int32) & {cells.count - 1})"
    )


def _cell(b: Builder, cells: _Cells) -> str:
    return f"{b.rng.choice(cells.pointers)} + {_place(b, cells)}"


def _number(b: Builder, cells: _Cells) -> str:
    return f"tl.load({_cell(b, cells)}).to(tl.int32)"


def _tile_of(b: Builder, cells: _Cells) -> str:
    """Pointers to all cells, in an order."""
    last = cells.count - 1
    ways = (
        cells.range,
        f"({last} - {cells.range})",
        f"(({cells.range} + {cells.scalar}) & {last})",
        f"({cells.range} ^ {_place(b, cells)})",
        f"(({cells.range} * 5 + 3) & {last})",
    )
    return f"{b.rng.choice(cells.pointers)} + {b.rng.choice(ways)}"


def _load(b: Builder, cells: _Cells) -> None:
    b.emit(f"{cells.scalar} = {cells.scalar} * 3 + {_number(b, cells)}")


def _load_tile(b: Builder, cells: _Cells) -> None:
    mask = f", mask={cells.range} < {_number(b, cells)}, other=1" if b.chance(0.3) else ""
    b.emit(f"{cells.tile} = {cells.tile} * 3 + tl.load({_tile_of(b, cells)}{mask})")


def _store(b: Builder, cells: _Cells) -> None:
    value = b.rng.choice((cells.scalar, f"{_number(b, cells)} + 1", f"tl.sum({cells.tile})", cells.fuel))
    b.emit(f"tl.store({_cell(b, cells)}, ({value}).to(tl.{cells.dtype}))")


def _store_tile(b: Builder, cells: _Cells) -> None:
    value = b.rng.choice((str(cells.tile), f"{cells.range} + {cells.scalar}", f"{cells.tile} - 1"))
    masks = ("", f", mask={cells.range} < {_number(b, cells)}", f", mask={cells.tile} % 2 == 0")
    b.emit(f"tl.store({_tile_of(b, cells)}, ({value}).to(tl.{cells.dtype}){b.rng.choice(masks)})")


def _update(b: Builder, cells: _Cells) -> None:
    if cells.dtype not in ("int32", "int64"):
        _store(b, cells)
        return
    word = b.rng.choice(("add", "max", "xchg", "xor"))
    if b.chance(0.5):
        old = f"tl.atomic_{word}({_cell(b, cells)}, {cells.scalar})"
        b.emit(f"{cells.scalar} = {cells.scalar} * 3 + {old}.to(tl.int32)" if b.chance(0.6) else old)
        return
    old = f"tl.atomic_{word}({_tile_of(b, cells)}, ({cells.tile}).to(tl.{cells.dtype}))"
    b.emit(f"{cells.tile} = {cells.tile} - {old}" if b.chance(0.6) else old)


def _exchange(b: Builder, cells: _Cells) -> None:
    first, last = cells.pointers[0], cells.pointers[-1]
    b.emit(f"{first}, {last} = {last}, {first}")


_ACCESSES = (_load, _load, _load_tile, _load_tile, _store, _store, _store_tile, _store_tile, _update, _exchange)

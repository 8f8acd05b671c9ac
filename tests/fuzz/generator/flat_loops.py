"""Tiles one after the other in a single loop: where the blocks of one are summed up, a branch goes on to the next.

    for i in range(tiles * trips):
        x, y = tl.load(xs + ...), tl.load(ys + ...)
        acc = tl.dot(x, y, acc)
        k += 1
        if k == trips:                               or by the index, by what is loaded
            tl.store(out + t * M * N + ..., acc)     or what is loaded, or nothing
            acc = tl.zeros((M, N), tl.float32)       or another sum, its product, what is loaded; two are exchanged
            t += 1
            k = 0

Loops carry sums that only a branch reads, operands of the next iteration, tiles that each iteration transposes, and
what never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import hints
from tests.fuzz.generator.dots import rows_of
from tests.fuzz.generator.memory import strided

TYPES = ("float16", "float16", "bfloat16")
MAX_TILES, MAX_TRIPS = 3, 3


@dataclass
class _Loop:
    """`sums` have m rows and n columns, `squares` n rows and n columns; `t` is the number of the tile."""

    dtype: str
    m: int
    n: int
    rounds: int
    index: str
    t: Value
    sums: list[Value] = field(default_factory=list)
    firsts: list[Value] = field(default_factory=list)
    squares: list[Value] = field(default_factory=list)


@statement_of("flat")
def flattened_rounds(b: Builder) -> None:
    if b.loop_depth:
        raise Unfit
    tiles, trips = b.rng.randint(1, MAX_TILES), b.rng.randint(1, MAX_TRIPS)
    dtype, m, n = b.rng.choice(TYPES), rows_of(b, 16, 64, 64, 128), b.rng.choice((16, 32, 64))
    k, t = (b.define("0", "int32", ()) for _ in range(2))
    loop = _Loop(dtype, m, n, tiles * trips, b.name("i"), t)
    loop.sums = [
        b.define(f"tl.zeros(({m}, {n}), tl.float32)", "float32", (m, n)) for _ in range(b.rng.choice((1, 1, 2)))
    ]
    carried = [_loaded(b, loop, shape, None) for shape in ((m, n), (n, n)) if b.chance(0.3)]
    kept = b.number("int32", loop.rounds) if b.chance(0.7) else loop.rounds
    hint = b.rng.choice(("", "", "", ", warp_specialize=True", ", num_stages=3", f", {hints(b)}"))
    b.rng.shuffle(carried)
    with b.block(f"for {loop.index} in tl.range(0, {kept}{hint}):"):
        loop.firsts = [_loaded(b, loop, (m, n)), *(one for one in carried if one.shape == (m, n))]
        loop.squares = [_loaded(b, loop, (n, n)), *(one for one in carried if one.shape == (n, n))]
        for total in loop.sums:
            _multiply(b, loop, total)
        if b.chance(0.3):
            _scale(b, b.rng.choice(loop.sums))
        for one in carried:
            _carry_on(b, loop, one)
        b.emit(f"{k} += 1")
        with b.block(f"if {_condition(b, loop, k, trips)}:"):
            for _ in range(b.rng.randint(1, 4)):
                _go_on(b, loop)
            b.emit(f"{t} += 1")
            b.emit(f"{k} = 0")
        if b.chance(0.2):
            _multiply(b, loop, b.rng.choice(loop.sums))
    for total in [*loop.sums, *carried]:
        _store(b, total, b.array(total.dtype, total.numel * b.programs, "poison", prefix="out"), "pid")


def _loaded(b: Builder, loop: _Loop, shape: tuple[int, ...], index: str | None = "") -> Value:
    """A tile of the iteration's; without an index one of the program's."""
    rounds, size = 1 if index is None else loop.rounds, shape[0] * shape[1]
    name = b.array(loop.dtype, size * rounds * b.programs, "small")
    at = f"{name} + pid * {size * rounds}" + ("" if index is None else f" + {index or loop.index} * {size}")
    mask = f", mask=tl.arange(0, {shape[0]})[:, None] < {b.number('int32', shape[0] - 1)}, other=0.0"
    at = f"{at} + {strided(shape, b.rng.choice(([0, 1], [0, 1], [1, 0])))}"
    return b.define(f"tl.load({at}{mask if b.chance(0.15) else ''})", loop.dtype, shape)


def _multiply(b: Builder, loop: _Loop, total: Value) -> None:
    first, second = b.rng.choice(loop.firsts), b.rng.choice(loop.squares)
    turned = b.rng.choice((f"{second}", f"tl.trans({second})"))
    b.emit(b.rng.choice((f"{total} = tl.dot({first}, {turned}, {total})", f"{total} += tl.dot({first}, {turned})")))


def _scale(b: Builder, total: Value) -> None:
    b.emit(f"{total} = tl.clamp({total} * 0.5, -64.0, 64.0)")


def _carry_on(b: Builder, loop: _Loop, tile: Value) -> None:
    """What the next iteration has."""
    others = [one for one in (*loop.firsts, *loop.squares) if one.shape == tile.shape and one is not tile]
    ways = [*map(str, others), *([f"tl.trans({tile})"] if tile.shape[0] == tile.shape[1] else [])]
    if b.chance(0.7):
        b.emit(f"{tile} = {b.rng.choice(ways)}")


def _condition(b: Builder, loop: _Loop, k: Value, trips: int) -> str:
    """Whether a tile is complete, or something else that does not hold more often than there are rounds."""
    flags = b.array("int32", loop.rounds, "index", 2) if b.chance(0.25) else None
    if flags is not None:
        return f"tl.load({flags} + {loop.index}) != 0"
    number = b.number("int32", trips) if b.chance(0.6) else trips
    return b.rng.choice((f"{k} == {number}", f"{k} == {number}", f"{loop.index} % {number} == 0", f"{loop.index} > 1"))


def _go_on(b: Builder, loop: _Loop) -> None:
    total = b.rng.choice(loop.sums)
    kind = b.rng.choice(("store", "store", "store other", "begin", "begin", "exchange", "multiply", "scale", "load"))
    if kind == "store":
        _store_tile(b, loop, total)
    elif kind == "store other":
        _store_tile(b, loop, b.rng.choice([*loop.firsts, *loop.squares]))
    elif kind == "begin":
        others = [one for one in loop.sums if one is not total]
        zeros = f"tl.zeros(({loop.m}, {loop.n}), tl.float32)"
        b.emit(f"{total} = {b.rng.choice([zeros, zeros, *(str(one) for one in others)])}")
    elif kind == "exchange" and len(loop.sums) == 2:
        first, second = loop.sums
        b.emit(f"{first}, {second} = {second}, {first}")
    elif kind == "multiply":
        _multiply(b, loop, total)
    elif kind == "scale":
        _scale(b, total)
    elif kind == "load":
        b.emit(f"{total} = {_loaded(b, loop, total.shape, b.rng.choice(('', str(loop.t))))}.to(tl.float32)")


def _store_tile(b: Builder, loop: _Loop, tile: Value) -> None:
    """At the number of the tile, of which there are no more than rounds."""
    out = b.array(tile.dtype, tile.numel * loop.rounds * b.programs, "poison", prefix="out")
    _store(b, tile, out, f"(pid * {loop.rounds} + {loop.t})")


def _store(b: Builder, tile: Value, out: str, number: str) -> None:
    b.emit(f"tl.store({out} + {number} * {tile.numel} + {strided(tile.shape, [0, 1])}, {b.use(tile)})")

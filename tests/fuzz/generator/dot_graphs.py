"""Loops of products of square tiles, each of any two: loaded for this iteration or the one before, turned, made of
other products, of the sums that are carried. The largest elements of rows are carried too.

    for k in range(n):
        s = tl.dot(q, tl.trans(x))
        largest = tl.maximum(top, tl.max(s, 1))
        total = total * tl.where(largest == top, 1.0, 0.5)[:, None]       the part that a softmax scales down
        p = tl.where(s >= largest[:, None] - 1, 1.0, 0.0).to(tl.float16)
        total, state = tl.dot(p, y, total), tl.dot(tl.trans(x), p, state)
        q = tl.clamp(state, -2, 2).to(tl.float16)                          in the next iteration

All operands are small whole numbers, and sums multiples of a small power of two, so that every order gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.generator.builder import Builder, Unfit, statement_of
from tests.fuzz.generator.control import hints, nested
from tests.fuzz.generator.dot_loops import loaded

TYPES = ("float16", "float16", "bfloat16", "float32", "float8e5")
SIZES = (16, 32, 64, 64, 64)
MOST_TRIPS = 4
MOST_LINES = 9


@dataclass
class _Graph:
    """Tiles of `size` by `size`. Of `dtype` are `operands` of an iteration and `carried` ones; of fp32 its `scores`,
    and `sums` that are carried, as are largest elements of rows, `tops`.
    """

    dtype: str
    size: int
    index: str
    trips: int
    operands: list[str] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)
    tops: list[str] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size


@statement_of("dot graph")
def dot_graph(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        raise Unfit
    trips = b.rng.choice((0, 1, 1, 2, 3, MOST_TRIPS))
    g = _Graph(b.rng.choice(TYPES), b.rng.choice(SIZES), b.name("k"), trips)
    for _ in range(b.rng.choice((1, 2, 2, 3))):
        g.sums.append(str(b.define(f"tl.zeros({g.shape}, tl.float32)", "float32", g.shape)))
    g.operands += [str(loaded(b, g.dtype, g.shape)) for _ in range(b.rng.choice((0, 1, 2)))]
    if b.chance(0.5):
        g.carried.append(str(b.define(f"{loaded(b, g.dtype, g.shape)}", g.dtype, g.shape)))
    if b.chance(0.5):
        g.tops.append(str(b.define(f"tl.full(({g.size},), -100.0, tl.float32)", "float32", (g.size,))))
    bound = b.number("int32", trips) if b.chance(0.8) else trips
    hint = f", {hints(b)}" if b.chance(0.25) else ""
    with b.block(f"for {g.index} in tl.range(0, {bound}{hint}):"):
        _load(b, g)
        for _ in range(b.rng.randint(3, MOST_LINES)):
            (_load if b.chance(0.2) else _line)(b, g)
        for name in g.carried:
            b.emit(f"{name} = {b.rng.choice([*g.operands, *g.carried])}")


def _load(b: Builder, g: _Graph) -> None:
    g.operands.append(str(loaded(b, g.dtype, g.shape, _Loaded(g.index, g.trips))))


@dataclass(frozen=True)
class _Loaded:
    """Of a loop what `loaded` asks for."""

    index: str
    trips: int


def _line(b: Builder, g: _Graph) -> None:
    b.rng.choice((_summed, _summed, _scored, _scored, _operand, _operand, _combined, _scaled, _exchanged, _stored))(
        b, g
    )


def _pair(b: Builder, g: _Graph) -> str:
    there = [*g.operands, *g.carried, *g.operands[-2:]]
    x, y = (b.rng.choice(there) for _ in range(2))
    return ", ".join(f"tl.trans({one})" if b.chance(0.35) else one for one in (x, y))


def _summed(b: Builder, g: _Graph) -> None:
    total = b.rng.choice(g.sums)
    b.emit(f"{total} = tl.dot({_pair(b, g)}, {total})" if b.chance(0.7) else f"{total} += tl.dot({_pair(b, g)})")


def _scored(b: Builder, g: _Graph) -> None:
    start = f", {b.rng.choice(g.scores)}" if g.scores and b.chance(0.25) else ""
    g.scores.append(str(b.define(f"tl.dot({_pair(b, g)}{start})", "float32", g.shape)))


def _operand(b: Builder, g: _Graph) -> None:
    """Of scores, or of a sum; whole numbers from -2 to 2."""
    s = b.rng.choice([*g.scores[-2:], *g.sums])
    limit = b.rng.choice(("1.0", f"{b.rng.choice(g.tops)}[:, None]" if g.tops else "0.0", f"tl.max({s}, 1)[:, None]"))
    text = b.rng.choice(
        (
            f"tl.clamp(tl.floor({s}), -2.0, 2.0)",
            f"tl.where({s} >= {limit}, 1.0, 0.0)",
            f"tl.where({s} < {limit}, tl.clamp(tl.floor({s}), -1.0, 1.0), 2.0)",
            f"tl.clamp(tl.floor(tl.trans({s})), -1.0, 2.0)",
        )
    )
    g.operands.append(str(b.define(f"({text}).to(tl.{g.dtype})", g.dtype, g.shape)))


def _combined(b: Builder, g: _Graph) -> None:
    """Two scores, one with its rows or columns, or masked by the places of its elements."""
    if not g.scores:
        return
    s, t = b.rng.choice(g.scores), b.rng.choice([*g.scores, *g.sums])
    i, j = (f"tl.arange(0, {g.size}){at}" for at in ("[:, None]", "[None, :]"))
    texts = (
        f"{s} + {t}",
        f"{s} - tl.max({s}, 1)[:, None]",
        f"{s} - tl.min({s}, 0)[None, :]",
        f"tl.where({i} >= {j} + {g.index}, {s}, {b.rng.choice(('0.0', '-3.0'))})",
        f"tl.where({s} > {t}, {s}, -1.0)",
        f"tl.trans({s})",
        f"tl.where({g.index} % 2 == 0, {s}, {t})",
    )
    g.scores.append(str(b.define(b.rng.choice(texts), "float32", g.shape)))


def _scaled(b: Builder, g: _Graph) -> None:
    """The rows of a sum, where a larger element has come."""
    if not g.scores or not g.tops:
        return
    top, s, largest = b.rng.choice(g.tops), b.rng.choice(g.scores), b.name("largest")
    b.emit(f"{largest} = tl.maximum({top}, tl.max({s}, 1))")
    total = b.rng.choice(g.sums)
    b.emit(f"{total} = {total} * tl.where({largest} == {top}, 1.0, 0.5)[:, None]")
    b.emit(f"{top} = {largest}")


def _exchanged(b: Builder, g: _Graph) -> None:
    one, other = b.rng.choice(g.sums), b.rng.choice(g.sums)
    ways = (
        f"{one}, {other} = {other}, {one}",
        f"{one} = tl.where({g.index} % 2 == 0, {one}, {other})",
        f"{one} = -{one}",
    )
    b.emit(b.rng.choice(ways))


def _stored(b: Builder, g: _Graph) -> None:
    if not b.chance(0.4):
        return
    name = b.rng.choice([*g.scores, *g.sums])
    size = g.size * g.size
    out = b.array("float32", size * max(g.trips, 1) * b.programs, "poison", prefix="out")
    at = f"tl.arange(0, {g.size})[:, None] * {g.size} + tl.arange(0, {g.size})[None, :]"
    b.emit(f"tl.store({out} + pid * {size * max(g.trips, 1)} + {g.index} * {size} + {at}, {name})")

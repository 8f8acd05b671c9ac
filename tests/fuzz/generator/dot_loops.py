"""Loops of several products: of what is loaded, of each other, of what the loop carries, under conditions.

    for k in range(n):                          an operand may be a tile that was loaded for this iteration, or before
        x = tl.load(...)                        the loop, one of another product, or of sums that the loop carries;
        s = tl.dot(q, x)                        operands are shared, transposed, converted; sums are scaled, read,
        p = (s * 0.125).to(tl.float16)          stored
        acc = tl.dot(p, tl.trans(x), acc)

All tiles have M rows or K, and N columns or K; sizes are such that all instructions that multiply are met.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.generator.builder import Builder, Value, statement_of
from tests.fuzz.generator.control import hints, nested
from tests.fuzz.generator.dots import rows_of
from tests.fuzz.generator.memory import size_of, strided

TYPES = ("float16", "float16", "bfloat16")
MAX_TRIPS = 5


@dataclass
class Loop:
    """What an iteration has: operands of `dtype`, and the sums that are carried."""

    dtype: str
    m: int
    n: int
    index: str
    trips: int
    operands: list[Value] = field(default_factory=list)
    sums: list[Value] = field(default_factory=list)


@statement_of("dot")
def loop_of_products(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        return
    dtype, m, n = b.rng.choice(TYPES), rows_of(b, 16, 64, 64, 128), b.rng.choice((16, 32, 64))
    kept = [loaded(b, dtype, (m, n)) for _ in range(b.rng.choice((0, 1, 1)))]
    count = b.rng.choice((1, 1, 2, 3))
    sums = [b.define(f"tl.zeros(({m}, {n}), tl.float32)", "float32", (m, n)) for _ in range(count)]
    for _ in range(b.rng.choice((1, 1, 1, 2))):
        trips = b.rng.randint(0, MAX_TRIPS)
        bound = b.number("int32", trips) if b.chance(0.8) else trips
        loop = Loop(dtype, m, n, b.name("k"), trips, list(kept), sums)
        hint = b.rng.choice(("", "", ", num_stages=3", ", warp_specialize=True", f", {hints(b)}"))
        with b.block(f"for {loop.index} in tl.range(0, {bound}{hint}):"):
            for _ in range(b.rng.randint(1, 2)):
                loop.operands.append(loaded(b, dtype, b.rng.choice(((n, n), (m, n))), loop))
            for _ in range(b.rng.randint(1, 4)):
                _statement(b, loop)
            _product(b, loop)


def loaded(b: Builder, dtype: str, shape: tuple[int, ...], loop: Loop | None = None) -> Value:
    """A tile of the iteration's, or of the program's; rows or columns are contiguous."""
    size, count = size_of(shape), max(loop.trips, 1) if loop is not None else 1
    name = b.array(dtype, size * count * b.programs, "small")
    begin = f"{name} + pid * {size * count}" + (f" + {loop.index} * {size}" if loop is not None else "")
    axes = list(range(len(shape)))
    at, mask = strided(shape, axes if b.chance(0.6) else [*axes[:-2], axes[-1], axes[-2]]), ""
    if b.chance(0.2) and len(shape) == 2:
        mask = f", mask=tl.arange(0, {shape[0]})[:, None] < {b.number('int32', b.rng.randint(0, shape[0]))}, other=0.0"
    return b.define(f"tl.load({begin} + {at}{mask})", dtype, shape)


def _statement(b: Builder, loop: Loop) -> None:
    kind = b.rng.choice(("product", "product", "operand", "operand", "scale", "store", "branch", "any"))
    if kind == "product":
        _product(b, loop)
    elif kind == "operand":
        _operand_of_sum(b, loop, b.rng.choice(loop.sums))
    elif kind == "scale":
        total = b.rng.choice(loop.sums)
        factor = b.rng.choice(("0.5", f"tl.max({total}, 1)[:, None]", f"({loop.index} + 1)"))
        b.emit(f"{total} = {total} * 0.25 + {factor}" if b.chance(0.5) else f"{total} = {total} * 0.5")
    elif kind == "store":
        _store(b, loop, b.rng.choice([*loop.sums, *loop.operands]))
    elif kind == "branch":
        with b.block(f"if {b.rng.choice((f'{loop.index} % 2 == 0', f'{loop.index} > 0', 'pid == 0'))}:"):
            before = list(loop.operands)
            _product(b, loop)
            loop.operands[:] = before
    else:
        b.statement()


def _operand_of_sum(b: Builder, loop: Loop, total: Value) -> None:
    scaled = b.rng.choice((f"{total} * 0.0625", f"tl.exp({total} * 0.01)", f"tl.maximum({total}, 0.0) * 0.125"))
    scaled = f"tl.clamp({scaled}, -100.0, 100.0)"
    loop.operands.append(b.define(f"({scaled}).to(tl.{loop.dtype})", loop.dtype, total.shape))


def _product(b: Builder, loop: Loop) -> None:
    """(m, n) of two operands that fit, one of them maybe turned."""
    pairs = [
        (x, y)
        for first in loop.operands
        for second in loop.operands
        for x in _ways(first)
        for y in _ways(second)
        if (x.shape[0], y.shape[1]) == (loop.m, loop.n) and x.shape[1] == y.shape[0] and x.shape[1] >= 16
    ]
    if not pairs:
        rows = loaded(b, loop.dtype, (loop.n, loop.n), loop)
        loop.operands.append(rows)
        pairs = [(x, rows) for x in loop.operands if x.shape == (loop.m, loop.n)] or [
            (loaded(b, loop.dtype, (loop.m, loop.n), loop), rows)
        ]
    x, y = b.rng.choice(pairs)
    if b.chance(0.25):
        given = b.define(f"tl.dot({x}, {y})", "float32", (loop.m, loop.n))
        _operand_of_sum(b, loop, given)
        if b.chance(0.3):
            total = b.rng.choice(loop.sums)
            b.emit(f"{total} = {total} + {given}")
        return
    total = b.rng.choice(loop.sums)
    b.emit(f"{total} = tl.dot({x}, {y}, {total})" if b.chance(0.7) else f"{total} += tl.dot({x}, {y})")


def _ways(value: Value) -> list[Value]:
    return [value, Value(f"tl.trans({value})", value.dtype, value.shape[::-1])]


def _store(b: Builder, loop: Loop, value: Value) -> None:
    size, count = value.numel, max(loop.trips, 1)
    out = b.array(value.dtype, size * count * b.programs, "poison", prefix="out")
    at = f"{out} + pid * {size * count} + {loop.index} * {size} + {strided(value.shape, [0, 1])}"
    b.emit(f"tl.store({at}, {b.use(value)})")

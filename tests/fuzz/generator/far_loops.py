"""Loops whose counters are near the ends of their type, and what is computed of them.

    for k in tl.range(2147483400, 2147483647, 100, loop_unroll_factor=2):
        m = k + tl.arange(0, 16) < n                                wraps around, as numbers do
        v = tl.where(m, v + k // 3, v - (k >> 2) % 7)
        v += tl.load(x + ((k - 2147483400) // 100 * 16 + i))        a place in the array
        c += 3                                                      a number beside the counter, which may overflow

Bounds and steps are constants or arguments of 32 or 64 bits; a step may be larger than what is left, and there may be
no iteration. A later loop goes on with what one has carried.

    for k in range(n - 64, n + 32, 16):
        s = tl.where(n + rows >= k + columns, tl.dot(q, x), -7.0)       of which any sum may overflow
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import hints, nested
from tests.fuzz.generator.dots import rows_of

MAX_TRIPS = 4
WORDS = 2**32


@statement_of("far loops")
def far_loop(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        return
    extent = b.rng.choice((8, 16, 64, 128))
    i = b.define(f"tl.arange(0, {extent})", "int32", (extent,))
    total = b.define(f"tl.zeros(({extent},), tl.int32)", "int32", (extent,))
    carried = b.define(str(_far(b, "int32")), "int32", ())
    for _ in range(b.rng.choice((1, 1, 2))):
        _loop(b, i, total, carried)


def _far(b: Builder, dtype: str, value: int | None = None) -> Value | str:
    """A number, constant or argument: that one, or one near an end."""
    bits = 32 if dtype == "int32" else 64
    most = 2 ** (bits - 1)
    drawn = b.rng.choice((0, -1, most - 1, most - 40, -most, -most + 33, 64, 2**25 + 1))
    value = drawn if value is None else value
    known = str(value) if dtype == "int32" and value > -(2**31) else f"tl.full((), {value}, tl.{dtype})"
    return b.number(dtype, value) if b.chance(0.5) else known


def _loop(b: Builder, i: Value, total: Value, carried: Value) -> None:
    dtype, k = b.rng.choice(("int32", "int32", "int32", "int64")), b.name("k")
    most, trips = 2 ** (31 if dtype == "int32" else 63), b.rng.randint(0, MAX_TRIPS)
    step = b.rng.choice((1, 2, 7, 16, 64, 100, 1 << 20, 1 << 29))
    room = step * trips - b.rng.choice((0, 0, step - 1)) if trips else 0
    first = b.rng.choice((most - 1 - room, most - 1 - room, -most, -most + 5, -(room // 2), 0, 3))
    begin, end = _far(b, dtype, first), _far(b, dtype, first + room)
    given = b.number("int32", step) if b.chance(0.3) else step
    hint = b.rng.choice(("", "", ", loop_unroll_factor=2", ", loop_unroll_factor=3", ", num_stages=3", f", {hints(b)}"))
    array = b.array("int32", i.numel * MAX_TRIPS * 2 * b.programs, "normal")
    with b.block(f"for {k} in tl.range({begin}, {end}, {given}{hint}):"):
        place = f"(({k} - {begin}) // {step}) % {MAX_TRIPS} * {i.numel}"
        for _ in range(b.rng.randint(1, 4)):
            _statement(b, (k, dtype), i, total, carried, f"{array} + pid * {i.numel * MAX_TRIPS} + {place} + {i}")
        if b.chance(0.1):
            b.emit(f"if {k} {b.rng.choice(('>', '<', '=='))} {_far(b, dtype)}: {b.rng.choice(('break', 'continue'))}")


def _statement(b: Builder, counter: tuple[str, str], i: Value, total: Value, carried: Value, pointers: str) -> None:
    k, dtype = counter
    limit, compare = _far(b, dtype), b.rng.choice(("<", "<=", ">", ">=", "==", "!="))
    at = b.rng.choice(
        (f"{k} + {i}", f"{k} - {i}", f"{i} - {k}", f"{k} * 2 + {i}", f"{i} * 3 + {k}", f"{k} + {carried}")
    )
    of = b.rng.choice(
        (k, at, f"({at}) // 3", f"({at}) % 7", f"({at}) // 8", f"({at}) % 16", f"({at}) >> 2", f"({at}) // ({i} + 1)")
    )
    ways = (
        f"{total} = tl.where({at} {compare} {limit}, {total} * 3 + ({of}), {total} - 1).to(tl.int32)",
        f"{total} = ({total} + ({of})).to(tl.int32)",
        f"{total} += tl.load({pointers})",
        f"{total} += tl.load({pointers}, mask={at} {compare} {limit}, other=5)"
        if str(i) in at
        else f"{total} += tl.load({pointers})",
        f"{carried} += {b.rng.choice((1, 3, 1 << 20))}",
        f"{carried} = ({of.replace(str(i), '1')}).to(tl.int32)",
        f"{total} = tl.maximum({total}, ({of}).to(tl.int32))",
    )
    b.emit(b.rng.choice(ways))


@statement_of("far loops")
def far_scores(b: Builder) -> None:
    """Scores of which a mask by sums of numbers says which count, in a loop whose bounds are such sums."""
    nested(b)
    if b.depth > 2:
        raise Unfit
    numbers = _near_numbers(b)
    begin, end, step = _computed_bounds(b, numbers)
    m, n = rows_of(b, 16, 32, 64), b.rng.choice((16, 32))
    rows, keys, s, k = (b.name(prefix) for prefix in ("rows", "keys", "s", "k"))
    q, x = (f"tl.load({b.array('float16', size, 'small')} + {at})" for size, at in _operands(m, n))
    acc = b.define(f"tl.zeros(({m}, {n}), tl.float32)", "float32", (m, n))
    sign = b.rng.choice("+++-")
    b.emit(f"{rows} = ({_sum(b, numbers)[0]} {sign} tl.arange(0, {m}))[:, None]")
    hint = b.rng.choice(("", "", ", num_stages=3", f", {hints(b)}"))
    with b.block(f"for {k} in tl.range({begin}, {end}, {step}{hint}):"):
        b.emit(f"{keys} = ({k} + tl.arange(0, {n}))[None, :]")
        b.emit(f"{s} = tl.dot({q}, {x})")
        conditions = [_condition(b, numbers, rows, keys) for _ in range(b.rng.choice((1, 1, 2)))]
        b.emit(f"{s} = tl.where({' & '.join(conditions)}, {s}, -7.0)")
        b.emit(f"{acc} += {s}")


def _operands(m: int, n: int) -> list[tuple[int, str]]:
    return [
        (rows * columns, f"tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]")
        for rows, columns in ((m, 16), (16, n))
    ]


def _near_numbers(b: Builder) -> list[tuple[str, int]]:
    """Two arguments near each other, often near an end; as texts and values."""
    first = b.rng.choice((0, 2**31 - 1, -(2**31), 2**31 - 64, 2**31 - 100, 64 - 2**31)) + b.rng.choice((0, 1, -16, 5))
    values = [_wrapped(first), _wrapped(first + b.rng.randint(-120, 120))]
    return [(str(b.kept_number("int32", value)), value) for value in values]


def _wrapped(value: int) -> int:
    return (value + WORDS // 2) % WORDS - WORDS // 2


def _sum(b: Builder, numbers: list[tuple[str, int]]) -> tuple[str, int]:
    text, value = b.rng.choice(numbers)
    added = b.rng.choice((0, 0, 16, -16, 32, -64, 17, 100))
    return (f"({text} + {added})", _wrapped(value + added)) if added else (text, value)


def _computed_bounds(b: Builder, numbers: list[tuple[str, int]]) -> tuple[str, str, int]:
    """A begin, an end and a step that give no more than some iterations; what overflows may give none."""
    for _ in range(20):
        begin, end = _sum(b, numbers), b.rng.choice((_sum(b, numbers), _sum(b, numbers), ("2147483647", 2**31 - 1)))
        if b.chance(0.3):
            other = _sum(b, numbers)
            end = f"tl.minimum({end[0]}, {other[0]})", min(end[1], other[1])
        step = b.rng.choice((16, 16, 32, 7))
        if end[1] - begin[1] <= MAX_TRIPS * step:
            return begin[0], end[0], step
    raise Unfit


def _condition(b: Builder, numbers: list[tuple[str, int]], rows: str, keys: str) -> str:
    limit = _sum(b, numbers)[0]
    compare = b.rng.choice(("<", "<=", ">", ">="))
    ways = (
        f"({rows} {compare} {keys})",
        f"({keys} {compare} {limit})",
        f"({rows} - {keys} {compare} {b.rng.choice((3, 40, limit))})",
        f"({keys} + {limit} {compare} {rows})",
        f"({rows} >= {keys})",
    )
    return b.rng.choice(ways)

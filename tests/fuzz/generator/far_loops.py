"""Loops whose counters are near the ends of their type, and what is computed of them.

    for k in tl.range(2147483400, 2147483647, 100, loop_unroll_factor=2):
        m = k + tl.arange(0, 16) < n                                wraps around, as numbers do
        v = tl.where(m, v + k // 3, v - (k >> 2) % 7)
        v += tl.load(x + ((k - 2147483400) // 100 * 16 + i))        a place in the array
        c += 3                                                      a number beside the counter, which may overflow

Bounds and steps are constants or arguments of 32 or 64 bits; a step may be larger than what is left, and there may be
no iteration. A later loop goes on with what one has carried.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Value, statement_of
from tests.fuzz.generator.control import hints, nested

MAX_TRIPS = 4


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

"""Loops over parts of an array by numbers that are loaded: as pages and rows are, through further arrays, under masks.

Arrays of numbers have an element for each round, and no more; some loops store the number of a later round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.generator.builder import Builder, Value, shape_text, statement_of
from tests.fuzz.generator.control import MAX_TRIPS, nested
from tests.fuzz.generator.dots import rows_of
from tests.fuzz.generator.memory import row_major, size_of

PARTS = (1, 2, 3, 5)
TYPES = ("float32", "float16", "bfloat16", "int32", "int8", "int64", "float64")


@dataclass(frozen=True)
class _Parts:
    """An array of `count` parts of one shape, and the arrays that say which a round loads; `trips` rounds at most."""

    count: int
    trips: int
    shape: tuple[int, ...]
    array: str
    numbers: str
    links: str | None
    lengths: str | None


def _parts(b: Builder, dtype: str, shape: tuple[int, ...], is_by_rows: bool) -> _Parts:
    count, trips = b.rng.choice(PARTS), b.rng.randint(0, MAX_TRIPS + 2)
    each, bound = (shape[0], count * shape[0]) if is_by_rows else (1, count)
    return _Parts(
        count,
        trips,
        shape,
        b.array(dtype, count * size_of(shape)),
        b.array(b.rng.choice(("int32", "int32", "int64")), max(trips, 1) * each * b.programs, "index", bound, "part"),
        b.array("int32", bound, "index", bound, "link") if b.chance(0.3) else None,
        b.array("int32", bound, "index", size_of(shape) + 1, "length") if b.chance(0.3) else None,
    )


def _range(b: Builder, trips: int) -> str:
    end = str(b.number("int32", trips)) if b.chance(0.8) else str(trips)
    hint = b.rng.choice(("", "", ", num_stages=2", ", num_stages=3"))
    return f"tl.range(0, {end}{hint})"


def _tile(b: Builder, parts: _Parts, dtype: str, number: str, is_by_rows: bool) -> Value:
    """What a round loads."""
    number = b.define(f"tl.load({parts.numbers} + {number})", "int32", parts.shape[:1] if is_by_rows else (), "p")
    for _ in range(b.rng.choice((1, 1, 2)) if parts.links is not None else 0):
        number = b.define(f"tl.load({parts.links} + {number})", "int32", number.shape, "p")
    within = b.define(row_major(parts.shape), "int32", parts.shape, "i")
    if is_by_rows:
        columns = parts.shape[1]
        offset = f"{number}[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
    else:
        offset = f"{number} * {size_of(parts.shape)} + {within}"
    mask = ""
    if parts.lengths is not None:
        length = b.define(f"tl.load({parts.lengths} + {number})", "int32", number.shape, "l")
        mask = f", mask={within} < {length}{'[:, None]' if is_by_rows else ''}, other={b.rng.choice(('0', '0', '1'))}"
    return b.define(f"tl.load({parts.array} + {offset}{mask})", dtype, parts.shape)


def _store_later(b: Builder, parts: _Parts, round_: str) -> None:
    """The number of a later round, which that has to see."""
    ahead = b.rng.choice((1, 1, 2, 3))
    b.emit("tl.debug_barrier()")
    later = f"{parts.numbers} + pid * {parts.trips} + {round_} + {ahead}"
    b.emit(f"tl.store({later}, ({round_} + 1) % {parts.count}, mask={round_} + {ahead} < {parts.trips})")
    b.emit("tl.debug_barrier()")


@statement_of("control")
def sum_of_parts(b: Builder) -> None:
    nested(b)
    dtype, shape = b.rng.choice(TYPES), b.shape(1, 2, 512)
    is_by_rows = len(shape) == 2 and b.chance(0.4)
    parts = _parts(b, dtype, shape, is_by_rows)
    total = b.define(f"tl.zeros({shape_text(shape)}, tl.{dtype})", dtype, shape)
    _round(b, parts, dtype, is_by_rows, lambda tile: b.emit(f"{total} = ({total} + {tile}).to(tl.{dtype})"))


@statement_of("dot")
def product_of_parts(b: Builder) -> None:
    nested(b)
    dtype, k, n = b.rng.choice(("float16", "bfloat16", "float32", "int8")), b.rng.choice((32, 64)), 32
    m, result = rows_of(b, 16, 64), "int32" if dtype == "int8" else "float32"
    is_by_rows = b.chance(0.5)
    parts = _parts(b, dtype, (k, n), is_by_rows)
    with_what = b.value(dtype, (m, k))
    total = b.define(f"tl.zeros({shape_text((m, n))}, tl.{result})", result, (m, n))
    precision = ', input_precision="ieee"' if dtype == "float32" else ""
    text = f"{total} = tl.dot({with_what}, %s, {total}{precision})"
    _round(b, parts, dtype, is_by_rows, lambda tile: b.emit(text % tile))


def _round(b: Builder, parts: _Parts, dtype: str, is_by_rows: bool, use: Callable[[Value], None]) -> None:
    round_ = b.name("k")
    number = f"pid * {parts.trips} + {round_}"
    if is_by_rows:
        number = f"({number}) * {parts.shape[0]} + tl.arange(0, {parts.shape[0]})"
    with b.block(f"for {round_} in {_range(b, parts.trips)}:"):
        use(_tile(b, parts, dtype, number, is_by_rows))
        if not is_by_rows and b.chance(0.2):
            _store_later(b, parts, round_)

"""Loops of products whose addresses go on from iteration to iteration, and whose masks tell by the index of the loop.

    columns = (tl.arange(0, 32) - 3).to(tl.uint32).to(tl.uint64)        a tile of A begins before its row: the first
    a_ptrs = a + rows[:, None] * 96 + columns[None, :]                  three are large numbers, which a mask leaves out
    for k in range(3):
        acc = tl.dot(tl.load(a_ptrs, mask=(columns < 96)[None, :], other=0.0), tl.load(b_ptrs), acc)
        a_ptrs += 32; b_ptrs += 32 * 64

    for first in range(0, n, 16):                                       scores, of which a window counts; one without
        keys = first + tl.arange(0, 16)                                 end is as wide as integers are
        s = tl.where(keys[None, :] - rows[:, None] < 2147483647, tl.dot(q, tl.trans(k)), -1.0)

All numbers are small and whole, so that sums are exact.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, statement_of
from tests.fuzz.generator.control import nested
from tests.fuzz.generator.dot_loops import TYPES
from tests.fuzz.generator.dots import rows_of

FAR = (2147483647, 2147483600, 1 << 30)
HINTS = ("", "", ", num_stages=2", ", warp_specialize=True")


@statement_of("dot")
def advanced_pointers(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        raise Unfit
    dtype, m, n, k = b.rng.choice(TYPES), rows_of(b, 16, 64, 128), *b.rng.choices((16, 32, 64, 64), k=2)
    trips = b.rng.randint(1, 4)
    width = trips * k
    columns, inside = _columns(b, k, width)
    a, other = (b.array(dtype, size * b.programs, "small") for size in (m * width, width * n))
    rows, x_ptrs, y_ptrs, acc, index = map(b.name, ("rows", "p", "p", "acc", "k"))
    b.emit(f"{rows} = tl.arange(0, {m})")
    b.emit(f"{x_ptrs} = {a} + pid * {m * width} + {rows}[:, None] * {width} + {columns}[None, :]")
    b.emit(f"{y_ptrs} = {other} + pid * {width * n} + tl.arange(0, {k})[:, None] * {n} + tl.arange(0, {n})[None, :]")
    b.emit(f"{acc} = tl.zeros(({m}, {n}), tl.float32)")
    bound = b.number("int32", trips) if b.chance(0.8) else trips
    with b.block(f"for {index} in tl.range(0, {bound}{b.rng.choice(HINTS)}):"):
        mask = f", mask=({inside})[None, :], other=0.0" if inside else ""
        b.emit(f"{acc} = tl.dot(tl.load({x_ptrs}{mask}), tl.load({y_ptrs}), {acc})")
        b.emit(f"{x_ptrs} += {k}")
        b.emit(f"{y_ptrs} += {k * n}")
    _store(b, acc, (m, n))


def _columns(b: Builder, k: int, width: int) -> tuple[str, str]:
    """Those of A that the first iteration begins with, and which of them are there, in every iteration."""
    columns, before = b.name("columns"), b.rng.choice((1, 1, 2, 3, 8))
    kind = b.rng.choice(("plain", "before", "unsigned", "widened", "widened"))
    casts = {"unsigned": ".to(tl.uint32)", "widened": ".to(tl.uint32).to(tl.uint64)"}
    if kind == "plain":
        b.emit(f"{columns} = tl.arange(0, {k})")
        return columns, ""
    b.emit(f"{columns} = (tl.arange(0, {k}) - {before}){casts.get(kind, '')}")
    return columns, f"{columns} >= 0" if kind == "before" else f"{columns} < {width}"


@statement_of("dot")
def windows(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        raise Unfit
    dtype, m, n, d = b.rng.choice(TYPES[:1]), rows_of(b, 16, 64, 64, 128), b.rng.choice((16, 32)), 16
    trips = b.rng.randint(0, 5)
    q, keys_of = b.array(dtype, m * d * b.programs, "small"), b.array(dtype, max(trips, 1) * n * d, "small")
    name = b.name
    rows, dims, tile, acc, first, keys, k, s = (
        name(p) for p in ("rows", "dims", "q", "acc", "first", "keys", "k", "s")
    )
    b.emit(f"{rows}, {dims} = pid * {m} + tl.arange(0, {m}), tl.arange(0, {d})")
    b.emit(f"{tile} = tl.load({q} + {rows}[:, None] * {d} + {dims}[None, :])")
    b.emit(f"{acc} = tl.zeros(({m}, {d}), tl.float32)")
    end = b.number("int32", trips * n) if b.chance(0.7) else trips * n
    with b.block(f"for {first} in tl.range(0, {end}, {n}{b.rng.choice(HINTS)}):"):
        b.emit(f"{keys} = {first} + tl.arange(0, {n})")
        b.emit(f"{k} = tl.load({keys_of} + {keys}[:, None] * {d} + {dims}[None, :])")
        b.emit(f"{s} = tl.where({_seen(b, rows, keys, m)}, tl.dot({tile}, tl.trans({k})), -1.0)")
        b.emit(f"{acc} = tl.dot({s}.to(tl.{dtype}), {k}, {acc})")
    _store(b, acc, (m, d))


def _seen(b: Builder, rows: str, keys: str, m: int) -> str:
    """Of each pair of a row and a key whether it counts."""
    row, key = f"{rows}[:, None]", f"{keys}[None, :]"
    near = b.rng.choice((0, 1, m // 2, -3, 40))
    limit = b.rng.choice((*FAR, near, b.number("int32", b.rng.choice((near, FAR[0])))))
    sides = (f"{key} - {row} < {limit}", f"{row} - {key} < {limit}", f"{row} >= {key}", f"{row} <= {key}")
    return " & ".join(f"({side})" for side in b.rng.sample(sides, b.rng.choice((1, 1, 2))))


def _store(b: Builder, value: str, shape: tuple[int, int]) -> None:
    size = shape[0] * shape[1]
    out = b.array("float32", size * b.programs, "poison", prefix="out")
    at = f"tl.arange(0, {shape[0]})[:, None] * {shape[1]} + tl.arange(0, {shape[1]})[None, :]"
    b.emit(f"tl.store({out} + pid * {size} + {at}, {value})")

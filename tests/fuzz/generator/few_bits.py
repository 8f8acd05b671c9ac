"""Integers that are widened, shifted, masked and made narrow again, and weights of few bits that products multiply.

    w = tl.load(x + i).to(tl.int32)             8 bits
    v = ((w >> 4) & 15).to(tl.int8)             by constants, arguments, tiles; more than a byte has, or negative

    for t in range(trips):                      a product of which a row or some are stored
        w = tl.load(q + (t * 16 + ks // 2)[:, None] * N + columns[None, :])
        acc = tl.dot(a, ((w >> (ks % 2 * 4)[:, None]) & 15).to(a.dtype), acc)

All sums are of small whole numbers, so that they are exact.
"""

from __future__ import annotations

from tests.fuzz.case import BITS
from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import nested

NARROW = ("int8", "uint8", "int8", "uint8", "int16", "uint16", "int32", "uint32")
STEPS = (1, 1, 2, 3, 4, 6)


@statement_of("few bits")
def widened(b: Builder) -> None:
    """Some shifts and masks of what was widened, and what is made of it."""
    narrow = b.dtype(NARROW)
    wide = b.rng.choice([name for name in NARROW + ("int64", "uint64") if BITS[name] > BITS[narrow]] or ["int64"])
    shape = b.shape(1, 3)
    v = b.define(f"{b.value(narrow, shape)}.to(tl.{wide})", wide, shape)
    for _ in range(b.rng.choice(STEPS)):
        v = _step(b, v, BITS[narrow])
    others = (narrow, narrow, wide, "int8", "uint8", "float32", "int64", "int16")
    b.converted(v, b.rng.choice(others))


def _step(b: Builder, v: Value, bits: int) -> Value:
    amount, number = _amount(b, v, bits), _number(b, v.dtype, bits)
    texts = (
        *(f"{v} >> {amount}", f"{v} >> {amount}", f"{v} & {number}", f"{v} & {number}", f"{number} & {v}"),
        *(f"{v} << {amount}", f"{v} | {number}", f"{v} ^ {number}", f"{v} + {number}", f"{v} - {number}"),
    )
    return b.define(f"({b.rng.choice(texts)}).to(tl.{v.dtype})", v.dtype, v.shape)


def _amount(b: Builder, v: Value, bits: int) -> str:
    """From 0 on; of the narrow type's bits or more at times."""
    kind = b.rng.choice(("number", "number", "number", "argument", "places", "loaded", "masked"))
    number = b.rng.choice((0, 1, 3, 4, bits - 1, bits - 1, bits, bits + 1, BITS[v.dtype] - 1))
    if kind == "argument":
        return str(b.kept_number("int32", number))
    if kind == "number":
        return str(number)
    if kind == "places":
        last = f"tl.arange(0, {v.shape[-1]})" + (f"[{'None, ' * (len(v.shape) - 1)}:]" if len(v.shape) > 1 else "")
        return f"({last} % {b.rng.choice((2, 8, bits, 2 * bits))} * {b.rng.choice((1, 1, 4))})"
    amounts = b.value(b.rng.choice((v.dtype, v.dtype, "int8", "int32")), v.shape)
    return f"({amounts} & {b.rng.choice((1, 3, 7, bits - 1, 2 * bits - 1))})"


def _number(b: Builder, dtype: str, bits: int) -> str:
    most = 2 ** (BITS[dtype] - (dtype[0] == "i")) - 1
    numbers = (1, 15, 240, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2**bits, 2 ** (bits + 1) - 1, most)
    chosen = min(b.rng.choice(numbers), most)
    return str(-chosen if dtype[0] == "i" and b.chance(0.15) else chosen)


# -- products


@statement_of("few bits")
def weights(b: Builder) -> None:
    """Products whose right operand is unpacked, of which some rows and columns are stored."""
    nested(b)
    if b.depth > 2:
        raise Unfit
    dtype, packed = (
        b.rng.choice(("float32", "float32", "float16", "bfloat16")),
        b.rng.choice(("int8", "uint8", "int32")),
    )
    m, n, k = (b.rng.choice(sizes) for sizes in ((1, 2, 4, 16, 16, 32), (16, 32, 64), (16, 32, 64)))
    few = b.rng.choice((2, 2, 4)) if packed != "int32" else 8
    trips = b.rng.randint(0, 5)
    rows, columns, ks, t, acc, a, w = map(b.name, ("rows", "columns", "ks", "t", "acc", "a", "w"))
    for name, extent in ((rows, m), (columns, n), (ks, k)):
        b.emit(f"{name} = tl.arange(0, {extent})")
    limits = [b.number("int32", b.rng.choice((0, 1, 1, 1, 2, extent))) for extent in (m, n)]
    shift = f"({ks} % {few} * {32 // few if packed == 'int32' else 8 // few})[:, None]"
    mask = 2 ** (32 // few if packed == "int32" else 8 // few) - 1
    depth = max(trips, 1) * k
    x, q = b.array(dtype, m * depth * b.programs, "small"), b.array(packed, depth // few * n * b.programs, "special")
    scale = b.array(dtype, n * b.programs, "small") if b.chance(0.5) else None
    along_rows = b.chance(0.7)
    b.emit(f"{acc} = tl.full(({m}, {n}), {b.rng.choice((0, 0, 1))}, tl.float32)")
    with b.block(f"for {t} in range({b.number('int32', trips) if b.chance(0.8) else trips}):"):
        row_mask = f", mask=({rows} < {limits[0]})[:, None], other=0.0" if b.chance(0.6) else ""
        b.emit(
            f"{a} = tl.load({x} + pid * {m * depth} + {rows}[:, None] * {depth} + "
            f"({t} * {k} + {ks})[None, :]{row_mask})"
        )
        line = f"({t} * {k // few} + {ks} // {few})[:, None]"
        place = f"{line} * {n} + {columns}[None, :]" if along_rows else f"{columns}[None, :] * {depth // few} + {line}"
        column_mask = f", mask=({columns} < {limits[1]})[None, :], other=0" if b.chance(0.4) else ""
        b.emit(f"{w} = tl.load({q} + pid * {depth // few * n} + {place}{column_mask})")
        b.emit(f"{w} = (({w} >> {shift}) & {mask})" + b.rng.choice(("", " - 1", f" - {mask // 2 + 1}")))
        b.emit(f"{w} = {w}.to(tl.{dtype})")
        if scale is not None:
            b.emit(f"{w} = {w} * tl.load({scale} + pid * {n} + {columns})[None, :]")
        b.emit(f"{acc} = tl.dot({a}, {w}, {acc})" if b.chance(0.7) else f"{acc} += tl.dot({a}, {w})")
    _store(b, acc, (rows, m, limits[0]), (columns, n, limits[1]))


def _store(b: Builder, acc: str, of_rows: tuple[str, int, Value], of_columns: tuple[str, int, Value]) -> None:
    (rows, m, last_row), (columns, n, last_column) = of_rows, of_columns
    out = b.array("float32", m * n * b.programs, "poison", prefix="out")
    masks = [f"({rows} < {last_row})[:, None]"]
    masks += [f"({columns} < {last_column})[None, :]"] if b.chance(0.4) else []
    b.emit(
        f"tl.store({out} + pid * {m * n} + {rows}[:, None] * {n} + {columns}[None, :], {acc}, mask={' & '.join(masks)})"
    )

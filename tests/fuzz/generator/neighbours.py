"""Neighbours that load the same element, or each other's, and rows of indices that loops advance.

    i = pid * 256 + tl.arange(0, 256)
    place = (i // 2 ^ 1) & 255
    v = tl.load(x + place, mask=i // 4 < n, other=i % 7)

Places are computed in several steps, of numbers with a sign or without, which overflow at times, and are brought into
the array in the end. A loop carries its row of indices for masks along both axes, and for what comes after it.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import FP8, INTEGERS, Builder, statement_of

SIZES = (32, 64, 128, 256, 512, 1024, 2048)
NUMBERS = (1, 2, 3, 4, 5, 8, 12, 16, 64)
LOADED = ("int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "int1", *FP8)


def place_of(b: Builder, index: str, size: int) -> str:
    """A number below the size, a power of two, of an index."""
    text, number = index, lambda: b.rng.choice(NUMBERS)
    for _ in range(b.rng.randint(1, 4)):
        text = b.rng.choice(
            (
                f"({text} // {number()})",
                f"({text} % {number()})",
                f"({text} ^ {b.rng.choice((1, 2, 3, 7, 16))})",
                f"({text} | {b.rng.choice((1, 2, 4, 6))})",
                f"({text} & {b.rng.choice((size - 1, size - 2, size // 2 - 1, 3, 5, -4))})",
                f"({text} >> {b.rng.choice((0, 1, 2))})",
                f"({text} << {b.rng.choice((0, 1, 2, 29))})",
                f"({text} * {number()})",
                f"({text} + {number()})",
                f"({number()} - {text})",
                f"({text} + {index} // {number()})",
                f"({text} % 2 * {size // 2} + {text} // 2)",
                f"{text}.to(tl.{b.rng.choice(('int64', 'uint32', 'uint64', 'uint32'))})",
                f"({text}.to(tl.uint32) * {b.rng.choice((3000000000, 2147483647, 1 << 30))})",
                f"({text}.to(tl.int64) + {b.rng.choice((1 << 32, (1 << 32) + 1, -(1 << 33)))}).to(tl.int32)",
            )
        )
    return f"({text} & {size - 1})"


@statement_of("neighbours")
def load_neighbours(b: Builder) -> None:
    dtype, size = b.rng.choice(LOADED), b.rng.choice(SIZES)
    index, beyond = _index(b, size), b.rng.choice((0, 0, 1, 4))
    name = b.array(dtype, (size + beyond) * b.programs)
    pointers = f"{name} + pid * {size + beyond} + {place_of(b, index, size)}"
    if beyond:
        pointers += f" + {beyond}"
    chosen = _mask(b, index, size)
    other = f", other={_other(b, dtype, index)}" if chosen else ""
    b.define(f"tl.load({pointers}{chosen}{other})", dtype, (size,))


@statement_of("neighbours")
def load_pairs_of_rows(b: Builder) -> None:
    """As rotary embeddings do: each column, the other of its pair, and an angle of both; rows share some, too."""
    dtype, (rows, columns) = b.rng.choice(LOADED), (b.rng.choice((1, 4, 8, 16)), b.rng.choice((16, 32, 64)))
    row, column = b.name("r"), b.name("c")
    b.emit(f"{row} = tl.arange(0, {rows})[:, None]")
    b.emit(f"{column} = tl.arange(0, {columns})[None, :]")
    name, is_turned = b.array(dtype, rows * columns * b.programs), b.chance(0.3)
    y, x = place_of(b, row, rows) if b.chance(0.5) else row, place_of(b, column, columns)
    place = f"{x} * {rows} + {y}" if is_turned else f"{y} * {columns} + {x}"
    chosen = f", mask=({row} < {b.number('int32', b.rng.randint(0, rows))}) & ({column} < {columns}), other=0.0"
    mask = chosen if b.chance(0.5) else ""
    b.define(f"tl.load({name} + pid * {rows * columns} + {place}{mask})", dtype, (rows, columns))


@statement_of("neighbours")
def advanced_rows(b: Builder) -> None:
    """A row that a loop advances, for masks and addresses along both axes, and after the loop."""
    dtype, size = b.rng.choice(("float32", "float16", "int32", "int8")), b.rng.choice((8, 16, 32))
    kind = b.rng.choice(("int32", "int32", "int64"))
    step, trips = b.rng.choice((1, size, -1, 3)), b.rng.randint(0, 4)
    row, counter, total = b.name("i"), b.name("k"), None
    begin = max(-step * trips, 0)
    extent = begin + abs(step) * trips + size
    x, y = (b.array(dtype, extent * size * b.programs) for _ in range(2))
    b.emit(f"{row} = {begin} + tl.arange(0, {size}).to(tl.{kind})")
    columns = f"tl.arange(0, {size})"
    total = b.define(f"tl.zeros(({size}, {size}), tl.{dtype})", dtype, (size, size))
    known = b.number("int32", extent - b.rng.randint(0, extent))
    amount = b.number(kind, step) if b.chance(0.5) else step
    base = f"pid * {extent * size}"
    with b.block(f"for {counter} in range({b.number('int32', trips) if b.chance(0.5) else trips}):"):
        at, mask = (f"{row}[:, None]", f"{row}[None, :]"), f" < {known}, other=1)"
        down = f"tl.load({x} + {base} + {at[0]} * {size} + {columns}[None, :], mask={at[0]}{mask}"
        along = f"tl.load({y} + {base} + {columns}[:, None] * {extent} + {at[1]}, mask={at[1]}{mask}"
        b.emit(f"{total} = ({total} + {down} - {along}).to(tl.{dtype})")
        if b.chance(0.2):
            with b.block(f"if {counter} == 1:"):
                b.emit(f"{row} += 0")
        b.emit(f"{row} += {amount}")
    if b.chance(0.6):
        b.define(f"{row} + 0", kind, (size,))


def _index(b: Builder, size: int) -> str:
    index = b.name("i")
    begin = b.rng.choice((0, "pid * " + str(size), "pid * 8", b.rng.choice((1, 2, 4, -size)), b.number("int32", 16)))
    first, end = b.rng.choice(((0, size), (0, size), (-size, 0)))
    b.emit(f"{index} = {begin} + tl.arange({first}, {end})")
    return index


def _mask(b: Builder, index: str, size: int) -> str:
    limit = b.number("int32", b.rng.choice((0, 1, size // 2, size - 3, 10 * size)))
    mask = b.rng.choice((None, f"{index} < {limit}", f"{index} // 4 < {limit}", f"{index} % 2 == 0", f"{limit} > 0"))
    return f", mask={mask}" if mask else ""


def _other(b: Builder, dtype: str, index: str) -> str:
    of_index = [f"{index} % 7", f"{index} // 4"] if dtype in INTEGERS else []
    return str(b.rng.choice(("0.0" if dtype in FP8 else b.literal(dtype), *of_index)))

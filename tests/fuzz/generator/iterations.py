"""Loops of many small iterations: columns that are summed up a few bytes at a time, their largest elements with places,
by known and unknown bounds, upwards and downwards; tiles that are split and joined from one iteration to the next.

    for k in range(n - 1, -1, -1):
        total += tl.load(column + k * stride)
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of

MAX_ITERATIONS = 40
COLUMNS = (1, 2, 8, 32, 64, 128)
LOADED = ("float32", "float16", "int32", "int8", "float64", "int64", "uint8")


def _range(b: Builder, trips: int) -> tuple[str, str]:
    """Of so many iterations, and the number of each as an expression of `{k}`."""
    step, first = b.rng.choice((1, 1, 1, 2, 8, -1, -1, -3)), b.rng.choice((0, 0, 0, 5, -3))
    end = first + trips * step - (b.rng.choice((0, abs(step) - 1)) if trips else 0) * (1 if step > 0 else -1)
    if trips == 0:
        end = first - b.rng.choice((0, 1, 7)) * (1 if step > 0 else -1)
    texts = [str(b.number("int32", number)) if b.chance(p) else str(number) for number, p in ((first, 0.2), (end, 0.6))]
    # Of a step that is not known Triton takes the sign for positive.
    texts.append(str(b.number("int32", step)) if step > 0 and b.chance(0.2) else str(step))
    number = f"(({{k}} - ({first})) // {step})" if step != 1 or first else "{k}"
    return f"range({', '.join(texts)})", number


@statement_of("iterations")
def columns(b: Builder) -> None:
    """Sums, products, extremes of a column, one or some of them, with a mask or without, of another array besides."""
    if b.depth > 2:
        raise Unfit
    dtype, size, trips = b.rng.choice(LOADED), b.rng.choice(COLUMNS), b.rng.choice((0, 1, 3, 8, 16, 31, MAX_ITERATIONS))
    wide = {"float16": "float32", "int8": "int32", "uint8": "int32"}.get(dtype, dtype)
    name = b.array(dtype, max(trips, 1) * size * b.programs, "small")
    column = b.name("c")
    b.emit(f"{column} = {name} + pid * {max(trips, 1) * size} + tl.arange(0, {size})")
    total = b.define(f"tl.zeros(({size},), tl.{wide})", wide, (size,))
    largest = b.define(f"tl.full(({size},), -100, tl.{wide})", wide, (size,))
    where = b.define(f"tl.full(({size},), -1, tl.int32)", "int32", (size,))
    stride = b.number("int32", size) if b.chance(0.5) else size
    header, number = _range(b, trips)
    limit = b.number("int32", b.rng.randint(0, max(trips, 1))) if b.chance(0.3) else None
    k = b.name("k")
    with b.block(f"for {k} in {header}:"):
        at = number.format(k=k)
        mask = f", mask={at} + tl.arange(0, {size}) * 0 < {limit}, other=2" if limit is not None else ""
        x = b.define(f"tl.load({column} + {at} * {stride}{mask}).to(tl.{wide})", wide, (size,))
        for line in b.rng.sample(_steps(x, total, largest, where, k, wide), b.rng.randint(1, 4)):
            b.emit(line)
        if b.chance(0.1):
            with b.block(f"if {at} == {b.rng.randint(0, 3)}:"):
                b.emit(b.rng.choice(("continue", "break")))


def _steps(x: Value, total: Value, largest: Value, where: Value, k: str, wide: str) -> list[str]:
    return [
        f"{total} += {x}",
        f"{total} = tl.where({x} > 0, {total} + {x}, {total} - 1).to(tl.{wide})",
        f"{where} = tl.where({x} > {largest}, {k}, {where})",
        f"{largest} = tl.maximum({largest}, {x})",
        f"{total} += tl.sum({x}, 0)",
    ]


@statement_of("iterations")
def nothing_backwards(b: Builder) -> None:
    """Loops that have no iteration, since they go the other way, around what would store."""
    if b.depth > 2:
        raise Unfit
    value = b.define(f"tl.full((16,), {b.rng.randint(0, 9)}, tl.int32)", "int32", (16,))
    out = b.array("int32", 16 * b.programs, "small", prefix="io")
    first, step = b.rng.choice((0, 3, -2)), b.rng.choice((1, 4, -1, -4))
    end = first - step * b.rng.choice((0, 1, 5))
    bounds = [str(b.number("int32", number)) if b.chance(0.5) else str(number) for number in (first, end)]
    with b.block(f"for {(k := b.name('k'))} in range({', '.join(bounds)}, {step}):"):
        b.emit(f"tl.store({out} + pid * 16 + tl.arange(0, 16), {value})")
        b.emit(f"{value} += {k}")


@statement_of("iterations")
def joined_and_split(b: Builder) -> None:
    """Two tiles that each iteration joins and splits, turned or not, or puts one behind the other and halves."""
    if b.depth > 2:
        raise Unfit
    dtype, shape = b.rng.choice(("int32", "float32", "int8", "int64", "float16")), b.shape(1, 2, 256)
    x, y = (b.define(f"{b.value(dtype, shape)}", dtype, shape) for _ in range(2))
    trips = b.rng.randint(0, 4)
    with b.block(f"for {(k := b.name('k'))} in range({b.number('int32', trips) if b.chance(0.5) else trips}):"):
        kind = b.rng.choice(("join", "cat", "rotate", "join"))
        pair = b.name("t")
        if kind == "join":
            b.emit(f"{pair} = tl.join({x}, {y})")
            if b.chance(0.5):
                b.emit(f"{pair} = ({pair} + {k}).to(tl.{dtype})")
            b.emit(f"{', '.join(map(str, b.rng.sample((x, y), 2)))} = tl.split({pair})")
        elif kind == "cat":
            axis = b.rng.randrange(len(shape))
            double = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
            halves = (*shape[:axis], 2, *shape[axis:])
            order = (*range(axis), *range(axis + 1, len(halves)), axis)
            b.emit(f"{pair} = tl.cat({x}, {y}, dim={axis})")
            b.emit(f"{pair} = tl.flip({pair}, {b.rng.randrange(len(double))})")
            b.emit(f"{x}, {y} = tl.split(tl.permute(tl.reshape({pair}, {halves}), {order}))")
        else:
            b.emit(f"{x}, {y} = {y}, tl.flip({x}, {b.rng.randrange(len(shape))})")

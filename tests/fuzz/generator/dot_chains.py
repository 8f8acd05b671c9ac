"""Loops of two products between which tiles are taken apart, turned, grouped and put together again.

    for k in range(n):
        s = tl.dot(x, y)                                            x and y are of the iteration
        low, high = tl.split(tl.reshape(s, (M, N // 2, 2)))         rotated pairs, halves, groups of columns, sums
        s = tl.interleave(-high, low)
        acc = tl.dot(tl.clamp(s * 0.125, -64.0, 64.0).to(tl.float16), z, acc)

Sums are chosen between by tiles and by numbers, change places, and are batches at times.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.control import nested
from tests.fuzz.generator.dot_loops import TYPES, Loop, loaded
from tests.fuzz.generator.dots import FORMATS, keywords

SIZES = (16, 32, 64)


@statement_of("dot")
def rearranged_between_products(b: Builder) -> None:
    nested(b)
    if b.depth > 2:
        raise Unfit
    dtype, (m, n, k, r) = b.rng.choice(TYPES), (b.rng.choice(SIZES) for _ in range(4))
    m = b.rng.choice((m, 64, 128))
    trips = b.rng.randint(0, 4)
    sums = [b.define(f"tl.zeros(({m}, {r}), tl.float32)", "float32", (m, r)) for _ in range(b.rng.choice((1, 2)))]
    kept = loaded(b, dtype, (n, r)) if b.chance(0.5) else None
    loop = Loop(dtype, m, n, b.name("k"), trips)
    bound = b.number("int32", trips) if b.chance(0.8) else trips
    hints = "".join(f", {hint}" for hint in b.rng.sample(HINTS, b.rng.choice((0, 0, 1, 2))))
    with b.block(f"for {loop.index} in tl.range(0, {bound}{hints}):"):
        x, y = loaded(b, dtype, (m, k), loop), loaded(b, dtype, (k, n), loop)
        s = b.define(f"tl.dot({x}, {y})", "float32", (m, n))
        for _ in range(b.rng.choice((1, 1, 2, 3))):
            s = b.rng.choice(REARRANGEMENTS)(b, s)
        p = b.define(f"tl.clamp({s} * 0.125, -64.0, 64.0).to(tl.{dtype})", dtype, (m, n))
        z = kept or loaded(b, dtype, (n, r), loop)
        b.emit(f"{sums[0]} = tl.dot({p}, {z}, {sums[0]})" if b.chance(0.7) else f"{sums[0]} += tl.dot({p}, {z})")
        _choose(b, loop, sums, s)


HINTS = (
    "num_stages=3",
    "loop_unroll_factor=2",
    "flatten=True",
    "warp_specialize=True",
    "disallow_acc_multi_buffer=True",
)


def _choose(b: Builder, loop: Loop, sums: list[Value], s: Value) -> None:
    """Which sums go on, and how."""
    total, other = sums[0], sums[-1]
    row = f"(tl.max({s}, 1) > 0)[:, None]"
    ways = (
        f"{total}, {other} = {other}, {total}",
        f"{total} = tl.where({row}, {total}, {other} * 0.5)",
        f"{total} = tl.where({loop.index} % 2 == 0, {total}, -{other})",
        f"{other} = {total} if {loop.index} > 0 else {other}",
        f"{total} = tl.where({row}, {total}, 0.0)",
        "pass",
    )
    b.emit(b.rng.choice(ways))


# -- (m, n) -> (m, n)


def _halves(b: Builder, s: Value) -> Value:
    m, n = s.shape
    low, high = b.name(), b.name()
    b.emit(f"{low}, {high} = tl.split(tl.permute(tl.reshape({s}, ({m}, 2, {n // 2})), (0, 2, 1)))")
    parts = b.rng.choice((f"{high}, {low}", f"{low} - {high}, {low} + {high}", f"-{high}, {low}"))
    return b.define(f"tl.reshape(tl.permute(tl.join({parts}), (0, 2, 1)), ({m}, {n}))", s.dtype, s.shape)


def _pairs(b: Builder, s: Value) -> Value:
    m, n = s.shape
    even, odd = b.name(), b.name()
    b.emit(f"{even}, {odd} = tl.split(tl.reshape({s}, ({m}, {n // 2}, 2)))")
    return b.define(b.rng.choice((f"tl.interleave(-{odd}, {even})", f"tl.cat({even}, {odd}, dim=1)")), s.dtype, s.shape)


def _groups(b: Builder, s: Value) -> Value:
    """Of each group of columns, or of rows, what is over its largest."""
    m, n = s.shape
    size, of_rows = b.rng.choice((2, 8, 16)), b.chance(0.4)
    grouped = (m // size, size, n) if of_rows else (m, n // size, size)
    axis, index = (1, "[:, None, :]") if of_rows else (2, "[:, :, None]")
    g = b.define(f"tl.reshape({s}, {shape_text(grouped)})", s.dtype, grouped)
    word = b.rng.choice(("max", "min", "sum"))
    return b.define(f"tl.reshape({g} - tl.{word}({g}, {axis}){index}, ({m}, {n}))", s.dtype, s.shape)


def _blocks(b: Builder, s: Value) -> Value:
    """Rows, or columns, of which blocks change places."""
    m, n = s.shape
    size = b.rng.choice((2, 4, 16))
    if b.chance(0.5):
        return b.define(
            f"tl.reshape(tl.permute(tl.reshape({s}, ({m // size}, {size}, {n})), (1, 0, 2)), ({m}, {n}))",
            s.dtype,
            s.shape,
        )
    return b.define(
        f"tl.reshape(tl.permute(tl.reshape({s}, ({m}, {n // size}, {size})), (0, 2, 1)), ({m}, {n}))", s.dtype, s.shape
    )


def _turned(b: Builder, s: Value) -> Value:
    m, n = s.shape
    turned = b.define(f"tl.trans({s})", s.dtype, (n, m))
    return b.define(
        f"tl.reshape({turned}, ({m}, {n}))" if b.chance(0.5) else f"tl.trans({turned} + 1)", s.dtype, s.shape
    )


def _with_rows(b: Builder, s: Value) -> Value:
    axis = b.rng.choice((0, 1))
    index = "[None, :]" if axis == 0 else "[:, None]"
    word, symbol = b.rng.choice(("max", "min", "sum")), b.rng.choice("+-")
    return b.define(f"{s} {symbol} tl.{word}({s}, {axis}){index}", s.dtype, s.shape)


def _running(b: Builder, s: Value) -> Value:
    reverse = ", reverse=True" if b.chance(0.4) else ""
    return b.define(f"tl.cumsum({s}, {b.rng.choice((0, 1))}{reverse}) * 0.0625", s.dtype, s.shape)


def _causal(b: Builder, s: Value) -> Value:
    m, n = s.shape
    return b.define(
        f"tl.where(tl.arange(0, {m})[:, None] >= tl.arange(0, {n})[None, :], {s}, {b.rng.choice(('0.0', '-1.0'))})",
        s.dtype,
        s.shape,
    )


def _gathered(b: Builder, s: Value) -> Value:
    """The columns of another order, the same in each row or not."""
    m, n = s.shape
    columns = f"(tl.arange(0, {n})[None, :] ^ {b.rng.randrange(n)})"
    rows = b.rng.choice((f"tl.zeros(({m}, 1), tl.int32)", f"(tl.arange(0, {m})[:, None] & {n - 1})"))
    return b.define(f"tl.gather({s}, {columns} ^ {rows}, 1)", s.dtype, s.shape)


REARRANGEMENTS = (_halves, _pairs, _groups, _blocks, _turned, _with_rows, _running, _causal, _gathered)


# -- others


@statement_of("dot")
def batches_in_a_loop(b: Builder) -> None:
    """acc += a @ b over K, of a batch, whose operands are loaded in either order, or one of which is repeated."""
    if b.depth > 2:
        raise Unfit
    dtype, count = b.rng.choice(("float16", "bfloat16", "float32", "int8")), b.rng.choice((1, 2, 4))
    m, n, k = b.rng.choice((16, 32)), b.rng.choice((16, 32)), 32
    result = "int32" if dtype == "int8" else "float32"
    trips = b.rng.randint(0, 4)
    loop = Loop(dtype, m, n, b.name("k"), trips)
    acc = b.define(f"tl.zeros(({count}, {m}, {n}), tl.{result})", result, (count, m, n))
    with b.block(f"for {loop.index} in range({b.number('int32', trips) if b.chance(0.7) else trips}):"):
        x = loaded(b, dtype, (count, m, k), loop)
        if b.chance(0.3):
            y = b.define(
                f"tl.broadcast_to({loaded(b, dtype, (k, n), loop)}[None, :, :], ({count}, {k}, {n}))",
                dtype,
                (count, k, n),
            )
        elif b.chance(0.5):
            y = b.define(f"tl.permute({loaded(b, dtype, (count, n, k), loop)}, (0, 2, 1))", dtype, (count, k, n))
        else:
            y = loaded(b, dtype, (count, k, n), loop)
        b.emit(f"{acc} = tl.dot({x}, {y}, {acc}{keywords(b, dtype, result)})")
        if b.chance(0.3):
            b.emit(f"{acc} = tl.where((tl.arange(0, {count}) == {loop.index})[:, None, None], -{acc}, {acc})")
    if b.chance(0.4):
        b.define(f"tl.sum({acc}, 0)", result, (m, n))


@statement_of("dot")
def scaled_loop(b: Builder) -> None:
    """acc += of dot_scaled over K; scales of the iteration's, or of all."""
    if b.depth > 2:
        raise Unfit
    left, right = (b.rng.choice(tuple(FORMATS)) for _ in range(2))
    m, n, k, trips = b.rng.choice((16, 64, 128)), b.rng.choice((16, 32)), b.rng.choice((64, 128)), b.rng.randint(0, 3)
    loop = Loop(left, m, n, b.name("k"), trips)
    acc = b.define(f"tl.zeros(({m}, {n}), tl.float32)", "float32", (m, n))
    kept = _scale(b, m, k, None) if b.chance(0.3) else None
    with b.block(f"for {loop.index} in range({b.number('int32', trips) if b.chance(0.7) else trips}):"):
        x = loaded(b, FORMATS[left][0], (m, k // FORMATS[left][1]), loop)
        y = loaded(b, FORMATS[right][0], (k // FORMATS[right][1], n), loop)
        scales = [kept or _scale(b, m, k, loop), _scale(b, n, k, loop)]
        call = f'tl.dot_scaled({x}, {scales[0]}, "{left}", {y}, {scales[1]}, "{right}"'
        b.emit(f"{acc} = {call}, {acc})" if b.chance(0.7) else f"{acc} += {call})")


def _scale(b: Builder, rows: int, k: int, loop: Loop | None) -> str:
    if b.chance(0.25):
        return "None"
    shape = (rows, k // 32)
    return str(b.define(f"{loaded(b, 'uint8', shape, loop)} % 8 + 124", "uint8", shape))

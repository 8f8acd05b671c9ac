"""Tensor descriptors: blocks loaded inside, across and outside of the edges; stored; reduced into memory."""

from __future__ import annotations

from tests.fuzz.case import BITS
from tests.fuzz.generator.builder import FP8, Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import hints

DTYPES = ("float32", "float16", "int32", "int8", "uint8", "bfloat16", "int64", "uint32", "float64", "int16", "float8e5")
REDUCED = {
    "add": ("int32", "uint32", "uint64", "float32", "float16", "bfloat16"),
    "min": ("int32", "uint32", "int64", "uint64", "float16", "bfloat16"),
    "max": ("int32", "uint32", "int64", "uint64", "float16", "bfloat16"),
    "and": ("int32", "uint32", "int64", "uint64"),
    "or": ("int32", "uint32", "int64", "uint64"),
    "xor": ("int32", "uint32", "int64", "uint64"),
}


def block_shape(b: Builder, dtype: str) -> tuple[int, ...]:
    """With 16 bytes at least in the last dimension."""
    least = max(1, 128 // BITS[dtype])
    rank = b.rng.choice((1, 2, 2, 2, 3))
    return (*(b.rng.choice((1, 2, 4, 8)) for _ in range(rank - 1)), least * b.rng.choice((1, 1, 2, 4)))


def described(b: Builder, dtype: str, block: tuple[int, ...], fill: str | None, prefix: str) -> tuple[str, list[int]]:
    """A descriptor of a part of each program's own, and the sizes, some of which are no multiples of the block's."""
    sizes = [extent * b.rng.choice((1, 2)) - b.rng.choice((0, 0, min(1, extent - 1))) for extent in block[:-1]]
    row = block[-1] * b.rng.choice((1, 2))
    sizes.append(row - b.rng.choice((0, 0, 1)))
    strides = [row]
    for size in reversed(sizes[1:-1]):
        strides.insert(0, strides[0] * size)
    strides = [*strides, 1] if len(sizes) > 1 else [1]
    size = (strides[0] * sizes[0] if len(sizes) > 1 else row) + 16
    size += -size % 64
    name = b.array(dtype, size * b.programs, fill, prefix=prefix)
    texts = [str(b.number("int32", size)) if b.chance(0.4) else str(size) for size in sizes]
    descriptor = b.name("d")
    base = f"{name} + pid * {size}" if b.programs > 1 or b.chance(0.3) else name
    padding = ', padding_option="nan"' if dtype in ("float32", "float16") and b.chance(0.2) and prefix == "x" else ""
    b.emit(
        f"{descriptor} = tl.make_tensor_descriptor({base}, shape=[{', '.join(texts)}], "
        f"strides=[{', '.join(map(str, strides))}], block_shape={list(block)}{padding})"
    )
    return descriptor, sizes


def place(b: Builder, block: tuple[int, ...], sizes: list[int], least: int) -> str:
    found = []
    for extent, size in zip(block, sizes, strict=True):
        offset = b.rng.choice((0, 0, extent, size // 2, 1, -1, -extent, size))
        found.append(str(max(offset, least * 1000)))
    return f"[{', '.join(found)}]"


@statement_of("descriptor")
def load_block(b: Builder) -> None:
    dtype = b.rng.choice(DTYPES)
    block = block_shape(b, dtype)
    descriptor, sizes = described(b, dtype, block, None, "x")
    for _ in range(b.rng.choice((1, 1, 2))):
        b.define(f"{descriptor}.load({place(b, block, sizes, -1)})", dtype, block)


@statement_of("descriptor")
def store_block(b: Builder) -> None:
    value = b.pick(lambda v: v.dtype in DTYPES and v.shape and v.shape[-1] * BITS[v.dtype] >= 128 and len(v.shape) <= 4)
    descriptor, sizes = described(b, value.dtype, value.shape, "poison", "out")
    b.emit(f"{descriptor}.store({place(b, value.shape, sizes, 0)}, {value})")


@statement_of("descriptor")
def reduce_block(b: Builder) -> None:
    kind = b.rng.choice(list(REDUCED))
    dtype = b.rng.choice(REDUCED[kind])
    if b.depth > 2 or dtype in FP8:
        raise Unfit
    block = block_shape(b, dtype)
    value: Value = b.value(dtype, block)
    descriptor, sizes = described(b, dtype, block, "small", "io")
    b.emit(f"{descriptor}.atomic_{kind}({place(b, block, sizes, 0)}, {value})")


@statement_of("descriptor")
def block_loop(b: Builder) -> None:
    """Blocks of rows, one after the other."""
    if b.depth > 2:
        raise Unfit
    dtype = b.rng.choice(("float32", "float16", "int32", "int8"))
    block = block_shape(b, dtype)
    descriptor, sizes = described(b, dtype, block, None, "x")
    total = b.define(f"tl.zeros({block}, dtype=tl.{dtype})", dtype, block)
    counter = b.name("k")
    with b.block(f"for {counter} in range({b.rng.choice((1, 2, 3))}):"):
        where = ", ".join([f"{counter} * {block[0]}", *["0"] * (len(block) - 1)])
        b.emit(f"{total} = {total} + {descriptor}.load([{where}])")


@statement_of("descriptor")
def rows_at_offsets(b: Builder) -> None:
    """Rows are gathered from one matrix and scattered into another, each row once."""
    dtype = b.rng.choice(DTYPES)
    width, count = max(1, 128 // BITS[dtype]) * b.rng.choice((1, 2)), b.rng.choice((1, 2, 4, 8, 16, 32))
    source, sizes = described(b, dtype, (1, width), None, "x")
    rows = b.define(
        f"tl.arange(0, {count}) * {b.rng.choice((1, 2, -1))} + {b.rng.choice((0, 1, -1))}", "int32", (count,)
    )
    column = b.rng.choice((0, 0, 1, -1, width))
    value = b.define(f"{source}.gather({rows}, {column})", dtype, (count, width))
    target, sizes = described(b, dtype, (1, width), "poison", "out")
    b.emit(f"{target}.scatter({value}, {rows}, {max(column, 0)})")


@statement_of("descriptor")
def exchanged(b: Builder) -> None:
    """Descriptors that a loop carries, one of which a branch may replace."""
    if b.depth > 2:
        raise Unfit
    dtype = b.rng.choice(("float32", "int32", "int8"))
    block = block_shape(b, dtype)
    (one, _), (two, _) = (described(b, dtype, block, None, "y") for _ in range(2))
    total = b.define(f"tl.zeros({block}, dtype=tl.{dtype})", dtype, block)
    counter = b.name("k")
    with b.block(f"for {counter} in range({b.rng.choice((1, 2, 3))}):"):
        b.emit(f"{total} = {total} + {one}.load([{', '.join([counter, *['0'] * (len(block) - 1)])}])")
        if b.chance(0.5):
            b.emit(f"{one}, {two} = {two}, {one}")
        else:
            with b.block(f"if {counter} > 0:"):
                b.emit(f"{one} = {two}")


@statement_of("descriptor")
def product_of_rows(b: Builder) -> None:
    """acc += of rows gathered by number and a block, over K; the sums are scattered to rows of their own."""
    if b.depth > 1:
        raise Unfit
    dtype = b.rng.choice(("float16", "bfloat16", "float32", "int8"))
    result = "int32" if dtype == "int8" else "float32"
    m, n, k, rows = b.rng.choice((16, 64)), b.rng.choice((16, 32)), 32, b.rng.choice((8, 33))
    trips = b.rng.randint(1, 3)
    x, y = b.array(dtype, rows * k * trips, "small"), b.array(dtype, k * trips * n, "small")
    out = b.array(result, (m + 2) * n * b.programs, "poison", prefix="out")
    numbers = b.array("int32", m * b.programs, "index", rows + b.rng.choice((0, 2)), "part")
    places = b.array("int32", m * b.programs, "unique", m, "part")
    names, counter = [b.name("d") for _ in range(3)], b.name("k")
    made = ((x, rows, k * trips, 1, k), (y, k * trips, n, k, n), (f"{out} + pid * {(m + 2) * n}", m - 1, n, 1, n))
    for name, (base, height, width, *block) in zip(names, made, strict=True):
        b.emit(f"{name} = tl.make_tensor_descriptor({base}, [{height}, {width}], [{width}, 1], {block})")
    which, where = (
        b.define(f"tl.load({array} + pid * {m} + tl.arange(0, {m}))", "int32", (m,)) for array in (numbers, places)
    )
    acc = b.define(f"tl.zeros(({m}, {n}), tl.{result})", result, (m, n))
    precision = ', input_precision="ieee"' if dtype == "float32" else ""
    with b.block(f"for {counter} in tl.range(0, {b.number('int32', trips)}, {hints(b)}):"):
        left, right = f"{names[0]}.gather({which}, {counter} * {k})", f"{names[1]}.load([{counter} * {k}, 0])"
        b.emit(f"{acc} = tl.dot({left}, {right}, {acc}{precision})")
    b.emit(f"{names[2]}.scatter({acc}, {where}, 0)")

"""Tiles that end after an array does, of which the last program has a part, or none: one mask for all that is accessed.

The arrays are as long as the mask says, so that what is accessed without it is out of bounds.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import Builder, Value, statement_of

LARGEST = 2**31 - 1


@statement_of("tail")
def tail(b: Builder) -> None:
    block = b.rng.choice((8, 64, 128, 256, 512, 1024))
    length = block * b.programs
    n = b.rng.choice(
        (length - 1, length - 3, length - block // 2 - 1, length - block, length, block + 1, 1, 0, -3, LARGEST)
    )
    size = max(min(n, length), 1)
    limit = b.kept_number("int32", n) if b.chance(0.85) else n
    terms = [f"pid * {block}" if b.chance(0.8) else f"{block} * pid", f"tl.arange(0, {block})"]
    index = b.use(b.define(" + ".join(terms if b.chance(0.8) else terms[::-1]), "int32", (block,), "i"))
    inside = b.use(b.define(f"{index} < {limit}", "int1", (block,), "m"))
    loaded = [_load(b, index, inside, size) for _ in range(b.rng.choice((1, 2, 2, 3, 9)))]
    if b.chance(0.3):
        b.statement()
    for value in loaded if b.chance(0.5) else loaded[:1]:
        _store(b, b.converted(value, value.dtype), index, inside, size)


def _load(b: Builder, index: Value, inside: Value, size: int) -> Value:
    """Of neighbours, of what lies as far apart as they say, of a row for each of them."""
    dtype, place = b.dtype(("float32", "float16", "int32", "int8", "int64")), f"{index}"
    kind = b.rng.choice(("plain", "plain", "turned", "gathered", "columns"))
    if kind == "turned":
        place = f"({size - 1} - {index})"
    elif kind == "gathered":
        numbers = b.array("int32", size, "index", size, "perm")
        place = b.use(b.define(f"tl.load({numbers} + {index}, mask={inside}, other=0)", "int32", index.shape)).text
    chosen = _mask(b, index, inside)
    other = f", other={b.literal(dtype)}" if b.chance(0.7) else ""
    if kind == "columns":
        columns = b.rng.choice((2, 4))
        array = b.array(dtype, size * columns)
        pointers = f"{array} + {index}[:, None] * {columns} + tl.arange(0, {columns})[None, :]"
        tile = b.define(f"tl.load({pointers}, mask={chosen}[:, None], other=0)", dtype, (*index.shape, columns))
        return b.define(f"tl.max({b.use(tile)}, 1)", *_maximum(dtype, index.shape))
    array = b.array(dtype, size)
    value = b.define(f"tl.load({array} + {place}, mask={chosen}{other})", dtype, index.shape)
    if b.chance(0.2):
        b.use(b.define(f"tl.sum(tl.where({inside}, {value} > 0, {inside}).to(tl.int32))", "int32", ()))
    return value


def _maximum(dtype: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    return {"int8": "int32", "float16": "float32"}.get(dtype, dtype), shape


def _mask(b: Builder, index: Value, inside: Value) -> Value:
    """That of the tile, alone or with more."""
    if b.chance(0.7):
        return inside
    more = b.rng.choice((f"({index} % 3 != 1)", f"({index} >= 5)", f"({index} < {b.kept_number('int32', 9)})"))
    return b.use(b.define(f"{inside} & {more}", "int1", index.shape, "m"))


def _store(b: Builder, value: Value, index: Value, inside: Value, size: int) -> None:
    array = b.array(value.dtype, size, b.rng.choice(("poison", "normal")), prefix="out")
    chosen = _mask(b, index, inside)
    if b.chance(0.2):
        b.emit(f"tl.store({array} + {index}, tl.load({array} + {index}, mask={inside}), mask={inside})")
    b.emit(f"tl.store({array} + {index}, {b.use(value)}, mask={chosen})")
    if b.chance(0.2):
        b.define(f"tl.load({array} + {index}, mask={inside}, other={b.literal(value.dtype)})", value.dtype, index.shape)

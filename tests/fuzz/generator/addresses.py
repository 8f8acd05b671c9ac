"""Addresses: offsets of 64 bits that come near 2**31 and 2**32, of narrow types, pointers as numbers and in tiles.

    p = x + pid * 64 + 8589934592                         out of the array, and back
    tl.load(p + (i.to(tl.int64) - 8589934592))
    tl.load(tl.trans(tl.where(m, x + i, y + i)))

All that is loaded or stored lies in the program's part of its array.
"""

from __future__ import annotations

from tests.fuzz.generator.builder import DTYPES, FP8, Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.memory import mask, offsets, size_of, store

FAR = (2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**33 + 5, -(2**31), -(2**31) - 1, -(2**32), 2**40)
FAR_STRIDES = (2**30, -(2**30), 2**29, 2**31 - 1, -(2**31), 2**28 + 2**30)


def _known(b: Builder, value: int) -> str:
    """A number of 64 bits: constant or argument."""
    return str(b.number("int64", value)) if b.chance(0.5) else f"tl.full((), {value}, tl.int64)"


def _same_offset(b: Builder, index: Value, size: int) -> str:
    """The index, by way of numbers that 32 bits do not hold, or of another type."""
    far = b.rng.choice(FAR)
    wide = f"{index}.to(tl.int64)"
    texts = [
        f"({wide} + {_known(b, far)}) - {_known(b, far)}",
        f"({wide} * {_known(b, 2**31 + 1)}) % {_known(b, 2**31)}",
        f"({wide} << 33) >> 33",
        f"({wide} * {_known(b, 2**32)} + 5) // {_known(b, 2**32)}",
        f"({wide} | {_known(b, 2**35)}) & {_known(b, 2**33 - 1)}",
        f"{index}.to(tl.uint32) + {_known_word(b, 2**32 - 6)} - {_known_word(b, 2**32 - 6)}",
        f"({index}.to(tl.uint64) - 7 + 7)",
        f"{index}.to(tl.uint32)",
        f"({index}.to(tl.uint32) * 3 // 3)",
        f"(({index} - {size}).to(tl.int64) + {size})",
        f"tl.where({wide} * {_known(b, 2**31)} < {2**31 * (size // 2)}, {index}, {size} - ({size} - {index}))",
    ]
    texts += [f"{index}.to(tl.uint8)"] if size <= 256 else [f"{index}.to(tl.uint16)"]
    texts += [f"{index}.to(tl.int8)"] if size <= 128 else [f"{index}.to(tl.int16)"]
    return f"({b.rng.choice(texts)})"


def _known_word(b: Builder, value: int) -> str:
    return str(b.number("uint32", value)) if b.chance(0.5) else f"tl.full((), {value}, tl.uint32)"


def _part(b: Builder, dtype: str, size: int, fill: str | None = None, prefix: str = "x") -> str:
    return f"{b.array(dtype, size * b.programs, fill, prefix=prefix)} + pid * {size}"


@statement_of("address")
def far_offset(b: Builder) -> None:
    """Loaded, and stored to, by the same offset computed in two ways."""
    dtype, shape = b.dtype(), b.shape(1)
    size = size_of(shape)
    index = b.use(b.define(f"{offsets(b, shape, unique=True)}.to(tl.int32)", "int32", shape, "i"))
    chosen = f", mask={mask(b, shape, index)}, other=0.0" if b.chance(0.3) else ""
    value = b.define(f"tl.load({_part(b, dtype, size)} + {_same_offset(b, index, size)}{chosen})", dtype, shape)
    if b.chance(0.6):
        out = _part(b, dtype, size, "poison", "out")
        b.emit(f"tl.store({out} + {_same_offset(b, index, size)}, {b.use(value)})")


@statement_of("address")
def far_base(b: Builder) -> None:
    """A pointer moved out of its array, which a loop or a branch brings back in steps."""
    dtype, shape = b.dtype(), b.shape()
    size, far, pointer = size_of(shape), b.rng.choice(FAR), b.name("p")
    b.emit(f"{pointer} = {_part(b, dtype, size)} + {_known(b, far)}")
    if b.chance(0.5):
        b.define(f"tl.load({pointer} + ({offsets(b, shape)} - {_known(b, far)}))", dtype, shape)
        return
    with b.block(f"for {b.name('k')} in range({b.number('int32', 3) if b.chance(0.5) else 3}):"):
        b.emit(f"{pointer} -= {_known(b, far)}")
        b.emit(f"{pointer} += {_known(b, far - far // 4)}" if far % 4 == 0 else "pass")
    back = -far + 3 * far - (3 * (far - far // 4) if far % 4 == 0 else 0)
    b.define(f"tl.load({pointer} + ({offsets(b, shape)} + {_known(b, back)}))", dtype, shape)


@statement_of("address")
def pointers_as_numbers(b: Builder) -> None:
    """There and back, with what is added in bytes."""
    dtype, shape = b.rng.choice(("int8", "int32", "float32", "float16", "int64", "uint16")), b.shape()
    size, bytes_ = size_of(shape), {"int8": 1, "float16": 2, "uint16": 2, "int64": 8}.get(dtype, 4)
    base, kind = _part(b, dtype, size), b.rng.choice(("int64", "uint64"))
    address = f"({base} + {offsets(b, shape)}).to(tl.{kind})"
    if shape and b.chance(0.7):
        address = f"({base}).to(tl.{kind}) + {offsets(b, shape)}.to(tl.{kind}) * {bytes_}"
    b.define(f"tl.load(({address}).to(tl.pointer_type(tl.{dtype})))", dtype, shape)


@statement_of("address")
def tiles_of_pointers(b: Builder) -> None:
    """Chosen of two arrays, turned, reshaped, joined, before they are loaded from or stored to."""
    dtype, shape = b.dtype(DTYPES), b.shape(1, 3)
    if dtype in FP8:
        raise Unfit
    size, pointers = size_of(shape), b.name("p")
    index, condition = offsets(b, shape, unique=True), b.value("int1", shape if b.chance(0.7) else ())
    b.emit(f"{pointers} = {_part(b, dtype, size)} + {index}")
    if b.chance(0.6):
        b.emit(f"{pointers} = tl.where({condition}, {pointers}, {_part(b, dtype, size)} + {index})")
    kind = b.rng.choice(("plain", "trans", "ravel", "join", "loop"))
    if kind == "trans" and len(shape) > 1:
        b.define(f"tl.load(tl.trans({pointers}))", dtype, (*shape[:-2], shape[-1], shape[-2]))
    elif kind == "join" and size <= 256:
        other = f"{_part(b, dtype, size)} + {index}"
        b.define(f"tl.load(tl.join({pointers}, {other}))", dtype, (*shape, 2))
    elif kind == "loop":
        _exchanged(b, dtype, shape, pointers, index)
    else:
        b.define(f"tl.load(tl.reshape({pointers}, {shape_text((size,))}))", dtype, (size,))


def _exchanged(b: Builder, dtype: str, shape: tuple[int, ...], pointers: str, index: Value) -> None:
    """Two tiles of pointers that a loop carries and a condition exchanges, one lane or all."""
    size, other, counter = size_of(shape), b.name("p"), b.name("k")
    b.emit(f"{other} = {_part(b, dtype, size)} + {index}")
    last = b.define(f"tl.load({other})", dtype, shape)
    with b.block(f"for {counter} in range({b.number('int32', b.rng.randint(0, 3))}):"):
        b.emit(f"{last} = tl.load({pointers})")
        if b.chance(0.5):
            odd = f"(({index} + {counter}) % 2 == 0)"
            swapped = f"tl.where({odd}, {pointers}, {other}), tl.where({odd}, {other}, {pointers})"
            b.emit(f"{pointers}, {other} = {swapped}")
        else:
            b.emit(f"{pointers}, {other} = {other}, {pointers}")
    store(b, last)


@statement_of("address")
def far_strides(b: Builder) -> None:
    """Programs and iterations so far apart that their offsets overflow, and come back into the array; what does not is
    masked off. The offset is computed, or carried, and rows go either way.
    """
    if b.depth > 2:
        raise Unfit
    dtype, (rows, columns) = b.dtype(), b.shape(2, 2)
    size, index, first = rows * columns, b.name("k"), b.name("o")
    whole, row = 2 * size, b.rng.choice((columns, -columns, 1))
    array = b.array(dtype, whole)
    apart, step = (b.number("int32", b.rng.choice((*FAR_STRIDES, columns, -columns))) for _ in range(2))
    b.emit(f"{first} = pid * {apart} + {b.rng.choice((0, 1, size))}")
    tile = f"tl.arange(0, {rows})[:, None] * {row} + tl.arange(0, {columns})[None, :]"
    begin, trips, is_carried = b.rng.choice((0, 0, -2, 3)), b.rng.randint(0, 5), b.chance(0.4)
    by = b.rng.choice((1, 1, -1, 2))
    bounds = (
        f"{begin}, {b.number('int32', begin + trips * by)}, {by if by < 0 or b.chance(0.5) else b.number('int32', by)}"
    )
    last = b.define(f"tl.full({shape_text((rows, columns))}, 0, tl.{dtype})", dtype, (rows, columns))
    with b.block(f"for {index} in range({bounds}):"):
        at = b.define(
            f"{first} + {tile}" if is_carried else f"{first} + {index} * {step} + {tile}", "int32", last.shape
        )
        inside = b.rng.choice((f"({at} >= 0) & ({at} < {whole})", f"{at}.to(tl.uint32) < {whole}"))
        b.emit(f"{last} = tl.load({array} + {at}, mask={inside}, other={last})")
        if is_carried:
            b.emit(f"{first} += {step}")

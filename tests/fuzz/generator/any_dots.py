"""Products of any sizes whose operands come by every way into a register, with any sum before and anything after.

    for k in tl.range(0, n, num_stages=3):
        x = tl.make_block_ptr(...), tl.load(..., boundary_check=(0, 1))      blocks, descriptors, rows by number,
        y = tl.trans(tl.broadcast_to(tl.load(...), (16, 8)))                 masks with another number, tiles computed,
        acc = tl.dot(x, y, acc)                                              repeated, chosen, gathered, converted
    tl.atomic_add(out + ..., tl.sum(acc, 1))

Nearly all numbers are small and whole, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.case import BITS
from tests.fuzz.generator.builder import FP8, Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.control import hints
from tests.fuzz.generator.dots import FORMATS, draw_type, keywords, result_type
from tests.fuzz.generator.memory import size_of, store, strided

SIZES = (1, 2, 4, 8, 16, 16, 32, 32, 64, 128, 256)
MOST_ELEMENTS, MOST_PRODUCTS = 1 << 13, 1 << 17


@dataclass(frozen=True)
class Round:
    """An iteration of a loop, or what is outside of one."""

    index: str = "0"
    trips: int = 1

    def array(self, b: Builder, dtype: str, size: int) -> str:
        """Where the part of this iteration begins in a new array."""
        whole = size * max(self.trips, 1)
        fill = "normal" if b.chance(0.1) else "small"
        return f"{b.array(dtype, whole * b.programs, fill)} + pid * {whole} + {self.index} * {size}"


Shape = tuple[int, ...]
Source = Callable[[Builder, str, Shape, Round], str]


def sizes(b: Builder, *choices: tuple[int, ...]) -> tuple[int, int, int]:
    while True:
        m, n, k = (b.rng.choice(among) for among in choices)
        if max(m * k, k * n, m * n) <= MOST_ELEMENTS and m * n * k <= MOST_PRODUCTS:
            return m, n, k


@statement_of("any dot")
def any_product(b: Builder) -> None:
    """Alone, or in a loop; of a batch at times."""
    if b.depth > 2:
        raise Unfit
    dtype, (m, n, k) = draw_type(b), sizes(b, SIZES, SIZES, SIZES)
    batch = b.rng.choice(((2,), (4,), (1, 2))) if b.chance(0.1) and m * n * k <= MOST_PRODUCTS // 4 else ()
    result, other = result_type(b, dtype), b.rng.choice(FP8) if dtype in FP8 and b.chance(0.3) else dtype

    def multiply(round_: Round, acc: str) -> str:
        x, y = operand(b, dtype, (*batch, m, k), round_), operand(b, other, (*batch, k, n), round_)
        return f"tl.dot({x}, {y}{acc}{keywords(b, dtype, result)})"

    summed(b, multiply, result, (*batch, m, n))


@statement_of("any dot")
def any_scaled_product(b: Builder) -> None:
    """Of every two formats, with scales of 16 or 32 numbers, of both types, whole, broadcast, or none."""
    if b.depth > 2:
        raise Unfit
    formats, (m, n, k) = b.rng.choices(tuple(FORMATS), k=2), sizes(b, SIZES, SIZES, (32, 64, 128, 256))
    packs = [format != "e2m1" or extent == 1 or b.chance(0.7) for format, extent in zip(formats, (m, n), strict=True)]

    def multiply(round_: Round, acc: str) -> str:
        operands = []
        for format, shape, k_axis, pack in zip(formats, ([m, k], [k, n]), (1, 0), packs, strict=True):
            dtype, per_element = FORMATS[format]
            shape[k_axis if pack else 1 - k_axis] //= per_element
            operands.append(operand(b, dtype, tuple(shape), round_))
        x, y = operands
        by, of = (scale(b, format, (rows, k), round_) for format, rows in zip(formats, (m, n), strict=True))
        extra = "".join(f", {s}_k_pack=False" for s, pack in zip(("lhs", "rhs"), packs, strict=True) if not pack)
        return f'tl.dot_scaled({x}, {by}, "{formats[0]}", {y}, {of}, "{formats[1]}"{acc}{extra})'

    summed(b, multiply, "float32", (m, n))


def scale(b: Builder, format: str, shape: tuple[int, int], round_: Round) -> str:
    if b.chance(0.3):
        return "None"
    rows, columns = shape[0], shape[1] // b.rng.choice((16, 32))
    if format not in ("bf16", "fp16") and b.chance(0.3):
        return operand(b, "float8e4nv", (rows, columns), round_)
    near_one = f"{operand(b, 'uint8', (rows, columns), round_)} % 8 + 124"
    return str(b.define(near_one, "uint8", (rows, columns)))


def summed(b: Builder, multiply: Callable[[Round, str], str], result: str, shape: Shape) -> None:
    """A product by itself, added to what there is, or to what a loop carries; and what comes of it."""
    start = b.rng.choice(("", "zeros", "full", "loaded", "product"))
    if start == "":
        acc = b.define(multiply(Round(), ""), result, shape)
    else:
        acc = b.define(_START[start](b, multiply, result, shape), result, shape)
        if b.chance(0.7):
            _loop(b, multiply, acc)
        else:
            b.emit(f"{acc} = {multiply(Round(), f', {acc}')}")
    for _ in range(b.rng.choice((0, 1, 1))):
        b.rng.choice(ENDS)(b, acc)


_START: dict[str, Callable[..., str]] = {
    "zeros": lambda b, multiply, result, shape: f"tl.zeros({shape_text(shape)}, tl.{result})",
    "full": lambda b, multiply, result, shape: f"tl.full({shape_text(shape)}, {b.rng.choice((3, -1))}, tl.{result})",
    "loaded": lambda b, multiply, result, shape: operand(b, result, shape, Round()),
    "product": lambda b, multiply, result, shape: multiply(Round(), ""),
}


def _loop(b: Builder, multiply: Callable[[Round, str], str], acc: Value) -> None:
    round_ = Round(b.name("k"), b.rng.choice((0, 1, 1, 2, 3, 5)))
    bound = b.number("int32", round_.trips) if b.chance(0.7) else round_.trips
    options = b.rng.choice(("", f", num_stages={b.rng.randint(1, 5)}", f", {hints(b)}"))
    with b.block(f"for {round_.index} in tl.range(0, {bound}{options}):"):
        if b.chance(0.75):
            b.emit(f"{acc} = {multiply(round_, f', {acc}')}")
        else:
            b.emit(f"{acc} += {multiply(round_, '')}")
        if b.chance(0.2):
            row = f"{acc} > 0" if b.chance(0.5) else f"{round_.index} % 2 == 0"
            b.emit(f"{acc} = tl.where({row}, {acc}, -{acc})")


# -- operands: an expression of the type and shape


def operand(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """By one of the ways that can give it."""
    for _ in range(8):
        try:
            return str(b.define(b.rng.choice(SOURCES)(b, dtype, shape, round_), dtype, shape))
        except Unfit:
            continue
    return str(b.define(_by_pointers(b, dtype, shape, round_), dtype, shape))


def _by_pointers(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    order = list(range(len(shape)))
    if b.chance(0.4):
        order[-1], order[-2] = order[-2], order[-1]
    return f"tl.load({round_.array(b, dtype, size_of(shape))} + {strided(shape, order, b if b.chance(0.3) else None)})"


def _masked(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """Some rows or columns, or a stair, are another number."""
    rows, columns = indices(shape)
    limit = b.number("int32", b.rng.randint(0, max(shape[-2:])))
    inside = b.rng.choice((f"{rows} < {limit}", f"{columns} < {limit}", f"{rows} + {columns} < {limit}"))
    other = "0.0" if dtype in FP8 else b.rng.choice(("0", "1"))
    at = strided(shape, list(range(len(shape))))
    mask = f"tl.broadcast_to({inside}, {shape_text(shape)})"
    return f"tl.load({round_.array(b, dtype, size_of(shape))} + {at}, mask={mask}, other={other})"


def _by_block_pointer(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    _two_dimensions(shape)
    (m, n), cut = shape, [b.rng.choice((0, 0, 1, 3)) for _ in shape]
    extents = [str(b.number("int32", max(e - c, 1))) for e, c in zip(shape, cut, strict=True)]
    strides, order = ((n, 1), (1, 0)) if b.chance(0.6) else ((1, m), (0, 1))
    sizes = f"({', '.join(extents)}), {strides}, (0, 0), {shape}, {order}"
    block = f"tl.make_block_ptr({round_.array(b, dtype, m * n)}, {sizes})"
    return f'tl.load({block}, boundary_check=(0, 1), padding_option="zero")'


def _by_descriptor(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    described, columns = _described(b, dtype, shape, list(shape), round_)
    return f"{described}.load([0, {columns}])"


def _rows_by_number(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """Of a matrix with another number of rows, some of which are not there."""
    described, columns = _described(b, dtype, shape, [1, shape[1]], round_)
    factor, first = b.rng.choice((1, 3, -1)), b.rng.choice((0, 1, -2))
    return f"{described}.gather((tl.arange(0, {shape[0]}) * {factor} + {first}), {columns})"


def _described(b: Builder, dtype: str, shape: Shape, block: list[int], round_: Round) -> tuple[str, str]:
    """A descriptor, and the column at which this iteration's block begins."""
    _two_dimensions(shape)
    (m, n), trips = shape, max(round_.trips, 1)
    if n * BITS[dtype] < 128:
        raise Unfit
    name, descriptor = b.array(dtype, m * n * trips * b.programs, "small"), b.name("d")
    sizes = f"[{b.number('int32', max(m - b.rng.choice((0, 0, 1)), 1))}, {n * trips - b.rng.choice((0, 0, 1))}]"
    made = f"tl.make_tensor_descriptor({name} + pid * {m * n * trips}, {sizes}, [{n * trips}, 1], {block})"
    b.emit(f"{descriptor} = {made}")
    return descriptor, f"{round_.index} * {n}"


def _turned(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    return f"tl.trans({operand(b, dtype, (*shape[:-2], shape[-1], shape[-2]), round_)}{_last_two(shape)})"


def _last_two(shape: Shape) -> str:
    rank = len(shape)
    return "" if rank == 2 else f", {(*range(rank - 2), rank - 1, rank - 2)}"


def _broadcast(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """A row, a column, or a tile of all batches."""
    axis = b.rng.randrange(len(shape))
    one = tuple(1 if other == axis else extent for other, extent in enumerate(shape))
    return f"tl.broadcast_to({operand(b, dtype, one, round_)}, {shape_text(shape)})"


def _converted(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """From fewer or more bits."""
    stored = b.rng.choice(("int8", "int16", "float16", "float32"))
    if stored == dtype or dtype == "uint8":
        raise Unfit
    if dtype in FP8 and stored[0] == "i":
        return f"{operand(b, stored, shape, round_)}.to(tl.float32).to(tl.{dtype})"
    value = operand(b, stored, shape, round_)
    return f"(tl.clamp({value}, -9.0, 9.0) if {stored[0] == 'f'} else {value}).to(tl.{dtype})"


def _computed(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """From the indices of rows and columns, in registers."""
    rows, columns = indices(shape)
    text = f"({rows} * {b.rng.choice((1, 3))} + {columns} * 5 + {round_.index}) % 7"
    text = f"tl.broadcast_to({text}, {shape_text(shape)})"
    return f"{text}.to(tl.float32).to(tl.{dtype})" if dtype in FP8 else f"{text}.to(tl.{dtype})"


def _chosen(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    rows, columns = indices(shape)
    condition = b.rng.choice((f"{rows} >= {columns}", f"{columns} % 2 == 0", f"{rows} < {shape[-2] // 2}"))
    other = operand(b, dtype, shape, round_) if dtype in FP8 or b.chance(0.4) else "0"
    return f"tl.where({condition}, {operand(b, dtype, shape, round_)}, {other})"


def _gathered(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """In another order along one of the last two axes."""
    rows, columns = indices(shape)
    axis = len(shape) - b.rng.choice((1, 2))
    index = f"tl.broadcast_to(({rows} * 3 + {columns}) & {shape[axis] - 1}, {shape_text(shape)})"
    return f"tl.gather({operand(b, dtype, shape, round_)}, {index}, {axis})"


def _repeated(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """Rows that come again, or come around."""
    rows, columns = indices(shape)
    count = b.rng.choice((1, 3, max(shape[-2] // 2, 1)))
    at = f"tl.broadcast_to({rows} {b.rng.choice(('%', '//'))} {count} * {shape[-1]} + {columns}, {shape_text(shape)})"
    return f"tl.load({round_.array(b, dtype, size_of(shape[-2:]))} + {at})"


def _reshaped(b: Builder, dtype: str, shape: Shape, round_: Round) -> str:
    """From a row, or with groups that changed places."""
    size, extent = size_of(shape), shape[-1]
    if b.chance(0.5) or extent < 4:
        return f"tl.reshape(tl.load({round_.array(b, dtype, size)} + tl.arange(0, {size})), {shape_text(shape)})"
    value = operand(b, dtype, shape, round_)
    turned = f"tl.trans(tl.reshape({value}, ({size // extent}, 2, {extent // 2})), (0, 2, 1))"
    return f"tl.reshape({turned}, {shape_text(shape)})"


SOURCES: tuple[Source, ...] = (
    *(_by_pointers, _by_pointers, _by_pointers, _masked, _by_block_pointer, _by_descriptor, _rows_by_number),
    *(_turned, _broadcast, _converted, _computed, _chosen, _gathered, _repeated, _reshaped),
)


def _two_dimensions(shape: Shape) -> None:
    if len(shape) != 2:
        raise Unfit


def indices(shape: Shape) -> tuple[str, str]:
    """Of rows and of columns, to be broadcast."""
    before = "None, " * (len(shape) - 2)
    return f"tl.arange(0, {shape[-2]})[{before}:, None]", f"tl.arange(0, {shape[-1]})[{before}None, :]"


# -- what comes of a sum


def _reduced(b: Builder, acc: Value) -> None:
    axis = b.rng.randrange(len(acc.shape))
    word = b.rng.choice(("sum", "max", "min", "argmax"))
    dtype = "int32" if word == "argmax" else acc.dtype
    b.define(f"tl.{word}({acc}, {axis})", dtype, acc.shape[:axis] + acc.shape[axis + 1 :])


def _scanned(b: Builder, acc: Value) -> None:
    reverse = f", reverse={b.chance(0.5)}"
    b.define(f"tl.cumsum({acc}, {b.rng.randrange(len(acc.shape))}{reverse})", acc.dtype, acc.shape)


def _stored_turned(b: Builder, acc: Value) -> None:
    store(b, b.define(f"tl.trans({acc}{_last_two(acc.shape)})", acc.dtype, (*acc.shape[:-2], *acc.shape[:-3:-1])))


def _added_to_memory(b: Builder, acc: Value) -> None:
    """Rows to one row, or each element to its own."""
    if acc.dtype == "float64" and b.chance(0.5):
        raise Unfit
    size, (rows, columns) = size_of(acc.shape), indices(acc.shape)
    at = strided(acc.shape, list(range(len(acc.shape)))) if b.chance(0.5) else f"{rows} * 0 + {columns}"
    io = b.array(acc.dtype, size * b.programs, "small", prefix="io")
    b.emit(f"tl.atomic_add({io} + pid * {size} + tl.broadcast_to({at}, {shape_text(acc.shape)}), {acc})")


def _of_narrower(b: Builder, acc: Value) -> None:
    if acc.dtype == "int32":
        b.define(f"({acc} >> 2).to(tl.int8)", "int8", acc.shape)
    else:
        b.define(f"{acc}.to(tl.{b.rng.choice(('float16', 'bfloat16'))})", "float16", acc.shape)


def _stored_by_descriptor(b: Builder, acc: Value) -> None:
    _two_dimensions(acc.shape)
    (m, n), size = acc.shape, size_of(acc.shape)
    if n * BITS[acc.dtype] < 128:
        raise Unfit
    out, descriptor = b.array(acc.dtype, size * b.programs, "poison", prefix="out"), b.name("d")
    rows = b.number("int32", max(m - b.rng.choice((0, 1)), 1))
    made = f"tl.make_tensor_descriptor({out} + pid * {size}, [{rows}, {n - b.rng.choice((0, 1))}], [{n}, 1], {[m, n]})"
    b.emit(f"{descriptor} = {made}")
    b.emit(f"{descriptor}.store([{b.rng.choice((0, 0, m // 2))}, 0], {acc})")


ENDS = (_reduced, _scanned, _stored_turned, _added_to_memory, _of_narrower, _stored_by_descriptor)

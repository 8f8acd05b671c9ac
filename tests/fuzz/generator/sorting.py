"""Sorting networks, reversal, random numbers: functions that the standard library writes in the language."""

from __future__ import annotations

from tests.fuzz.generator.builder import INTEGERS, Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.reductions import COMPARED, NUMBERS

MAX_SORTED = 64  # a network of log2(n)^2 / 2 steps is many ops


def _sortable(b: Builder) -> Value:
    return b.pick(lambda v: v.shape and v.numel <= 256 and v.dtype in NUMBERS and max(v.shape) <= MAX_SORTED)


def _dim(b: Builder, x: Value) -> int:
    return b.rng.randrange(-len(x.shape), len(x.shape))


@statement_of("sort")
def sort(b: Builder) -> None:
    x = _sortable(b)
    b.define(f"tl.sort({x}, {_dim(b, x)}, {b.rng.choice((True, False))})", x.dtype, x.shape)


@statement_of("sort")
def merge(b: Builder) -> None:
    """Of what rises and then falls."""
    x = _sortable(b)
    axis = b.rng.randrange(len(x.shape))
    if x.shape[axis] < 2 or x.dtype[0] == "f":  # a NaN compares with nothing, and of zeros either may come first
        raise Unfit
    shape = (*x.shape[:axis], 2, x.shape[axis] // 2, *x.shape[axis + 1 :])
    halves = f"tl.sort(tl.reshape({x}, {shape_text(shape)}), {axis + 1})"
    side = ", ".join(":" if other == axis else "None" for other in range(len(shape)))
    turned = f"tl.where((tl.arange(0, 2) == 0)[{side}], {halves}, tl.flip({halves}, {axis + 1}))"
    text = f"tl.bitonic_merge(tl.reshape({turned}, {shape_text(x.shape)}), {axis}, {b.chance(0.5)})"
    b.define(text, x.dtype, x.shape)


@statement_of("sort")
def topk(b: Builder) -> None:
    x, descending = _sortable(b), b.rng.choice((True, False))
    axis = b.rng.randrange(len(x.shape))
    k = b.rng.choice([k for k in (1, 2, 4, 8) if k <= x.shape[axis]])
    dtype = COMPARED.get(x.dtype, x.dtype) if k < x.shape[axis] else x.dtype
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    b.define(f"tl.topk({x}, {k}, {axis}, descending={descending})", dtype, shape)


@statement_of("sort")
def flip(b: Builder) -> None:
    x = b.pick(lambda v: v.shape and v.dtype in NUMBERS)
    b.define(f"tl.flip({x}, {_dim(b, x)})", x.dtype, x.shape)


def _pairs(b: Builder, dtypes: tuple[str, ...]) -> tuple[Value, list[int]]:
    """A tile, and the shape of its pairs at some distance."""
    x = b.pick(lambda v: v.shape and v.numel >= 2 and v.dtype in dtypes)
    distance = 1 << b.rng.randrange(x.numel.bit_length() - 1)
    return x, [x.numel // (2 * distance), 2, distance]


def _spread(pairs: str, x: Value, shape: list[int]) -> str:
    """What was reduced over pairs, at both places of each, in the shape of the tile."""
    return f"tl.reshape(tl.broadcast_to(({pairs})[:, None, :], {shape_text(shape)}), {shape_text(x.shape)})"


@statement_of("sort")
def sum_of_pairs(b: Builder) -> None:
    x, shape = _pairs(b, ("int32", "int64", "float32"))
    name = b.rng.choice(("sum", "sum", "max", "min") if x.dtype == "float32" else ("sum", "xor_sum", "max", "min"))
    b.define(_spread(f"tl.{name}(tl.reshape({x}, {shape_text(shape)}), 1)", x, shape), x.dtype, x.shape)


@statement_of("sort")
def side_of_pairs(b: Builder) -> None:
    """The left or the right one of each pair, by a sum of what is 0 elsewhere; or exchanged by exclusive or."""
    x, shape = _pairs(b, ("int32", "int64", "float32"))
    numbers = b.rng.choice(("tl.arange(0, 2)", "tl.arange(0, 2)", "(tl.arange(-2, 0) > -2).to(tl.int32)"))
    side = f"{numbers}[None, :, None]"
    tile = f"tl.reshape({x}, {shape_text(shape)})"
    masked = b.rng.choice(
        (
            f"{tile} * {side}",
            f"{tile} * (1 - {side})",
            f"tl.where({side} == 0, {tile}, 0)",
            f"tl.where({side} == 0, 0, {tile})",
        )
    )
    text = _spread(f"tl.sum({masked}, 1)", x, shape)
    is_exchanged = x.dtype in INTEGERS and b.rng.random() < 0.5
    b.define(f"{x} ^ {text}" if is_exchanged else text, x.dtype, x.shape)


@statement_of("sort")
def exchange(b: Builder) -> None:
    """A gather from places that differ in some bits."""
    x = b.pick(lambda v: v.shape and v.dtype in NUMBERS)
    axis = b.rng.randrange(len(x.shape))
    rank, extent = len(x.shape), x.shape[axis]
    index = ", ".join(":" if other == axis else "None" for other in range(rank))
    places = f"tl.broadcast_to(tl.arange(0, {extent})[{index}], {shape_text(x.shape)})"
    b.define(f"tl.gather({x}, {places} ^ {b.rng.randrange(extent)}, {axis})", x.dtype, x.shape)


@statement_of("random")
def random_words(b: Builder) -> None:
    """One of a kind for each offset, or the four of one Philox, of seeds that are known or not."""
    offset = b.pick(lambda v: v.dtype in INTEGERS)
    name, dtype = b.rng.choice((("randint", "uint32"), ("rand", "float32"), ("randn", "float32")))
    known = b.rng.choice((0, 1, 42, 2**31 + 5, 2**40 + 3))
    seed = b.number("int64", known) if b.chance(0.3) else known
    rounds = f"n_rounds={b.rng.choice((1, 3, 10))}"
    if b.chance(0.3):
        _words(b, f"tl.{name}4x({seed}, {offset}, {rounds})", dtype, offset.shape)
    else:
        b.define(f"tl.{name}({seed}, {offset}, {rounds})", dtype, offset.shape)


@statement_of("random")
def philox(b: Builder) -> None:
    """Of four counters of 32 or 64 bits; two words as normal numbers at times."""
    dtype, shape = b.rng.choice(("uint32", "uint64")), b.shape()
    counters = ", ".join(str(b.value(dtype, shape)) for _ in range(4))
    words = _words(
        b, f"tl.philox({b.rng.choice((0, 5, 2**33 + 1))}, {counters}, {b.rng.choice((1, 10))})", dtype, shape
    )
    if dtype == "uint32" and b.chance(0.5):
        uniform = [f"tl.uint_to_uniform_float({word})" for word in words[:2]]
        _words(b, f"tl.pair_uniform_to_normal({', '.join(uniform)})", "float32", shape, 2)


def _words(b: Builder, text: str, dtype: str, shape: tuple[int, ...], count: int = 4) -> list[str]:
    words = [b.name() for _ in range(count)]
    b.emit(f"{', '.join(words)} = {text}")
    for word in words:
        b.add_to_scope(Value(word, dtype, shape))
    return words

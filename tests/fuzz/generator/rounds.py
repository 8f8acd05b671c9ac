"""Tiles one after the other, each the product of rows of blocks: loops of products in a loop, as in persistent kernels.

    for t in tl.range(0, tiles, flatten=True):
        count = tl.load(counts + t)                             as many blocks as this one has, maybe none
        acc = tl.zeros((M, N), tl.float32)
        for k in range(0, count):
            acc = tl.dot(x.load([t % R * M, k * K]), y.load([k * K, t // R * N]), acc)
        out.store([t * M, 0], acc)

Operands come through pointers or descriptors, turned or not, masked or not; sums are scaled in the loop, multiplied
again after it, or go on into the next tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import hints
from tests.fuzz.generator.dots import LEAST_K, keywords, operand, result_type

TYPES = ("float16", "float16", "bfloat16", "float32", "int8", "float8e5")
WIDTH = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class _Blocks:
    """Blocks along K of an operand: `name` has rows x (trips * depth) elements, or its transposition."""

    name: str
    rows: int
    depth: int
    number: str
    trips: int
    is_first: bool
    is_turned: bool
    is_described: bool
    limit: str | None

    @property
    def shape(self) -> tuple[int, int]:
        """As the dot has it."""
        return (self.rows, self.depth) if self.is_first else (self.depth, self.rows)

    @property
    def is_k_fast(self) -> bool:
        return self.is_first != self.is_turned

    def load(self, b: Builder, k: str) -> str:
        row, column = (self.number, f"{k} * {self.depth}")
        at = f"[{row}, {column}]" if self.is_k_fast else f"[{column}, {row}]"
        if self.is_described:
            return f"{self.name}.load({at}){'.T' if self.is_turned else ''}"
        rows, ks = f"({row} + tl.arange(0, {self.rows}))", f"({column} + tl.arange(0, {self.depth}))"
        across, along = ("[:, None]", "[None, :]") if self.is_first else ("[None, :]", "[:, None]")
        total, count = self.trips * self.depth, self.limit
        stride = (total, 1) if self.is_k_fast else (1, f"{self.name}_rows")
        mask = "" if count is None else f", mask={ks}{along} < {count}, other=0"
        return f"tl.load({self.name} + {rows}{across} * {stride[0]} + {ks}{along} * {stride[1]}{mask})"


@statement_of("rounds")
def rounds_of_products(b: Builder) -> None:
    if b.depth > 1:
        raise Unfit
    dtype = b.rng.choice(TYPES)
    m, n = b.rng.choice((64, 64, 128, 32)), b.rng.choice((16, 32, 64))
    k = max(b.rng.choice((16, 32, 64)), LEAST_K.get(dtype, 16))
    rows, columns, trips = b.rng.randint(1, 2), b.rng.randint(1, 2), b.rng.randint(1, 4)
    tiles, result = rows * columns, result_type(b, dtype)
    t, counter = b.name("t"), b.name("k")
    kept = operand(b, dtype, (m, k)) if b.chance(0.3) else None
    x = _blocks(b, dtype, m, rows, k, trips, f"{t} % {rows} * {m}", True)
    y = _blocks(b, dtype, n, columns, k, trips, f"{t} // {rows} * {n}", False)
    count = _count(b, t, tiles, trips)
    out = b.array(result, m * n * tiles * b.programs, "poison", prefix="out")
    carried = b.define(f"tl.zeros(({m}, {n}), tl.{result})", result, (m, n)) if b.chance(0.25) else None
    total = b.number("int32", b.rng.choice((tiles, tiles, tiles - 1))) if b.chance(0.7) else tiles
    hint = b.rng.choice(("", ", flatten=True", ", warp_specialize=True", ", num_stages=2", f", {hints(b)}"))
    with b.block(f"for {t} in tl.range(0, {total}{hint}):"):
        acc = carried or b.define(f"tl.zeros(({m}, {n}), tl.{result})", result, (m, n))
        inner = b.rng.choice(("", "", "", ", warp_specialize=True", ", num_stages=3", f", {hints(b)}"))
        with b.block(f"for {counter} in tl.range(0, {count}{inner}):"):
            left, right = (b.define(one.load(b, counter), dtype, one.shape) for one in (x, y))
            b.emit(f"{acc} = tl.dot({left}, {right}, {acc}{keywords(b, dtype, result)})")
            if kept is not None:
                b.emit(f"{acc} = tl.dot({kept}, {right}, {acc}{keywords(b, dtype, result)})")
            if b.chance(0.2):
                b.emit(f"{acc} = {acc} * 2" if result == "int32" else f"{acc} = {acc} * 0.5")
            if b.chance(0.1):
                b.statement()
        given = _epilogue(b, dtype, acc)
        if b.chance(0.2):
            b.statement()
        at = f"tl.arange(0, {m})[:, None] * {n} + tl.arange(0, {n})[None, :]"
        b.emit(f"tl.store({out} + (pid * {tiles} + {t}) * {m * n} + {at}, {given})")


def _blocks(
    b: Builder, dtype: str, size: int, count: int, depth: int, trips: int, number: str, is_first: bool
) -> _Blocks:
    """All blocks of an operand, in an array of the program's own."""
    total, rows = trips * depth, count * size
    is_turned, is_described = b.chance(0.3), b.chance(0.4)
    array = b.array(dtype, total * rows * b.programs, "small")
    name = b.name("w")
    b.emit(f"{name}_rows = {b.number('int32', rows) if b.chance(0.5) else rows}")
    b.emit(f"{name} = {array} + pid * {total * rows}")
    is_k_fast = is_first != is_turned
    if is_described:
        shape, block = ((rows, total), (size, depth)) if is_k_fast else ((total, rows), (depth, size))
        less = b.rng.choice((0, 0, 1, 3))
        b.emit(
            f"{name} = tl.make_tensor_descriptor({name}, shape=[{shape[0]} - {less}, {shape[1]} - {less}], "
            f"strides=[{shape[1]}, 1], block_shape={list(block)})"
        )
    limit = str(b.number("int32", b.rng.choice((total, total - 1, depth)))) if b.chance(0.3) else None
    return _Blocks(name, size, depth, number, trips, is_first, is_turned, is_described, limit)


def _count(b: Builder, t: str, tiles: int, trips: int) -> str:
    """How many blocks a tile is the sum of."""
    kind = b.rng.choice(("constant", "number", "of each", "loaded"))
    if kind == "constant":
        return str(trips)
    if kind == "number":
        return str(b.number("int32", b.rng.randint(0, trips)))
    if kind == "of each":
        return f"tl.minimum({t} + {b.rng.choice((0, 1))}, {trips})"
    return f"tl.load({b.array('int64', tiles, 'index', trips + 1)} + {t}).to(tl.int32)"


def _epilogue(b: Builder, dtype: str, acc: Value) -> Value:
    """The sums, or what they are multiplied with, or some of them."""
    if dtype not in ("float16", "bfloat16") or b.chance(0.6):
        return acc
    m, n = acc.shape
    name = b.array(dtype, n * n, "small")
    at = f"tl.arange(0, {n})[:, None] * {n} + tl.arange(0, {n})[None, :]"
    other = b.define(f"tl.load({name} + {at})", dtype, (n, n))
    first = b.define(f"tl.clamp({acc}.to(tl.float32) * 0.03125, -64.0, 64.0).to(tl.{dtype})", dtype, (m, n))
    return b.define(f"tl.dot({first}, {other}).to(tl.{acc.dtype})", acc.dtype, (m, n))

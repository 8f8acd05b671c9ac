"""Grows the source of a kernel: what is in scope, how a value of a wanted type is had, lines, arguments, functions.

    x = b.value("float32", (4, 8))        a Value of that type: a variable, a conversion of one, a constant, a load
    y = b.define(f"{x} + 1.0", x.dtype, x.shape)

A Value is the text of an expression, nearly always a variable, with its type. Statements register themselves in
FAMILIES; `statement` draws one by the weights of this program.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.fuzz.case import BITS, FP8, MANTISSA, Argument

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMMON = ("int32", "int32", "int32", "float32", "float32", "float32", "float16", "int64", "int8", "uint8", "int1")
DTYPES = (*COMMON, *INTEGERS, *FLOATS, *FP8)
MAX_NUMEL = 1024
MAX_STATEMENTS = 60

FAMILIES: dict[str, list[Callable[[Builder], None]]] = {}


def statement_of(family: str) -> Callable:
    """Registers a function that adds statements to a builder."""

    def register(add: Callable[[Builder], None]) -> Callable[[Builder], None]:
        FAMILIES.setdefault(family, []).append(add)
        return add

    return register


class Unfit(Exception):
    """There is nothing in scope that a statement could be made of."""


@dataclass(frozen=True)
class Value:
    """An expression that can stand anywhere, and its type."""

    text: str
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


class Builder:
    """The state of a program that grows."""

    def __init__(self, rng: random.Random, weights: dict[str, float], load: Callable[..., Value]):
        self.rng = rng
        self._load = load
        self.arguments: list[Argument] = []
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.loop_depth = 0
        self.grid = rng.choice([(1,), (1,), (1,), (2,), (2,), (3,), (5,), (2, 2), (1, 2), (2, 1, 2), (13,), (3, 1, 5)])
        self.programs = math.prod(self.grid)
        self.extents = self._draw_extents()
        self._scope: list[Value] = []
        self._used: set[str] = set()
        self._weights = weights
        self._count = 0
        self._statements = 0

    def _draw_extents(self) -> list[int]:
        if self.rng.random() < 0.05:
            return [16, 256, 1024]
        few = self.rng.sample((1, 2, 4, 8, 16, 32, 64), 3)
        return few if self.rng.random() < 0.7 else [1, 2, 4, 8, 16, 32, 64, 128, 256]

    # -- text

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def define(self, text: str, dtype: str, shape: tuple[int, ...], prefix: str = "v") -> Value:
        """A new variable."""
        value = Value(self.name(prefix), dtype, tuple(shape))
        self.emit(f"{value} = {text}")
        self._scope.append(value)
        return value

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Lines of an indented block; what is defined in it goes out of scope."""
        self.emit(header)
        before, is_loop = len(self._scope), header.startswith(("for ", "while "))
        self.depth += 1
        self.loop_depth += is_loop
        num_lines = len(self.lines)
        yield
        if len(self.lines) == num_lines:
            self.emit("pass")
        self.depth -= 1
        self.loop_depth -= is_loop
        del self._scope[before:]

    def add_to_scope(self, value: Value) -> Value:
        self._scope.append(value)
        return value

    def source(self) -> str:
        parameters = ", ".join(argument.name for argument in self.arguments)
        body = "\n".join(self.lines)
        kernel = f"@triton.jit\ndef kernel({parameters}):\n{body}\n"
        return "\n\n".join([*self.functions, kernel])

    def function(self, text: str, is_inlined: bool = True) -> None:
        """A function that the kernel calls; `text` is its source, without the decorator."""
        self.functions.append(f"@triton.jit{'' if is_inlined else '(noinline=True)'}\n{text}\n")

    # -- arguments

    def array(self, dtype: str, size: int, fill: str | None = None, bound: int = 0, prefix: str = "x") -> str:
        fill = fill or self.rng.choice(("special", "normal", "normal", "small"))
        argument = Argument(self.name(prefix), dtype, size, fill, self.rng.randrange(1 << 20), bound)
        self.arguments.append(argument)
        return argument.name

    def number(self, dtype: str, value: float) -> Value:
        """An argument that is a number."""
        return self.add_to_scope(self.kept_number(dtype, value))

    def kept_number(self, dtype: str, value: float) -> Value:
        """One that no statement changes, since it is not in scope."""
        argument = Argument(self.name("n"), dtype, None, value)
        self.arguments.append(argument)
        return Value(argument.name, dtype, ())

    # -- what there is

    def values(self, fits: Callable[[Value], bool] = lambda value: True) -> list[Value]:
        return [value for value in self._scope if fits(value)]

    def pick(self, fits: Callable[[Value], bool] = lambda value: True) -> Value:
        """One of the values that fit, rather a recent one; raises Unfit where there is none."""
        found = self.values(fits)
        if not found:
            raise Unfit
        chosen = found[-1 - min(int(self.rng.expovariate(0.35)), len(found) - 1)]
        return self.use(chosen)

    def use(self, value: Value) -> Value:
        self._used.add(value.text)
        return value

    def unused(self) -> list[Value]:
        return [value for value in self._scope if value.text not in self._used]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def dtype(self, among: tuple[str, ...] = DTYPES) -> str:
        return self.rng.choice([name for name in COMMON if name in among] * 2 + list(among))

    def shape(self, min_rank: int = 0, max_rank: int = 4, max_numel: int = MAX_NUMEL) -> tuple[int, ...]:
        """Rather one that is there already."""
        there = [v.shape for v in self._scope if min_rank <= len(v.shape) <= max_rank and v.numel <= max_numel]
        if there and self.chance(0.6):
            return self.rng.choice(there)
        rank = min(max(self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)), min_rank), max_rank)
        for _ in range(20):
            shape = tuple(self.rng.choice(self.extents) for _ in range(rank))
            if math.prod(shape) <= max_numel:
                return shape
        return (2,) * rank

    # -- values of a wanted type

    def value(self, dtype: str, shape: tuple[int, ...]) -> Value:
        """A value of this type: there already, converted, a constant, or from memory."""
        exact = self.values(lambda v: (v.dtype, v.shape) == (dtype, shape))
        if exact and self.chance(0.75):
            return self.pick(lambda v: (v.dtype, v.shape) == (dtype, shape))
        same_shape = self.values(lambda v: v.shape == shape)
        if same_shape and self.chance(0.7):
            return self.converted(self.pick(lambda v: v.shape == shape), dtype)
        narrower = [v for v in self._scope if v.shape != shape and broadcasts(v.shape, shape)]
        if narrower and self.chance(0.5):
            value = self.converted(self.use(self.rng.choice(narrower)), dtype)
            return self.define(broadcast_text(value, shape), dtype, shape)
        if self.chance(0.2) and dtype not in FP8:
            return self.define(f"tl.full({shape_text(shape)}, {self.literal(dtype)}, tl.{dtype})", dtype, shape)
        return self.load(dtype, shape)

    def load(self, dtype: str, shape: tuple[int, ...]) -> Value:
        """From a new argument."""
        return self._load(self, dtype, shape)

    def converted(self, value: Value, dtype: str) -> Value:
        """With another element type; floats are brought into the range of an integer first."""
        if value.dtype == dtype:
            return value
        if dtype == "int1":
            return self.define(f"{self.number_of(value)} > {self.literal(value.dtype)}", dtype, value.shape)
        if value.dtype in FP8 and dtype != "float32":
            value = self.define(f"{value}.to(tl.float32)", "float32", value.shape)
            return self.converted(value, dtype)
        if dtype in FP8 and value.dtype not in FLOATS:
            value = self.define(f"{value}.to(tl.float32)", "float32", value.shape)
        if value.dtype in MANTISSA and dtype not in MANTISSA:
            low, high = (0 if dtype[0] == "u" else -100), 100
            value = self.define(f"tl.clamp({value}, {low}.0, {high}.0)", value.dtype, value.shape)
        return self.define(f"{value}.to(tl.{dtype})", dtype, value.shape)

    def number_of(self, value: Value) -> str:
        """An expression that arithmetic and comparisons take: fp8 has none."""
        return f"{value}.to(tl.float32)" if value.dtype in FP8 else value.text

    def literal(self, dtype: str) -> str:
        """A number of the type, often neutral or at an edge."""
        if dtype == "int1":
            return self.rng.choice(("True", "False"))
        if dtype in MANTISSA:
            usual = (
                "0.0",
                "1.0",
                "-1.0",
                "0.5",
                "2.0",
                "-0.0",
                "3.0",
                "0.1",
                "100.0",
                '-float("inf")',
                '-float("nan")',
            )
            return self.rng.choice(usual)
        bits = BITS[dtype]
        least, most = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        middle = most // 2 + 1  # the first that a signed type of so many bits has not, or a power of two
        around = (middle - 1, middle, middle + 1, most - 4)
        edges = (0, 1, 2, 3, 7, 16, bits - 1, most, least, least + 1, *around, self.rng.randint(least, most))
        return str(self.rng.choice(edges))

    # -- growing

    def statement(self) -> None:
        """One statement, of any family; nested ones count as well."""
        self._statements += 1
        if self._statements > MAX_STATEMENTS:
            return
        names = list(FAMILIES)
        weights = [self._weights[name] * _FREQUENCY.get(name, 1) for name in names]
        if not any(weights):
            weights = [1] * len(names)
        for _ in range(4):
            add = self.rng.choice(FAMILIES[self.rng.choices(names, weights)[0]])
            try:
                add(self)
                return
            except Unfit:
                continue


_FREQUENCY = {
    "elementwise": 8,
    "promotion": 2,
    "shape": 2,
    "dot": 0.4,
    "any dot": 0.15,
    "any descriptor": 0.3,
    "dot graph": 0.1,
    "rounds": 0.15,
    "tiles in order": 0.15,
    "scores": 0.15,
    "state": 0.4,
    "far loops": 0.3,
    "few bits": 0.3,
    "descriptor": 0.5,
    "block pointer": 0.5,
    "atomic": 0.6,
    "address": 0.5,
    "sort": 0.3,
    "random": 0.3,
    "tuple": 0.6,
    "table": 0.3,
    "needed rows": 0.15,
    "tail": 0.4,
    "neighbours": 0.4,
    "large": 0.15,
    "promise": 0.5,
    "stride": 0.5,
    "iterations": 0.4,
    "watched": 0.3,
}


def broadcasts(source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tile is repeated to a shape without an index: a scalar, or one of the same rank."""
    return not source or (len(source) == len(target) and all(a in (1, b) for a, b in zip(source, target, strict=True)))


def broadcast_text(value: Value, shape: tuple[int, ...]) -> str:
    if not value.shape:
        return f"tl.full({shape_text(shape)}, {value}, tl.{value.dtype})"
    return f"tl.broadcast_to({value}, {shape_text(shape)})"


def shape_text(shape: tuple[int, ...]) -> str:
    return str(tuple(shape))

"""Programs of a column, or of some columns, of an array in rows: what `group-programs` runs in step.

    case = columns(7)

    pid = program_id(0)                                     or a tile of columns, pid * 8 + arange(0, 8), or pid % n
    v1 = tl.load(x1 + rows * n2 + col)
    for k in range(n3): v1 = ...
    tl.store(out4 + col, tl.sum(v1, 0))

There are up to 100 programs, for fewer stay alone, and nothing but loads and stores, in whole numbers. A value has
the dimensions of its letters: "r" rows, "c" columns; of programs of one column it has none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.fuzz.case import Argument, Case

BINARY = (
    "{0} + {1}",
    "{0} * 3 - {1}",
    "{0} ^ {1}",
    "tl.maximum({0}, {1})",
    "{0} // ({1} | 1)",
    "{0} % 7 + {1}",
    "tl.where({0} > {1}, {0}, {1} + 1)",
    "({0} + {1}).to(tl.int8)",
)
REDUCTIONS = ("sum", "max", "min", "argmax", "xor_sum")
STEPS = ("{0} + {1}", "{0} ^ {1}", "tl.where({1} > 1, {0} + 1, {1})", "{1}")
DTYPES = ("int8", "int16", "int32", "int32", "int64")
Value = tuple[str, str]


def columns(seed: int) -> Case:
    return _Columns(random.Random(seed)).case(seed)


class _Columns:
    """A program that grows."""

    def __init__(self, rng: random.Random):
        self._rng, self._lines, self._arguments, self._depth, self._count = rng, [], [], 1, 0
        self._kind = rng.choice(("one", "one", "tile", "tile", "row"))
        self._rows = rng.choice((1, 2, 4, 8, 16, 32))
        self._extent = rng.choice((2, 4, 8, 16)) if self._kind == "tile" else 1
        self._programs = rng.choice((3, 7, 9, 16, 17, 33, 64, 70, 100)) // (2 if self._kind == "tile" else 1)
        self._times = rng.choice((1, 2, 3)) if self._kind == "row" else 1  # so many rows of programs
        self._width = self._programs * self._extent
        self._column = "c" if self._kind == "tile" else ""
        self._dtype = rng.choice(DTYPES)
        self._scope: list[Value] = []

    def case(self, seed: int) -> Case:
        self._begin()
        for _ in range(self._rng.choice((2, 3, 5, 8, 12))):
            self._statement()
        for value in self._scope[2:]:
            if self._rng.random() < 0.5:
                self._store(value)
        parameters = ", ".join(argument.name for argument in self._arguments)
        source = f"@triton.jit\ndef kernel({parameters}):\n" + "\n".join(self._lines) + "\n"
        return Case(seed, source, tuple(self._arguments), (self._programs * self._times,))

    def _begin(self) -> None:
        width = self._number(self._width) if self._rng.random() < 0.6 else str(self._width)
        self._emit("pid = tl.program_id(0)")
        self._emit(f"rows = tl.arange(0, {self._rows})")
        self._emit(f"first = pid // {width} * {self._rows}" if self._kind == "row" else "first = 0")
        tile = f"pid * {self._extent} + tl.arange(0, {self._extent})"
        self._emit(f"col = {({'one': 'pid', 'tile': tile, 'row': f'pid % {width}'})[self._kind]}")
        self._stride = width
        self._scope = [("col", self._column), ("rows", "r")]

    # -- text

    def _emit(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _define(self, text: str, dimensions: str) -> Value:
        value = self._name("v"), dimensions
        self._emit(f"{value[0]} = ({text}).to(tl.int32)")
        self._scope.append(value)
        return value

    @contextmanager
    def _block(self, header: str) -> Iterator[None]:
        self._emit(header)
        before, self._depth = len(self._scope), self._depth + 1
        yield
        self._depth -= 1
        del self._scope[before:]

    def _argument(self, *given: object) -> str:
        self._arguments.append(Argument(*given, self._rng.randrange(1 << 20)))
        return self._arguments[-1].name

    def _number(self, value: int) -> str:
        return self._argument(self._name("n"), "int32", None, value)

    # -- values

    def _pick(self, fits: Callable[[str], bool] = lambda dimensions: True) -> Value:
        return self._rng.choice([value for value in self._scope if fits(value[1])])

    def _places(self, dimensions: str) -> str:
        """Where the elements of a value lie that has the columns."""
        column = "col[None, :]" if dimensions == "rc" else "col"
        row = {"rc": "(first + rows)[:, None]", "r": "(first + rows)"}.get(dimensions, "first")
        return f"{row} * {self._stride} + {column}"

    def _shapes(self) -> tuple[str, str]:
        return "r" + self._column, self._column

    def _mask(self, dimensions: str) -> str:
        if self._rng.random() < 0.5:
            return ""
        limit = self._number(self._rng.choice((0, 1, self._rows, self._width - 1, self._width)))
        column = "col[None, :]" if dimensions == "rc" else "col"
        tests = [f"{column} < {limit}", f"{column} % 3 < {limit}"]
        if dimensions.startswith("r"):
            rows = "rows[:, None]" if dimensions == "rc" else "rows"
            tests += [f"({rows} < {limit}) & ({column} >= 0)", f"({rows} + {column}) % 5 < {limit}"]
        return f", mask=({self._rng.choice(tests)})"

    def _array(self, prefix: str, dtype: str, fill: str) -> str:
        return self._argument(self._name(prefix), dtype, self._width * self._rows * self._times, fill)

    # -- statements

    def _statement(self) -> None:
        kinds = [self._load, self._load, self._combine, self._combine, self._reduce]
        kinds += [self._loop, self._branch] if self._depth < 3 else []
        self._rng.choice(kinds)()

    def _load(self) -> None:
        dimensions = self._rng.choice(self._shapes())
        mask = self._mask(dimensions)
        other = f", other={self._rng.choice((0, 5))}" if mask else ""
        array = self._array("x", self._dtype, "normal")
        self._define(f"tl.load({array} + {self._places(dimensions)}{mask}{other})", dimensions)

    def _store(self, value: Value) -> None:
        """What has no columns is added to their numbers."""
        text, dimensions = value
        if dimensions not in self._shapes():
            text, dimensions = f"{_along(text, dimensions, 'r' + self._column)} + {_along('col', 'c', 'rc')}", "rc"
        array = self._array("out", self._rng.choice(DTYPES), "poison")
        self._emit(f"tl.store({array} + {self._places(dimensions)}, {text}{self._mask(dimensions)})")

    def _combine(self) -> None:
        (x, left), (y, right) = self._pick(), self._pick()
        both = "".join(sorted({*left, *right}, reverse=True))
        self._define(self._rng.choice(BINARY).format(_along(x, left, both), _along(y, right, both)), both)

    def _reduce(self) -> None:
        x, dimensions = self._pick(bool)
        axis = self._rng.randrange(len(dimensions))
        if self._rng.random() < 0.3:
            self._define(f"tl.cumsum({x}, {axis}, reverse={self._rng.random() < 0.5})", dimensions)
            return
        self._define(f"tl.{self._rng.choice(REDUCTIONS)}({x}, {axis})", dimensions[:axis] + dimensions[axis + 1 :])

    def _loop(self) -> None:
        """By a number, or as often as the program says."""
        x, dimensions = self._define(*self._pick())
        count = self._number(self._rng.choice((0, 1, 2, 3, 5)))
        often = self._rng.choice((count, count, "3", f"{count} + (pid & 1)"))
        index = self._name("k")
        with self._block(f"for {index} in range({often}):"):
            self._scope.append((index, ""))
            self._body(x, dimensions)

    def _branch(self) -> None:
        x, dimensions = self._define(*self._pick())
        number, relation = self._rng.choice(("pid", "pid", self._number(1))), self._rng.choice(("<", "!="))
        with self._block(f"if {number} {relation} {self._rng.choice((0, 1, 5))}:"):
            self._body(x, dimensions)
        if self._rng.random() < 0.5:
            with self._block("else:"):
                self._body(x, dimensions)

    def _body(self, x: str, dimensions: str) -> None:
        for _ in range(self._rng.choice((1, 1, 2))):
            self._statement()
        y, _ = self._pick(lambda others: others == dimensions)
        self._emit(f"{x} = ({self._rng.choice(STEPS).format(x, y)}).to(tl.int32)")


def _along(text: str, dimensions: str, both: str) -> str:
    """A value with the dimensions of two."""
    if both != "rc" or dimensions in ("", "rc"):
        return text
    return f"{text}[:, None]" if dimensions == "r" else f"{text}[None, :]"

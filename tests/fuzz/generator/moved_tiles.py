"""Tiles of matrices at places that the indices of loops move, and the ways to load and store them.

    place(b, state, "load")     tl.load(io3 + pid * 4096 + (16 + k * 32 + rows[:, None]) * 64 + columns[None, :])
                                d7.load([16 + k * 32, k % 2 * 32]),  tl.load(tl.make_block_ptr(...)): it is the same

How many rows a matrix has is known when all its accesses are; until then texts have signs for these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.generator.builder import Builder, Value


@dataclass
class Loop:
    """`first + step * n` for n below `trips`."""

    index: str
    first: int
    step: int
    trips: int
    is_wide: bool = False

    @property
    def ends(self) -> tuple[int, int]:
        last = self.first + self.step * max(self.trips - 1, 0)
        return min(self.first, last), max(self.first, last)


@dataclass
class Matrix:
    """Rows of `width` elements, from row `-low` of the program's part on; `first` and `rows` stand for numbers."""

    number: int
    name: str
    width: int
    low: int = 0
    high: int = 0
    descriptor: str | None = None

    def touch(self, low: int, high: int) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    @property
    def first(self) -> str:
        return f"@first{self.number}@"

    @property
    def rows(self) -> str:
        return f"@rows{self.number}@"


@dataclass
class State:
    """What statements of the loops take: matrices, tiles of (size, size), sums of them, pointers that are carried."""

    dtype: str
    size: int
    matrices: list[Matrix]
    tiles: list[Value] = field(default_factory=list)
    sums: list[Value] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    carried: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def result(self) -> str:
        return "int32" if self.dtype == "int8" else "float32"

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size


def place(b: Builder, state: State, word: str) -> str:
    """An access to a tile, with `{value}` where a store has it."""
    matrix = b.rng.choice(state.matrices)
    row, column = row_of(b, state, matrix), _column_of(b, state, matrix)
    kind = b.rng.choice(("plain", "plain", "turned", "masked", "block", "descriptor"))
    if kind == "descriptor" and not any(loop.is_wide for loop in state.loops):  # its coordinates have 32 bits
        name = _descriptor(b, state, matrix)
        at = f"[{matrix.first} + {row}, {column}]"
        return f"{name}.load({at})" if word == "load" else f"{name}.store({at}, {{value}})"
    value = ", {value}" if word == "store" else ""
    if kind == "block":
        pointer = block_pointer(state, matrix, f"{matrix.first} + {row}", column)
        return f"tl.{word}({pointer}{value})"
    mask = ""
    if kind == "masked":
        limit = b.number("int32", b.rng.randint(0, state.size)) if b.chance(0.7) else state.size
        side = b.rng.choice(("[None, :]", "[:, None]"))
        mask = f", mask=(tl.arange(0, {state.size}) < {limit}){side}" + (", other=0" if word == "load" else "")
    return f"tl.{word}({pointers_to(state, matrix, row, column, kind == 'turned')}{value}{mask})"


def row_of(b: Builder, state: State, matrix: Matrix) -> str:
    size = state.size
    number = b.rng.choice((0, 0, 1, size, size, 2 * size, size // 2))
    terms, low, high = [str(number)], number, number
    for loop in state.loops:
        factor = b.rng.choice((0, size, size, size, 1, -size, size // 2))
        if factor:
            ends = [factor * end for end in loop.ends]
            low, high = low + min(ends), high + max(ends)
            terms.append(f"{loop.index} * {factor}")
    matrix.touch(low, high + size - 1)
    return " + ".join(terms)


def _column_of(b: Builder, state: State, matrix: Matrix) -> str:
    if matrix.width == state.size:
        return "0"
    index = f"{state.loops[-1].index} % 2 * {state.size}" if state.loops and state.loops[-1].ends[0] >= 0 else "0"
    return b.rng.choice(("0", str(state.size), index))


def pointers_to(state: State, matrix: Matrix, row: str, column: str, is_turned: bool) -> str:
    range_ = f"tl.arange(0, {state.size})"
    across, along = ("[None, :]", "[:, None]") if is_turned else ("[:, None]", "[None, :]")
    base = f"{matrix.name} + pid * @size{matrix.number}@"
    at = f"({matrix.first} + {row} + {range_}{across}) * {matrix.width} + {column} + {range_}{along}"
    return f"{base} + {at}"


def block_pointer(state: State, matrix: Matrix, row: str, column: str) -> str:
    base = f"{matrix.name} + pid * @size{matrix.number}@"
    sizes, strides = f"({matrix.rows}, {matrix.width})", f"({matrix.width}, 1)"
    return f"tl.make_block_ptr({base}, {sizes}, {strides}, ({row}, {column}), ({state.size}, {state.size}), (1, 0))"


def _descriptor(b: Builder, state: State, matrix: Matrix) -> str:
    """Made before all loops."""
    if matrix.descriptor is None:
        matrix.descriptor = b.name("d")
        place = b.lines.index("    # tiles in order")
        b.lines.insert(
            place,
            f"    {matrix.descriptor} = tl.make_tensor_descriptor({matrix.name} + pid * @size{matrix.number}@, "
            f"shape=[{matrix.rows}, {matrix.width}], strides=[{matrix.width}, 1], "
            f"block_shape=[{state.size}, {state.size}])",
        )
    return matrix.descriptor

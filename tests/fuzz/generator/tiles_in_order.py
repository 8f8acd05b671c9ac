"""Loops of products whose operands come from arrays that the same loops store to, at places that go on.

    for k in tl.range(0, n, num_stages=3):
        x = tl.load(io + (k * 16 + rows) * 64 + columns)                a tile that an earlier iteration has stored
        acc = tl.dot(x, before, acc)
        tl.store(io + ((k + 2) * 16 + rows) * 64 + columns, small(acc)) one that a later iteration loads
        if tl.sum(x) > 3: continue
        before, x = x, before

Tiles are loaded and stored by pointers that are computed, or carried, by block pointers and by descriptors, turned or
not; loops count up or down, to bounds of either width that are constants, arguments or loaded, and are left in any
iteration. All numbers are small and whole, so that sums are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import hints, nested
from tests.fuzz.generator.dots import LEAST_K

TYPES = ("float16", "float16", "float16", "bfloat16", "float32", "int8")
MAX_TRIPS = 5


@dataclass
class _Loop:
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
class _Matrix:
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
class _State:
    """What statements of the loops take: matrices, tiles of (size, size), sums of them, pointers that are carried."""

    dtype: str
    size: int
    matrices: list[_Matrix]
    tiles: list[Value] = field(default_factory=list)
    sums: list[Value] = field(default_factory=list)
    loops: list[_Loop] = field(default_factory=list)
    carried: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def result(self) -> str:
        return "int32" if self.dtype == "int8" else "float32"

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size


@statement_of("tiles in order")
def products_in_order(b: Builder) -> None:
    if b.depth > 1:
        raise Unfit
    state = _begin(b)
    for _ in range(b.rng.choice((1, 1, 2))):
        _loop(b, state, 0)
        if b.chance(0.5):
            _some(b, state, 2)
    _settle(b, state)


def _begin(b: Builder) -> _State:
    dtype = b.rng.choice(TYPES)
    size = max(b.rng.choice((16, 32, 32, 64)), LEAST_K.get(dtype, 16))
    matrices = []
    for _ in range(b.rng.choice((1, 1, 2))):
        name = b.array(dtype, 1, "small", prefix="io")
        matrices.append(_Matrix(len(b.arguments) - 1, name, size * b.rng.choice((1, 2))))
    state = _State(dtype, size, matrices)
    b.emit("# tiles in order")
    state.sums = [
        b.define(f"tl.zeros(({size}, {size}), tl.{state.result})", state.result, state.shape)
        for _ in range(b.rng.choice((1, 1, 2)))
    ]
    for _ in range(b.rng.choice((1, 2))):
        _load(b, state)
    return state


def _settle(b: Builder, state: _State) -> None:
    """Gives the matrices their sizes, now that all their accesses are known."""
    for matrix in state.matrices:
        rows, first = matrix.high - matrix.low + 1, -matrix.low
        old = b.arguments[matrix.number]
        size = rows * matrix.width
        b.arguments[matrix.number] = old.__class__(old.name, old.dtype, size * b.programs, "small", old.seed)
        texts = {matrix.first: str(first), matrix.rows: str(rows), f"@size{matrix.number}@": str(size)}
        for text, number in texts.items():
            b.lines[:] = [line.replace(text, number) for line in b.lines]


# -- loops


def _loop(b: Builder, state: _State, depth: int) -> None:
    nested(b)
    trips = b.rng.randint(0, MAX_TRIPS)
    first, step = b.rng.choice((0, 0, 0, 1, -2)), b.rng.choice((1, 1, 1, 2, -1))
    loop = _Loop(b.name("k"), first, step, trips)
    carried = [_carry(b, state, loop) for _ in range(b.rng.choice((0, 0, 1, 2)) if depth == 0 else 0)]
    before = list(state.tiles), list(state.carried)
    if b.chance(0.25):
        header, tail = _while(b, loop)
    else:
        header, tail = _for(b, loop), []
    with b.block(header):
        b.lines.extend("    " * b.depth + line for line in tail)
        state.loops.append(loop)
        state.carried += [(name, is_block) for name, is_block, _ in carried]
        _some(b, state, 5)
        if depth == 0 and b.chance(0.2):
            _loop(b, state, 1)
        _dot(b, state)
        _some(b, state, 2)
        _go_on(b, state, before[0], carried)
        state.loops.pop()
    state.tiles, state.carried = before


def _for(b: Builder, loop: _Loop) -> str:
    end = loop.first + loop.step * loop.trips
    kind = b.rng.choice(("constant", "int32", "int32", "int64", "loaded"))
    if loop.step < 0 and kind == "loaded":
        kind = "int32"
    bound = str(end)
    if kind.startswith("int"):
        bound = str(b.number(kind, end))
        loop.is_wide = kind == "int64"
    elif kind == "loaded":
        ends = b.array("int32", b.programs, "index", 1)
        bound = f"(tl.load({ends} + pid) + {end})"
    step = str(loop.step)
    if loop.step > 0 and b.chance(0.2):
        step = str(b.number("int32", loop.step))
    hint = b.rng.choice(("", "", ", num_stages=3", ", warp_specialize=True", f", {hints(b)}"))
    return f"for {loop.index} in tl.range({loop.first}, {bound}, {step}{hint}):"


def _while(b: Builder, loop: _Loop) -> tuple[str, list[str]]:
    """Counts beforehand, so that `continue` may stand anywhere."""
    count = b.name("w")
    b.emit(f"{count} = 0")
    b.emit(f"{loop.index} = {loop.first - loop.step}")
    bound = b.number("int32", loop.trips) if b.chance(0.7) else loop.trips
    return f"while {count} < {bound}:", [f"{count} += 1", f"{loop.index} += {loop.step}"]


def _carry(b: Builder, state: _State, loop: _Loop) -> tuple[str, bool, str]:
    """A pointer to a tile, and the statement that moves it."""
    matrix, name, is_block = b.rng.choice(state.matrices), b.name("p"), b.chance(0.4)
    row, column = b.rng.choice((0, 1, state.size)), b.rng.choice((0, 0, matrix.width - state.size))
    step = b.rng.choice((state.size, state.size, 1, 0, -state.size))
    matrix.touch(row, row + state.size - 1)
    matrix.touch(row + step * loop.trips, row + step * loop.trips + state.size - 1)
    if is_block:
        b.emit(f"{name} = {_block_pointer(state, matrix, f'{matrix.first} + {row}', str(column))}")
        return name, True, f"{name} = tl.advance({name}, ({step}, 0))"
    b.emit(f"{name} = {_pointers(state, matrix, str(row), str(column), False)}")
    return name, False, f"{name} += {step * matrix.width}"


def _go_on(b: Builder, state: _State, kept: list[Value], carried: list[tuple[str, bool, str]]) -> None:
    """Tiles of before the loop become others; pointers move, or change places."""
    for value in kept:
        if b.chance(0.5):
            other = b.rng.choice(state.tiles)
            both = b.rng.choice(kept)
            b.emit(b.rng.choice((f"{value} = {other}", f"{value} = {other}", f"{value}, {both} = {both}, {value}")))
    for _, _, moved in carried:
        b.emit(moved)


# -- statements


def _some(b: Builder, state: _State, most: int) -> None:
    ways = (_load, _load, _load, _store, _store, _store, _dot, _change, _row, _branch, _leave, _update)
    for _ in range(b.rng.randint(1, most)):
        b.rng.choice(ways)(b, state)


def _load(b: Builder, state: _State) -> None:
    if state.carried and b.chance(0.5):
        name, _ = b.rng.choice(state.carried)
        state.tiles.append(b.define(f"tl.load({name})", state.dtype, state.shape))
        return
    text = _place(b, state, "load").format(value="")
    state.tiles.append(b.define(text, state.dtype, state.shape))


def _store(b: Builder, state: _State) -> None:
    value = _stored(b, state)
    if state.carried and b.chance(0.4):
        b.emit(f"tl.store({b.rng.choice(state.carried)[0]}, {value})")
        return
    b.emit(_place(b, state, "store").format(value=value))


def _stored(b: Builder, state: _State) -> str:
    if b.chance(0.4):
        return str(b.rng.choice(state.tiles))
    return _small(state, str(b.rng.choice(state.sums)))


def _small(state: _State, text: str) -> str:
    return f"((({text}).to(tl.int32) & 7) - 4).to(tl.{state.dtype})"


def _place(b: Builder, state: _State, word: str) -> str:
    """An access to a tile, with `{value}` where a store has it."""
    matrix = b.rng.choice(state.matrices)
    row, column = _row_of(b, state, matrix), _column_of(b, state, matrix)
    kind = b.rng.choice(("plain", "plain", "turned", "masked", "block", "descriptor"))
    if kind == "descriptor" and not any(loop.is_wide for loop in state.loops):  # its coordinates have 32 bits
        name = _descriptor(b, state, matrix)
        at = f"[{matrix.first} + {row}, {column}]"
        return f"{name}.load({at})" if word == "load" else f"{name}.store({at}, {{value}})"
    value = ", {value}" if word == "store" else ""
    if kind == "block":
        pointer = _block_pointer(state, matrix, f"{matrix.first} + {row}", column)
        return f"tl.{word}({pointer}{value})"
    mask = ""
    if kind == "masked":
        limit = b.number("int32", b.rng.randint(0, state.size)) if b.chance(0.7) else state.size
        side = b.rng.choice(("[None, :]", "[:, None]"))
        mask = f", mask=(tl.arange(0, {state.size}) < {limit}){side}" + (", other=0" if word == "load" else "")
    return f"tl.{word}({_pointers(state, matrix, row, column, kind == 'turned')}{value}{mask})"


def _row_of(b: Builder, state: _State, matrix: _Matrix) -> str:
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


def _column_of(b: Builder, state: _State, matrix: _Matrix) -> str:
    if matrix.width == state.size:
        return "0"
    index = f"{state.loops[-1].index} % 2 * {state.size}" if state.loops and state.loops[-1].ends[0] >= 0 else "0"
    return b.rng.choice(("0", str(state.size), index))


def _pointers(state: _State, matrix: _Matrix, row: str, column: str, is_turned: bool) -> str:
    range_ = f"tl.arange(0, {state.size})"
    across, along = ("[None, :]", "[:, None]") if is_turned else ("[:, None]", "[None, :]")
    base = f"{matrix.name} + pid * @size{matrix.number}@"
    at = f"({matrix.first} + {row} + {range_}{across}) * {matrix.width} + {column} + {range_}{along}"
    return f"{base} + {at}"


def _block_pointer(state: _State, matrix: _Matrix, row: str, column: str) -> str:
    base = f"{matrix.name} + pid * @size{matrix.number}@"
    sizes, strides = f"({matrix.rows}, {matrix.width})", f"({matrix.width}, 1)"
    return f"tl.make_block_ptr({base}, {sizes}, {strides}, ({row}, {column}), ({state.size}, {state.size}), (1, 0))"


def _descriptor(b: Builder, state: _State, matrix: _Matrix) -> str:
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


def _dot(b: Builder, state: _State) -> None:
    total = b.rng.choice(state.sums)
    operands = [b.rng.choice(state.tiles) for _ in range(2)]
    if b.chance(0.15):
        made = _small(state, str(b.rng.choice(state.sums)))
        operands[b.rng.randrange(2)] = b.define(made, state.dtype, state.shape)
    x, y = (f"tl.trans({x})" if b.chance(0.25) else str(x) for x in operands)
    b.emit(f"{total} = tl.dot({x}, {y}, {total})" if b.chance(0.8) else f"{total} += tl.dot({x}, {y})")


def _change(b: Builder, state: _State) -> None:
    """Of a tile or of sums."""
    total, tile = b.rng.choice(state.sums), b.rng.choice(state.tiles)
    other = b.rng.choice(state.tiles)
    ways = (
        f"{total} = {total} - {tile}",
        f"{total} = tl.where({tile} > 0, {total}, 1)",
        f"{total} = {total} + tl.sum({tile}.to(tl.int32), 1)[:, None]",
        f"{total} = {total} - tl.max({total}, 0)[None, :]",
        f"{tile} = tl.where({other} > 0, {tile}, {other})",
        f"{tile} = tl.maximum({tile}, {other})",
    )
    b.emit(b.rng.choice(ways))


def _row(b: Builder, state: _State) -> None:
    """An element, stored or loaded and added to the sums."""
    matrix, total = b.rng.choice(state.matrices), b.rng.choice(state.sums)
    row = _row_of(b, state, matrix)
    at = f"{matrix.name} + pid * @size{matrix.number}@ + ({matrix.first} + {row}) * {matrix.width}"
    if b.chance(0.5):
        b.emit(f"{total} += tl.load({at}).to(tl.{state.result})")
    else:
        b.emit(f"tl.store({at}, {_small(state, f'tl.max({b.rng.choice(state.tiles)})')})")


def _update(b: Builder, state: _State) -> None:
    if state.dtype not in ("float32", "float16", "bfloat16") or b.chance(0.5):
        return
    matrix = b.rng.choice(state.matrices)
    pointers = _pointers(state, matrix, _row_of(b, state, matrix), "0", b.chance(0.3))
    b.emit(f"tl.atomic_xchg({pointers}, {_stored(b, state)})" if state.dtype == "float32" else "pass")


def _branch(b: Builder, state: _State) -> None:
    with b.block(f"if {_condition(b, state)}:"):
        before = list(state.tiles)
        for _ in range(b.rng.choice((1, 2))):
            b.rng.choice((_load, _store, _dot, _change))(b, state)
        if b.chance(0.4):
            b.emit(f"{b.rng.choice(before)} = {b.rng.choice(state.tiles)}")
        state.tiles[:] = before
    if b.chance(0.3):
        with b.block("else:"):
            b.rng.choice((_store, _dot, _change))(b, state)


def _leave(b: Builder, state: _State) -> None:
    if not state.loops:
        return
    with b.block(f"if {_condition(b, state)}:"):
        if b.chance(0.3):
            b.rng.choice((_store, _dot, _change))(b, state)
        b.emit(b.rng.choice(("break", "break", "continue", "continue", "return")))


def _condition(b: Builder, state: _State) -> str:
    tile, total = b.rng.choice(state.tiles), b.rng.choice(state.sums)
    index = state.loops[-1].index if state.loops else "pid"
    ways = (
        f"{index} == {b.rng.choice((0, 1, 2, 3))}",
        f"{index} % 2 == 0",
        f"{index} > {b.number('int32', b.rng.choice((0, 1, 2)))}",
        f"tl.sum({tile}.to(tl.int32)) % 3 == 0",
        f"tl.max({total}) > 60",
    )
    return b.rng.choice(ways)

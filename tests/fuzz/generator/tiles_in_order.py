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

from tests.fuzz.generator.builder import Builder, Unfit, Value, statement_of
from tests.fuzz.generator.control import hints, nested
from tests.fuzz.generator.dots import LEAST_K
from tests.fuzz.generator.moved_tiles import Loop, Matrix, State, block_pointer, place, pointers_to, row_of

TYPES = ("float16", "float16", "float16", "bfloat16", "float32", "int8")
MAX_TRIPS = 5


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


def _begin(b: Builder) -> State:
    dtype = b.rng.choice(TYPES)
    size = max(b.rng.choice((16, 32, 32, 64)), LEAST_K.get(dtype, 16))
    matrices = []
    for _ in range(b.rng.choice((1, 1, 2))):
        name = b.array(dtype, 1, "small", prefix="io")
        matrices.append(Matrix(len(b.arguments) - 1, name, size * b.rng.choice((1, 2))))
    state = State(dtype, size, matrices)
    b.emit("# tiles in order")
    state.sums = [
        b.define(f"tl.zeros(({size}, {size}), tl.{state.result})", state.result, state.shape)
        for _ in range(b.rng.choice((1, 1, 2)))
    ]
    for _ in range(b.rng.choice((1, 2))):
        _load(b, state)
    return state


def _settle(b: Builder, state: State) -> None:
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


def _loop(b: Builder, state: State, depth: int) -> None:
    nested(b)
    trips = b.rng.randint(0, MAX_TRIPS)
    first, step = b.rng.choice((0, 0, 0, 1, -2)), b.rng.choice((1, 1, 1, 2, -1))
    loop = Loop(b.name("k"), first, step, trips)
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


def _for(b: Builder, loop: Loop) -> str:
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


def _while(b: Builder, loop: Loop) -> tuple[str, list[str]]:
    """Counts beforehand, so that `continue` may stand anywhere."""
    count = b.name("w")
    b.emit(f"{count} = 0")
    b.emit(f"{loop.index} = {loop.first - loop.step}")
    bound = b.number("int32", loop.trips) if b.chance(0.7) else loop.trips
    return f"while {count} < {bound}:", [f"{count} += 1", f"{loop.index} += {loop.step}"]


def _carry(b: Builder, state: State, loop: Loop) -> tuple[str, bool, str]:
    """A pointer to a tile, and the statement that moves it."""
    matrix, name, is_block = b.rng.choice(state.matrices), b.name("p"), b.chance(0.4)
    row, column = b.rng.choice((0, 1, state.size)), b.rng.choice((0, 0, matrix.width - state.size))
    step = b.rng.choice((state.size, state.size, 1, 0, -state.size))
    matrix.touch(row, row + state.size - 1)
    matrix.touch(row + step * loop.trips, row + step * loop.trips + state.size - 1)
    if is_block:
        b.emit(f"{name} = {block_pointer(state, matrix, f'{matrix.first} + {row}', str(column))}")
        return name, True, f"{name} = tl.advance({name}, ({step}, 0))"
    b.emit(f"{name} = {pointers_to(state, matrix, str(row), str(column), False)}")
    return name, False, f"{name} += {step * matrix.width}"


def _go_on(b: Builder, state: State, kept: list[Value], carried: list[tuple[str, bool, str]]) -> None:
    """Tiles of before the loop become others; pointers move, or change places."""
    for value in kept:
        if b.chance(0.5):
            other = b.rng.choice(state.tiles)
            both = b.rng.choice(kept)
            b.emit(b.rng.choice((f"{value} = {other}", f"{value} = {other}", f"{value}, {both} = {both}, {value}")))
    for _, _, moved in carried:
        b.emit(moved)


# -- statements


def _some(b: Builder, state: State, most: int) -> None:
    ways = (_load, _load, _load, _store, _store, _store, _dot, _change, _row, _branch, _leave, _update)
    for _ in range(b.rng.randint(1, most)):
        b.rng.choice(ways)(b, state)


def _load(b: Builder, state: State) -> None:
    if state.carried and b.chance(0.5):
        name, _ = b.rng.choice(state.carried)
        state.tiles.append(b.define(f"tl.load({name})", state.dtype, state.shape))
        return
    text = place(b, state, "load").format(value="")
    state.tiles.append(b.define(text, state.dtype, state.shape))


def _store(b: Builder, state: State) -> None:
    value = _stored(b, state)
    if state.carried and b.chance(0.4):
        b.emit(f"tl.store({b.rng.choice(state.carried)[0]}, {value})")
        return
    b.emit(place(b, state, "store").format(value=value))


def _stored(b: Builder, state: State) -> str:
    if b.chance(0.4):
        return str(b.rng.choice(state.tiles))
    return _small(state, str(b.rng.choice(state.sums)))


def _small(state: State, text: str) -> str:
    return f"((({text}).to(tl.int32) & 7) - 4).to(tl.{state.dtype})"


def _dot(b: Builder, state: State) -> None:
    total = b.rng.choice(state.sums)
    operands = [b.rng.choice(state.tiles) for _ in range(2)]
    if b.chance(0.15):
        made = _small(state, str(b.rng.choice(state.sums)))
        operands[b.rng.randrange(2)] = b.define(made, state.dtype, state.shape)
    x, y = (f"tl.trans({x})" if b.chance(0.25) else str(x) for x in operands)
    b.emit(f"{total} = tl.dot({x}, {y}, {total})" if b.chance(0.8) else f"{total} += tl.dot({x}, {y})")


def _change(b: Builder, state: State) -> None:
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


def _row(b: Builder, state: State) -> None:
    """An element, stored or loaded and added to the sums."""
    matrix, total = b.rng.choice(state.matrices), b.rng.choice(state.sums)
    row = row_of(b, state, matrix)
    at = f"{matrix.name} + pid * @size{matrix.number}@ + ({matrix.first} + {row}) * {matrix.width}"
    if b.chance(0.5):
        b.emit(f"{total} += tl.load({at}).to(tl.{state.result})")
    else:
        b.emit(f"tl.store({at}, {_small(state, f'tl.max({b.rng.choice(state.tiles)})')})")


def _update(b: Builder, state: State) -> None:
    if state.dtype not in ("float32", "float16", "bfloat16") or b.chance(0.5):
        return
    matrix = b.rng.choice(state.matrices)
    pointers = pointers_to(state, matrix, row_of(b, state, matrix), "0", b.chance(0.3))
    b.emit(f"tl.atomic_xchg({pointers}, {_stored(b, state)})" if state.dtype == "float32" else "pass")


def _branch(b: Builder, state: State) -> None:
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


def _leave(b: Builder, state: State) -> None:
    if not state.loops:
        return
    with b.block(f"if {_condition(b, state)}:"):
        if b.chance(0.3):
            b.rng.choice((_store, _dot, _change))(b, state)
        b.emit(b.rng.choice(("break", "break", "continue", "continue", "return")))


def _condition(b: Builder, state: State) -> str:
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

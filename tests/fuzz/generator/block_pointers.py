"""Block pointers: loaded and stored with some dimensions checked, advanced in loops, exchanged in branches.

A tensor is a part of its array, with room on every side for what is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.generator.builder import FP8, Builder, Unfit, Value, statement_of

DTYPES = ("float32", "float16", "int32", "int8", "uint8", "bfloat16", "int64", "float64", "int16", "float8e5", "int1")
MAX_STEPS = 3


@dataclass(frozen=True)
class Made:
    """The name of a block pointer, and which of its dimensions have to be checked, since they may lead anywhere."""

    name: str
    far: tuple[int, ...]
    rank: int


def block_shape(b: Builder) -> tuple[int, ...]:
    rank = b.rng.choice((1, 2, 2, 2, 3))
    extents = (1, 2, 4) if rank == 3 else (1, 2, 4, 8, 16)
    return tuple(b.rng.choice(extents) for _ in range(rank))


def make(b: Builder, dtype: str, block: tuple[int, ...], fill: str | None, prefix: str) -> Made:
    """A pointer to a block near a tensor's edge; where it is far outside, that dimension has to be checked."""
    sizes = [b.rng.randint(1, 2 * extent) for extent in block]
    rooms = [7 * extent for extent in block]
    strides = _strides(b, rooms)
    size = 1
    for room in rooms:
        size *= room
    array = b.array(dtype, size * b.programs, fill, prefix=prefix)
    first = sum(extent * stride for extent, stride in zip(block, strides, strict=True))
    base = f"{array} + {f'pid * {size} + ' if b.programs > 1 else ''}{first}"
    far = tuple(axis for axis in range(len(block)) if b.chance(0.25))
    offsets = [b.rng.choice((0, 0, extent, 1, -1, -extent)) for extent in block]
    for axis in far:
        offsets[axis] = b.rng.choice((-1000, 1000, sizes[axis], -block[axis], 2**31 - 2 * block[axis]))
    name, order = b.name("p"), list(range(len(block)))
    b.rng.shuffle(order)
    b.emit(
        f"{name} = tl.make_block_ptr({base}, {_texts(b, sizes)}, {_texts(b, strides)}, {_texts(b, offsets)}, "
        f"{block}, {tuple(order)})"
    )
    return Made(name, far, len(block))


def _strides(b: Builder, rooms: list[int]) -> list[int]:
    """Those of an array of these extents, with its dimensions in any order in memory."""
    axes, strides, step = list(range(len(rooms))), [0] * len(rooms), 1
    if b.chance(0.4):
        b.rng.shuffle(axes)
    for axis in reversed(axes):
        strides[axis] = step
        step *= rooms[axis]
    return strides


def _texts(b: Builder, numbers: list[int]) -> str:
    """A tuple of constants and arguments."""
    found = []
    for number in numbers:
        text = str(b.number("int32", number)) if b.chance(0.3) else str(number)
        wide = b.chance(0.05) and text[0] == "n"
        found.append(f"{text}.to(tl.int64)" if wide else text)
    return f"({', '.join(found)},)"


def _checked(b: Builder, made: Made) -> str:
    axes = [axis for axis in range(made.rank) if axis in made.far or b.chance(0.5)]
    return f"boundary_check={tuple(axes)}"


def _load(b: Builder, made: Made, dtype: str) -> str:
    padding = b.rng.choice(("", ', padding_option="zero"', *((', padding_option="nan"',) if "fl" in dtype else ())))
    return f"tl.load({made.name}, {_checked(b, made)}{padding})"


def _advance(b: Builder, made: Made, block: tuple[int, ...]) -> str:
    steps = tuple(b.rng.choice((0, 0, 1, extent)) for extent in block)
    return f"tl.advance({made.name}, {steps})" if b.chance(0.7) else f"{made.name}.advance({steps})"


def _seen(dtype: str) -> str:
    """The type of what is loaded: a bool is a byte."""
    return "int8" if dtype == "int1" else dtype


@statement_of("block pointer")
def load_block(b: Builder) -> None:
    dtype, block = b.rng.choice(DTYPES), block_shape(b)
    made = make(b, dtype, block, None, "x")
    for _ in range(b.rng.choice((1, 1, 2))):
        b.define(_load(b, made, dtype), _seen(dtype), block)
        b.emit(f"{made.name} = {_advance(b, made, block)}")


@statement_of("block pointer")
def store_block(b: Builder) -> None:
    value = b.pick(lambda v: v.dtype in DTYPES[:-1] and v.shape and len(v.shape) <= 3 and v.numel <= 256)
    made = make(b, value.dtype, value.shape, "poison", "out")
    b.emit(f"tl.store({made.name}, {value}, {_checked(b, made)})")


@statement_of("block pointer")
def walk(b: Builder) -> None:
    """Two pointers that a loop moves, and a branch exchanges."""
    dtype, block = b.rng.choice(DTYPES[:-1]), block_shape(b)
    if b.depth > 2 or dtype in FP8:
        raise Unfit
    made, other = (make(b, dtype, block, None, "x") for _ in range(2))
    both = Made(made.name, tuple({*made.far, *other.far}), made.rank)
    total: Value = b.define(f"tl.zeros({block}, dtype=tl.{dtype})", dtype, block)
    counter, is_while = b.name("k"), b.chance(0.3)
    if is_while:
        b.emit(f"{counter} = 0")
    limit = b.rng.randint(1, MAX_STEPS)
    with b.block(f"while {counter} < {limit}:" if is_while else f"for {counter} in range({limit}):"):
        b.emit(f"{total} = {total} + {_load(b, both, dtype)}")
        b.emit(f"{made.name} = {_advance(b, both, block)}")
        if b.chance(0.5):
            with b.block(f"if {counter} > {b.rng.choice((0, 1))}:"):
                b.emit(f"{made.name}, {other.name} = {other.name}, {made.name}")
        if is_while:
            b.emit(f"{counter} += 1")

"""Descriptors of one to five dimensions, made anywhere, and accesses through them one after the other.

    for k in range(n):
        d = tl.make_tensor_descriptor(io + k * 16, [7, n], [s, 1], [4, 16])        in each iteration, or in a branch
        d.store([k, -0 + k * 8], d.load([2147483647, -3]) + 1)                     to where it was, and will be, loaded
        tl.store(io + ..., ...); v = d.load([0, 1])                                by pointers and by blocks

Sizes are odd, rows farther apart than they are long, offsets in front of, behind and far from the tensor.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from tests.fuzz.case import BITS
from tests.fuzz.generator.builder import FP8, Builder, Unfit, Value, shape_text, statement_of
from tests.fuzz.generator.control import hints
from tests.fuzz.generator.descriptors import DTYPES, REDUCED
from tests.fuzz.generator.memory import strided

MOST_ELEMENTS = 1 << 10
FAR = (2**31 - 1, 2**31 - 8, 2**30)


@dataclass(frozen=True)
class Tensor:
    """A part of an array for each program, with room for a base that moves on by `step` elements."""

    array: str
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    step: int
    part: int

    def made(self, b: Builder, moved: str = "0") -> str:
        sizes = ", ".join(self._number(b, size) for size in self.sizes)
        strides = ", ".join([*(self._number(b, stride) for stride in self.strides[:-1]), "1"])
        padding = ', padding_option="nan"' if self.dtype in ("float32", "float16") and b.chance(0.2) else ""
        base = f"{self.array} + pid * {self.part} + {moved} * {self.step}"
        return f"tl.make_tensor_descriptor({base}, [{sizes}], [{strides}], {list(self.block)}{padding})"

    def _number(self, b: Builder, value: int) -> str:
        return str(b.number("int32", value)) if b.chance(0.4) else str(value)


def tensor(b: Builder, dtype: str, fill: str) -> Tensor:
    least = max(128 // BITS[dtype], 1)
    while True:
        block = tuple(b.rng.choice((1, 2, 4, 8, 16)) for _ in range(b.rng.choice((0, 1, 1, 1, 2, 3, 4))))
        block = (*block, least * b.rng.choice((1, 1, 2, 4, 8)))
        if Value("", dtype, block).numel <= MOST_ELEMENTS:
            break
    sizes = tuple(max(extent * b.rng.choice((1, 1, 2)) - b.rng.choice((0, 0, 1, 3)), 1) for extent in block)
    strides, reach = [1], sizes[-1]
    for size in reversed(sizes[:-1]):
        strides.insert(0, reach + -reach % least + least * b.rng.choice((0, 0, 1)))
        reach = strides[0] * size
    step = least * b.rng.choice((0, 1, 2))
    part = reach + 3 * step + 64
    part += -part % 64
    array = b.array(dtype, part * b.programs, fill, prefix="io")
    return Tensor(array, dtype, sizes, tuple(strides), block, step, part)


def place(b: Builder, tensor: Tensor, index: str | None, is_stored: bool) -> str:
    found = []
    for extent, size in zip(tensor.block, tensor.sizes, strict=True):
        choices = [0, 0, 0, extent, size // 2, 1, size, size - 1, *([] if is_stored else (-1, -extent, -extent - 1))]
        offset = b.rng.choice(choices if b.chance(0.95) else FAR)
        text = str(b.number("int32", offset)) if b.chance(0.3) else str(offset)
        found.append(
            f"{text} + {index} * {b.rng.choice((1, extent))}" if index and b.chance(0.4) and offset < 99 else text
        )
    return f"[{', '.join(found)}]"


@statement_of("any descriptor")
def accesses(b: Builder) -> None:
    """Some, through descriptors made before a loop or branch, or within it."""
    if b.depth > 1:
        raise Unfit
    dtype = b.rng.choice(DTYPES)
    one = tensor(b, dtype, b.rng.choice(("small", "normal", "special")))
    name, index = b.name("d"), None
    total = b.define(f"tl.zeros({shape_text(one.block)}, tl.{dtype})", dtype, one.block)
    b.emit(f"{name} = {one.made(b)}")
    where = b.rng.choice(("alone", "loop", "loop", "branch"))
    block = nullcontext()
    if where == "loop":
        index, trips = b.name("k"), b.rng.randint(0, 3)
        bound = b.number("int32", trips) if b.chance(0.6) else trips
        block = b.block(f"for {index} in tl.range(0, {bound}{b.rng.choice(('', f', {hints(b)}'))}):")
    elif where == "branch":
        block = b.block(f"if {b.value('int1', ())}:")
    with block:
        if where != "alone" and b.chance(0.5):
            b.emit(f"{name} = {one.made(b, index or '1')}")
        for _ in range(b.rng.choice((1, 2, 3))):
            b.rng.choice(ACCESSES)(b, one, name, index, total)
    if where == "branch" and b.chance(0.5):
        with b.block("else:"):
            b.emit(f"{name} = {one.made(b, '2')}")
    if b.chance(0.4):
        _load(b, one, name, None, total)


def _load(b: Builder, one: Tensor, name: str, index: str | None, total: Value) -> None:
    loaded = b.define(f"{name}.load({place(b, one, index, False)})", one.dtype, one.block)
    odd = f"({strided(one.block, list(range(len(one.block))))}) % 2 == 0"
    b.emit(f"{total} = tl.where({odd}, {loaded}, {total})" if one.dtype in FP8 else f"{total} = {total} + {loaded}")


def _stored(b: Builder, one: Tensor, total: Value) -> str:
    """What was summed, or the block's indices."""
    if one.dtype in FP8 or b.chance(0.5):
        return str(total)
    return f"({strided(one.block, list(range(len(one.block))))}).to(tl.{one.dtype})"


def _store(b: Builder, one: Tensor, name: str, index: str | None, total: Value) -> None:
    b.emit(f"{name}.store({place(b, one, index, True)}, {_stored(b, one, total)})")


def _reduce(b: Builder, one: Tensor, name: str, index: str | None, total: Value) -> None:
    kinds = [kind for kind, dtypes in REDUCED.items() if one.dtype in dtypes]
    if not kinds:
        return
    b.emit(f"{name}.atomic_{b.rng.choice(kinds)}({place(b, one, index, True)}, {_stored(b, one, total)})")


def _by_pointers(b: Builder, one: Tensor, name: str, index: str | None, total: Value) -> None:
    """Loaded or stored in the same array, next to what blocks are."""
    size = min(total.numel, one.part)
    at = f"{one.array} + pid * {one.part} + tl.arange(0, {size})"
    if one.dtype in FP8 or b.chance(0.5):
        b.define(f"tl.load({at})", one.dtype, (size,))
    else:
        b.emit(f"tl.store({at}, tl.arange(0, {size}).to(tl.{one.dtype}), mask=tl.arange(0, {size}) < {one.part})")


def _rows(b: Builder, one: Tensor, name: str, index: str | None, total: Value) -> None:
    """Gathered from, or scattered to, another descriptor of the same array, of parts of rows."""
    if len(one.sizes) != 2:
        return
    rows, count = b.name("d"), b.rng.choice((1, 4, 8, 16, 32))
    parts = Tensor(one.array, one.dtype, one.sizes, one.strides, (1, one.block[1]), one.step, one.part)
    b.emit(f"{rows} = {parts.made(b)}")
    numbers = f"(tl.arange(0, {count}) * {b.rng.choice((1, 2, -1, 3))} + {b.rng.choice((0, 1, -1))})"
    loaded = b.define(f"{rows}.gather({numbers}, {b.rng.choice((0, 0, 1, -1))})", one.dtype, (count, one.block[1]))
    if b.chance(0.4):
        b.emit(f"{rows}.scatter({loaded}, {numbers}, {b.rng.choice((0, 0, 1))})")


ACCESSES = (_load, _load, _store, _store, _reduce, _by_pointers, _rows)

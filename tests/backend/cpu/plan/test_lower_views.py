"""Random chains of ops that only say where elements are: reshape, split, join, trans, expand_dims, broadcast, cat.

What reads them is of every kind: stores, reductions along one axis and all, scans, dots, loops and branches that
carry them. Elements are small whole numbers, so that every result is exact. The interpreter says what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

import deuteron.language as tl
from tests.backend.cpu.plan.kernel_writer import KernelWriter, import_kernel

LARGEST = 1024

Shape = tuple[int, ...]


class Writer(KernelWriter):
    """A kernel that stores its last tiles; `tiles` are names with their shapes, in order."""

    head = """import deuteron.language as tl
def kernel(A, O, steps, flag):
"""

    def __init__(self, seed: int, length: int):
        super().__init__(seed)
        self.tiles: list[tuple[str, Shape]] = []
        self.stored = 0
        for _ in range(2):
            self.load()
        self.block(length)
        for name, shape in self.tiles[-3:]:
            self.store(name, shape)

    def define(self, expression: str, shape: Shape) -> str:
        name = self.new_name()
        self.line(f"{name} = {expression}")
        self.tiles.append((name, shape))
        return name

    def pick(self, fits: Callable[[Shape], bool] = lambda shape: True) -> tuple[str, Shape] | None:
        found = [tile for tile in self.tiles[-5:] if fits(tile[1])]
        return self.random.choice(found) if found else None

    def factors(self, count: int) -> Shape:
        """A random shape of so many elements, a power of two."""
        shape = []
        while count > 1 and len(shape) < 3:
            shape.append(2 ** self.random.randrange(0, count.bit_length()))
            count //= shape[-1]
        self.random.shuffle(shape)
        return (*shape, count)

    def index(self, shape: Shape) -> str:
        """The offsets of a shape in row-major order."""
        terms, stride = [], prod(shape)
        for axis, extent in enumerate(shape):
            stride //= extent
            place = ", ".join(":" if axis == other else "None" for other in range(len(shape)))
            terms.append(f"tl.arange(0, {extent})[{place}] * {stride}")
        return " + ".join(terms)

    def load(self) -> None:
        shape = self.factors(2 ** self.random.randrange(3, 10))
        self.define(f"tl.load(A + {self.random.randrange(100)} + {self.index(shape)})", shape)

    def store(self, name: str, shape: Shape) -> None:
        self.line(f"tl.store(O + {self.stored} + {self.index(shape)}, {name})")
        self.stored += prod(shape)

    def block(self, length: int) -> None:
        kinds = [self.reshape, self.reshape, self.split, self.split, self.join, self.trans, self.widen, self.cat]
        kinds += [self.compute, self.reduce, self.reduce, self.scan, self.dot, self.load]
        for _ in range(length):
            self.random.choice(kinds + [self.loop, self.loop, self.branch] * (self.indent < 2))()

    def reshape(self) -> None:
        name, shape = self.pick()
        to = self.factors(prod(shape))
        self.define(f"tl.reshape({name}, {to})", to)

    def split(self) -> None:
        found = self.pick(lambda shape: prod(shape) >= 4)
        if found is None:
            return
        name, shape = found
        if shape[-1] != 2:
            shape = (*self.factors(prod(shape) // 2), 2)
            name = self.define(f"tl.reshape({name}, {shape})", shape)
        halves = self.new_name(), self.new_name()
        self.line(f"{', '.join(halves)} = tl.split({name})")
        self.tiles += [(half, shape[:-1]) for half in self.random.sample(halves, 2)]

    def join(self) -> None:
        name, shape = self.pick()
        other, _ = self.pick(lambda s: s == shape)
        if 2 * prod(shape) <= LARGEST and len(shape) < 4:
            self.define(f"tl.join({name}, {other})", (*shape, 2))

    def cat(self) -> None:
        found = self.pick(lambda s: len(s) == 1 and 2 * s[0] <= LARGEST)
        if found:
            other, _ = self.pick(lambda s: s == found[1])
            self.define(f"tl.cat({found[0]}, {other}, can_reorder=True)", (2 * found[1][0],))

    def trans(self) -> None:
        name, shape = self.pick()
        order = self.random.sample(range(len(shape)), len(shape))
        self.define(f"tl.permute({name}, {tuple(order)})", tuple(shape[axis] for axis in order))

    def widen(self) -> None:
        name, shape = self.pick()
        axis = self.random.randrange(len(shape) + 1)
        to = (*shape[:axis], self.random.choice([1, 2, 4]), *shape[axis:])
        if prod(to) <= LARGEST and len(to) <= 4:
            self.define(f"tl.broadcast_to(tl.expand_dims({name}, {axis}), {to})", to)

    def compute(self) -> None:
        name, shape = self.pick()
        other, _ = self.pick(lambda s: s == shape)
        self.define(self.random.choice([f"({name} + {other}) & 63", f"tl.maximum({name}, {other} ^ 5)"]), shape)

    def reduce(self) -> None:
        name, shape = self.pick()
        kind = self.random.choice(["sum", "max", "xor_sum"])
        if self.random.random() < 0.5:
            self.define(f"tl.full((2,), 1, tl.int32) * (tl.{kind}({name}) & 63)", (2,))
        elif len(shape) > 1:
            axis = self.random.randrange(len(shape))
            self.define(f"tl.{kind}({name}, {axis}) & 63", shape[:axis] + shape[axis + 1 :])

    def scan(self) -> None:
        name, shape = self.pick()
        self.define(f"tl.cumsum({name}, {self.random.randrange(len(shape))}) & 63", shape)

    def dot(self) -> None:
        found = self.pick(lambda shape: prod(shape) >= 256)
        if not found:
            return
        count = prod(found[1])
        batch = self.random.choice([(), (2,)] if count >= 512 else [()])
        depth = count // prod(batch) // 16
        a = self.as_shape(*found, (*batch, 16, depth))
        b = self.as_shape(*self.pick(lambda shape: prod(shape) == count), (*batch, depth, 16))
        if self.random.random() < 0.5:
            b = self.as_shape(*found, (*batch, 16, depth))
            b = f"tl.permute({b}, (0, 2, 1))" if batch else f"tl.trans({b})"
        type = self.random.choice(["float32", "int8"])
        self.define(f"tl.dot({a}.to(tl.{type}), {b}.to(tl.{type})).to(tl.int32) & 63", (*batch, 16, 16))

    def as_shape(self, name: str, shape: Shape, to: Shape) -> str:
        return name if shape == to else self.define(f"tl.reshape({name}, {to})", to)

    def loop(self) -> None:
        carried = self.random.sample(self.tiles[-5:], min(len(self.tiles), self.random.randrange(1, 4)))
        names = [self.define(name, shape) for name, shape in carried]
        kind = self.random.choice(["for", "for", "while"])
        if kind == "while":
            counter = f"c{self.count}"
            self.line(f"{counter} = 0")
            self.line(f"while {counter} < steps:")
        else:
            self.line(f"for _ in range({self.random.choice(['2', 'steps', 'steps'])}):")

        def body() -> None:
            if kind == "while":
                self.line(f"{counter} += 1")
            self.block(self.random.randrange(1, 4))
            targets = list(zip(names, carried, strict=True))
            following = [self.following(name, shape) for name, (_, shape) in targets]
            self.line(f"{', '.join(names)} = {', '.join(following)}")

        self.inside(body)

    def following(self, name: str, shape: Shape) -> str:
        """What a loop carries on: itself advanced, another tile, or another one in this shape."""
        if self.random.random() < 0.4:
            return self.random.choice([f"{name} + 1", f"{name} + steps", f"({name} * 3) & 63"])
        other, found = self.random.choice([tile for tile in self.tiles if prod(tile[1]) == prod(shape)][-6:])
        return other if found == shape else f"tl.reshape({other}, {shape})"

    def branch(self) -> None:
        name, shape = self.pick()
        target = self.define(name, shape)

        def body() -> None:
            self.block(2)
            self.line(f"{target} = {self.following(target, shape)}")

        self.line("if flag:")
        self.inside(body)
        self.line("else:")
        self.inside(body)


def check_random(compare, path, seed: int, length: int) -> None:
    writer = Writer(seed, length)
    print(f"seed {seed}, length {length}\n{writer.source()}")
    rng = np.random.default_rng(seed)
    args = [rng.integers(0, 64, 1024).astype(np.int32), np.full(writer.stored, -1, np.int32)]
    args += [int(rng.integers(4)), bool(rng.integers(2))]
    compare(import_kernel(writer.source(), path), args)


@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(20))
def test_random_chain(compare, rng, tmp_path, number):
    check_random(compare, tmp_path / "views.py", int(rng.integers(1 << 32)), 4 + number % 8)


def halves_of_halves(x, out):
    a, b = tl.split(tl.reshape(tl.load(x + tl.arange(0, 64)), (32, 2)))
    c, d = tl.split(tl.reshape(a, (4, 4, 2)))
    i = tl.arange(0, 4)
    tl.store(out + i[:, None] * 4 + i[None, :], c)
    tl.store(out + 16 + tl.arange(0, 16), tl.reshape(d, (16,)))
    tl.store(out + 32, tl.sum(a))
    tl.store(out + 33, tl.max(tl.reshape(b, (8, 4))))
    tl.store(out + 34 + i, tl.sum(tl.reshape(b, (8, 4)), 0))


def test_a_view_of_a_half_has_every_second_element(compare, rng):
    compare(halves_of_halves, [rng.integers(0, 99, 64).astype(np.int32), np.zeros(38, np.int32)])


def dots_of_halves(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    pair = tl.load(x + 2 * at[:, :, None] + tl.arange(0, 2)[None, None, :])
    a, b = tl.split(pair)
    c = tl.reshape(tl.reshape(b, (N * N,)), (N, N))
    tl.store(out + at, tl.dot(tl.trans(a), tl.dot(c, a)))


def test_dots_of_views(compare, rng):
    compare(dots_of_halves, [rng.integers(0, 4, 512).astype(np.float32), np.zeros(256, np.float32)], {"N": 16})


def incremented(x, out, n):
    tile = tl.load(x + tl.arange(0, 16))
    for i in range(n):
        tl.store(out + i, tl.sum(tile))
        a, b = tl.split(tl.reshape(tile, (8, 2)))
        tl.store(out + 8 + i, tl.max(a) - tl.min(b))
        tile = tile + 1
    tl.store(out + 7, tl.sum(tl.reshape(tile, (4, 4))))


def test_views_of_a_tile_that_a_loop_increments(compare, rng):
    compare(incremented, [rng.integers(0, 99, 16).astype(np.int32), np.zeros(16, np.int32), 5])


def exchanged(x, out, n):
    i = tl.arange(0, 4)
    flat, square = tl.load(x + tl.arange(0, 16)), tl.load(x + 16 + i[:, None] * 4 + i[None, :])
    for _ in range(n):
        flat, square = tl.reshape(square, (16,)), tl.reshape(flat, (4, 4))
    tl.store(out + tl.arange(0, 16), flat)
    tl.store(out + 16 + i[:, None] * 4 + i[None, :], square)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_tiles_of_a_loop_change_places_and_shapes(compare, rng, n):
    compare(exchanged, [rng.integers(0, 99, 32).astype(np.int32), np.zeros(32, np.int32), n])

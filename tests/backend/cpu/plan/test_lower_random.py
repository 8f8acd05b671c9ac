"""Random kernels: what is kept, fused, written in place and carried must not be seen in the results.

Each is some twenty statements on tiles of four shapes: elementwise work, reductions, transpositions, products, loads
and stores that overlap, loops that carry tiles, branches. The interpreter says what is right; nothing jumps, as choices
between sums that are rounded in another order would.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.backend.cpu.plan.kernel_writer import KernelWriter, import_kernel

INDEX = {"MN": "i[:, None] * N + j[None, :]", "NM": "j[:, None] * M + i[None, :]", "M": "i", "N": "j"}
MASK = {"MN": "(i[:, None] < n) & (j[None, :] < n)", "NM": "j[:, None] < n", "M": "i < n", "N": "j < n"}
SHAPES = (*INDEX, "S")


class Writer(KernelWriter):
    """A kernel of twenty statements; at the end it stores the last tiles of each shape."""

    head = """import deuteron.language as tl
def kernel(A, B, O, n, steps, flag, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
"""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.tiles = {shape: [] for shape in SHAPES}
        self.M, self.N = self.random.choice([1, 4, 16, 32]), self.random.choice([1, 2, 16, 64])
        self.block(20)
        for shape in SHAPES:
            for name in self.tiles[shape][-2:]:
                self.store(shape, name)

    def shape(self) -> str:
        return self.random.choice(["MN", "MN", *SHAPES])

    def tile(self, shape: str) -> str:
        return self.random.choice(self.tiles[shape][-6:]) if self.tiles[shape] else self.load(shape)

    def address(self, array: str, shape: str) -> str:
        offset = f"{array} + {self.random.randrange(300)}"
        return f"{offset} + {INDEX[shape]}" if shape in INDEX else offset

    def load(self, shape: str) -> str:
        mask = f", mask={MASK[shape]}, other=1.5" if shape in MASK and self.random.random() < 0.4 else ""
        return self.define(shape, f"tl.load({self.address(self.random.choice('AB'), shape)}{mask})")

    def store(self, shape: str, name: str) -> None:
        mask = f", mask={MASK[shape]}" if shape in MASK and self.random.random() < 0.3 else ""
        self.line(f"tl.store({self.address(self.random.choice('AOO'), shape)}, {name}{mask})")

    def block(self, length: int) -> None:
        for _ in range(length):
            kinds = [self.compute] * 6 + [self.reduce, self.reduce, self.move, self.read, self.write]
            self.random.choice(kinds + [self.loop, self.branch] * (self.indent < 2))()

    def compute(self) -> None:
        shape = self.shape()
        x, y, z = (self.tile(shape) for _ in range(3))
        forms = [f"{x} + {y}", f"{x} * {y}", f"tl.exp(-tl.abs({x}))", f"{x} / (tl.abs({y}) + 1.0)"]
        forms += [f"tl.where({x} > {y}, {x} - {y}, 0.0) + {z}", f"{x} - {self.tile('S')}"]
        self.define(shape, self.random.choice(forms))

    def reduce(self) -> None:
        axis, kind = self.random.randrange(2), self.random.choice(["sum", "max"])
        self.define("NM"[axis], f"tl.{kind}({self.tile('MN')}, {axis}) * 0.125")
        self.define("S", f"tl.{kind}({self.tile('NM'[axis])}, 0) * 0.125")

    def move(self) -> None:
        a, b, row, column = self.tile("MN"), self.tile("NM"), self.tile("N"), self.tile("M")
        forms = [("NM", f"tl.trans({a})"), ("MN", f"tl.trans({b})"), ("NM", f"tl.reshape({a}, (N, M))")]
        forms += [
            ("MN", f"{a} + {column}[:, None]"),
            ("MN", f"{a} * {row}[None, :]"),
            ("MN", f"tl.cumsum({a}, 0) * 0.1"),
        ]
        if min(self.M, self.N) >= 16:
            forms += [("MN", f"tl.dot(tl.dot({a}, {b}) * 0.01, {a}, {self.tile('MN')}) * 0.1")] * 3
        self.define(*self.random.choice(forms))

    def read(self) -> None:
        self.load(self.shape())

    def write(self) -> None:
        shape = self.shape()
        self.store(shape, self.tile(shape))

    def loop(self) -> None:
        shapes = [self.shape() for _ in range(self.random.randrange(1, 4))]
        names = [self.define(shape, self.tile(shape)) for shape in shapes]
        self.line(f"for _ in range({self.random.choice(['0', '1', 'steps', 'steps'])}):")

        def body() -> None:
            self.block(self.random.randrange(1, 6))
            following = [self.random.choice([self.tile(s), f"tl.minimum({self.tile(s)}, 3.0)"]) for s in shapes]
            self.line(f"{', '.join(names)} = {', '.join(following)}")

        self.inside(body)

    def branch(self) -> None:
        shape = self.shape()
        name = self.define(shape, self.tile(shape))
        condition = self.random.choice(["flag", "steps > 2", f"{self.tile('S')} > 0.3"])

        def body() -> None:
            self.block(2)
            self.line(f"{name} = {self.tile(shape)} * 0.5")

        self.line(f"if {condition}:")
        self.inside(body)
        self.line("else:")
        self.inside(body)


@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(24))
def test_random_kernel(compare, rng, tmp_path, number):
    writer = Writer(int(rng.integers(1 << 32)))
    source = writer.source()
    print(source)
    arrays = [rng.standard_normal(4096).astype(np.float32) for _ in range(2)]
    args = [*arrays, np.full(4096, 7, np.float32), int(rng.integers(40)), int(rng.integers(5)), bool(rng.integers(2))]
    kernel = import_kernel(source, tmp_path / "random_kernel.py")
    compare(kernel, args, {"M": writer.M, "N": writer.N}, tolerance=2e-3)

"""Random kernels whose loads, stores and atomics meet: shifted, strided, masked, narrowed, by pointers that change.

Loads are computed where they are read, and stores share loops: none of that must be seen. A statement is done for the
whole tile before the next one, as the interpreter does it. No two lanes of a store have one address.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.backend.cpu.plan.kernel_writer import KernelWriter, import_kernel

INDEX = {
    "N": "i",
    "M": "r",
    "MN": "(r[:, None] * N + i[None, :])",
    "NM": "(i[:, None] * M + r[None, :])",
}
LAST = {"N": "i", "M": "r", "MN": "i[None, :]", "NM": "r[None, :]"}
SHAPES = (*INDEX, "S")
# P and Q are pointers that change
ELEMENTS = {"A": "tl.int32", "D": "tl.int32", "P": "tl.int32", "Q": "tl.int32", "B": "tl.int64", "C": "tl.int8"}
LENGTH = 4200


class Writer(KernelWriter):
    """A kernel of some statements; at the end it stores what it knows."""

    head = """import deuteron.language as tl
def kernel(A, B, C, D, O, n, steps, flag, M: tl.constexpr, N: tl.constexpr):
    i, r = tl.arange(0, N), tl.arange(0, M)
    P, Q = A, D
"""

    def __init__(self, seed: int, length: int):
        super().__init__(seed)
        self.M, self.N = self.random.choice([1, 2, 4, 8, 16]), self.random.choice([1, 2, 8, 16, 32, 64])
        self.tiles = {shape: [] for shape in SHAPES}
        self.stored = 0
        self.block(length)
        sizes = {"N": self.N, "M": self.M, "MN": self.M * self.N, "NM": self.M * self.N, "S": 1}
        for shape, names in self.tiles.items():
            for name in names[-2:]:
                self.line(f"tl.store(O + {self.stored}{f' + {INDEX[shape]}' if shape in INDEX else ''}, {name})")
                self.stored += sizes[shape]

    def block(self, length: int) -> None:
        kinds = [self.compute] * 5 + [self.load] * 3 + [self.store] * 4 + [self.atomic, self.chosen, self.exchange]
        for _ in range(length):
            self.random.choice(kinds + [self.loop, self.branch] * (self.indent < 2))()

    def shape(self) -> str:
        return self.random.choice(["N", "N", "MN", "MN", "NM", "M", "S"])

    def tile(self, shape: str) -> str:
        is_old = self.tiles[shape] and self.random.random() < 0.9
        return self.random.choice(self.tiles[shape][-5:]) if is_old else self.load(shape)

    def address(self, array: str, shape: str) -> str:
        offset = self.random.choice([0, 0, 1, 2, 3, 7, self.random.randrange(200)])
        if shape == "S":
            return f"{array} + {offset}"
        forms = [f"{offset} + {INDEX[shape]}"] * 6 + [f"{offset} + {INDEX[shape]} * 2", f"{INDEX[shape]} + steps"]
        forms += [f"{offset + 1100} - {INDEX[shape]}", f"{offset} + ({INDEX[shape]} ^ 1)"]
        return f"{array} + {self.random.choice(forms)}"

    def mask(self, shape: str) -> str:
        if shape == "S" or self.random.random() < 0.5:
            return ""
        at = LAST[shape]
        forms = [
            f"{at} < n",
            f"{at} == 0",
            f"({at} & 1) == 0",
            f"{at} >= 2",
            f"{at} == n",
            f"({at} == 0) | ({at} == 3)",
        ]
        return f", mask=({self.random.choice(forms)}) & ({INDEX[shape]} >= 0)"

    def load(self, shape: str = "") -> str:
        shape = shape or self.shape()
        mask = self.mask(shape)
        other = f", other={self.random.choice([0, 5])}" if mask else ""
        array = self.random.choice("APQDPQBC")
        return self.define(shape, f"tl.load({self.address(array, shape)}{mask}{other}).to(tl.int32)")

    def store(self) -> None:
        shape, array = self.shape(), self.random.choice("APQDPQBC")
        value = self.random.choice(["{}", "({}.to(tl.int64) * 3 + 1)"]).format(self.tile(shape))
        self.line(f"tl.store({self.address(array, shape)}, {value}.to({ELEMENTS[array]}){self.mask(shape)})")

    def atomic(self) -> None:
        shape, array, mask = self.shape(), self.random.choice("APQB"), ""
        value, kind = self.tile(shape), self.random.choice(["add", "max", "xchg", "and", "or"])
        is_used = self.random.random() < 0.5
        if not is_used:
            mask = self.mask(shape)
        call = f"tl.atomic_{kind}({self.address(array, shape)}, {value}.to({ELEMENTS[array]}){mask})"
        if is_used:
            self.define(shape, f"{call}.to(tl.int32)")
        else:
            self.line(call)

    def chosen(self) -> None:
        """A load through pointers of which each lane has one of two."""
        shape = self.random.choice(["N", "MN"])
        even = f"({self.tile(shape)} & 1) == 0"
        pointers = f"P + {INDEX[shape]}, Q + {INDEX[shape]} + {self.random.choice([0, 1, 300])}"
        self.define(shape, f"tl.load(tl.where({even}, {pointers}))")

    def exchange(self) -> None:
        self.line(self.random.choice(["P, Q = Q, P", "P = A + 3", "Q = P", "Q = D"]))

    def compute(self) -> None:
        shape = self.shape()
        x, y, z = (self.tile(shape) for _ in range(3))
        forms = [f"{x} + {y}", f"{x} * 3 - {y}", f"tl.where({x} > {y}, {z}, {x})", f"{x} ^ {self.tile('S')}"]
        forms += [f"{x}.to(tl.int8).to(tl.int32)", f"({x}.to(tl.int64) * {y}.to(tl.int64) >> 3).to(tl.int32)"]
        self.define(shape, self.random.choice(forms + self.moves(shape)))

    def moves(self, shape: str) -> list[str]:
        """What makes a tile of this shape out of tiles of others."""
        if shape == "MN":
            row, column, other = self.tile("N"), self.tile("M"), self.tile("NM")
            x = self.tile("MN")
            return [f"{x} + {row}[None, :]", f"{x} ^ {column}[:, None]", f"tl.trans({other})", f"tl.cumsum({x}, 0)"]
        forms = {
            "NM": [f"tl.trans({self.tile('MN')})"],
            "N": [f"tl.sum({self.tile('MN')}, 0)", f"tl.max({self.tile('NM')}, 1)"],
            "M": [f"tl.sum({self.tile('MN')}, 1)"],
            "S": [f"tl.sum({self.tile('N')}, 0)", f"tl.max({self.tile('MN')})"],
        }
        return forms[shape]

    def loop(self) -> None:
        shapes = [self.shape() for _ in range(self.random.randrange(1, 4))]
        names = [self.define(shape, self.tile(shape)) for shape in shapes]
        pointers, array, shape = self.new_name("p"), self.random.choice("APQB"), self.random.choice(["N", "MN"])
        self.line(f"{pointers} = {array} + {INDEX[shape]}")
        counter = self.new_name("c")
        is_while = self.random.random() < 0.3
        self.line(f"{counter} = 0")
        self.line(f"while {counter} < steps:" if is_while else f"for _ in range({self.random.choice(['steps', '2'])}):")

        def body() -> None:
            if is_while:
                self.line(f"{counter} += 1")
            self.define(shape, f"tl.load({pointers}).to(tl.int32)")
            self.block(self.random.randrange(1, 5))
            if self.random.random() < 0.5:
                offset = self.random.randrange(5)
                self.line(f"tl.store({pointers} + {offset}, {self.tile(shape)}.to({ELEMENTS[array]}))")
            self.line(f"{pointers} += {self.random.choice(['1', '2', 'N', 'steps'])}")
            following = [
                self.random.choice([self.tile(s), f"{name} + 1"]) for s, name in zip(shapes, names, strict=True)
            ]
            self.line(f"{', '.join(names)} = {', '.join(following)}")

        self.inside(body)

    def branch(self) -> None:
        shape = self.shape()
        name = self.define(shape, self.tile(shape))
        condition = self.random.choice(["flag", "steps > 1", f"{self.tile('S')} > 3"])

        def body() -> None:
            self.block(2)
            self.line(f"{name} = {self.tile(shape)}")

        self.line(f"if {condition}:")
        self.inside(body)
        if self.random.random() < 0.6:
            self.line("else:")
            self.inside(body)


def check_random(compare, path, seed: int, length: int) -> None:
    writer = Writer(seed, length)
    print(f"seed {seed}, length {length}\n{writer.source()}")
    rng = np.random.default_rng(seed)
    types = (np.int32, np.int64, np.int8, np.int32)
    arrays = [rng.integers(-100, 100, LENGTH).astype(type) for type in types]
    args = [*arrays, np.full(writer.stored + 1, -7, np.int32), int(rng.integers(20)), int(rng.integers(4))]
    kernel = import_kernel(writer.source(), path)
    compare(kernel, [*args, bool(rng.integers(2))], {"M": writer.M, "N": writer.N}, cpus=("native",))


@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(16))
def test_random_order(compare, rng, tmp_path, number):
    check_random(compare, tmp_path / "order.py", int(rng.integers(1 << 32)), 6 + number)

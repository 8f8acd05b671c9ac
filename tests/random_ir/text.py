"""The text of a kernel as it grows, and the values that there are of each kind.

tile, total     an operand of dots, what they are added to
pointers, mask  of a tile
rows            a column of numbers of rows
number, bit     from 0 to 7; a condition
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

TILES = 8  # of an array
SUMS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32", "f64": "f64"}
KINDS = ("tile", "total", "pointers", "mask", "rows", "number", "bit")


class Text:
    """Lines, and names of values; `size` by `size` is a tile of `element`."""

    def __init__(self, rng: random.Random, element: str, size: int):
        self.rng, self.element, self.size, self.sum = rng, element, size, SUMS[element]
        self.lines: list[str] = []
        self.depth = 0
        self._count = 0
        self._values: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self.types = {
            "tile": self.tile(element),
            "total": self.tile(self.sum),
            "pointers": self.tile(f"!tt.ptr<{element}>"),
            "mask": self.tile("i1"),
            "rows": f"tensor<{size}x1xi32>",
            "number": "i32",
            "bit": "i1",
        }

    def tile(self, element: str) -> str:
        return f"tensor<{self.size}x{self.size}x{element}>"

    @property
    def is_of_integers(self) -> bool:
        return self.element == "i8"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self) -> str:
        self._count += 1
        return f"%v_{self._count}"

    def emit(self, line: str) -> None:
        self.lines.append("  " * (self.depth + 1) + line)

    def op(self, text: str) -> str:
        """A value that nobody else takes."""
        name = self.name()
        self.emit(f"{name} = {text}")
        return name

    def let(self, kind: str, text: str) -> str:
        return self.add(kind, self.op(text))

    def add(self, kind: str, name: str) -> str:
        self._values[kind].append(name)
        return name

    def number(self, value: int) -> str:
        return self.op(f"arith.constant {value} : i32")

    def of(self, kind: str) -> list[str]:
        return self._values[kind]

    def any_of(self, kind: str) -> str | None:
        """One of those that there are, often one of the last."""
        found = self._values[kind]
        return self.rng.choice(found[-3:] if self.chance(0.5) else found) if found else None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is added in a region is not there after it."""
        saved = {kind: list(found) for kind, found in self._values.items()}
        self.depth += 1
        yield
        self.depth -= 1
        self._values = saved

"""What the tests of random kernels share: writing a kernel's source line by line, and importing it.

writer.line("for _ in range(n):")
writer.inside(body)                 body() writes the indented block; what it defines is forgotten after it
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path


class KernelWriter:
    """The source of one kernel, after its `head`; `tiles` are the names of values that are known here, by shape."""

    head = ""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.tiles: dict[object, list[str]] = {}
        self.indent = self.count = 0

    def source(self) -> str:
        return self.head + "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * (self.indent + 1) + text)

    def new_name(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def define(self, shape: object, expression: str) -> str:
        name = self.new_name()
        self.line(f"{name} = {expression}")
        self.tiles.setdefault(shape, []).append(name)
        return name

    def inside(self, body: Callable[[], None]) -> None:
        before = deepcopy(self.tiles)
        self.indent += 1
        body()
        self.indent -= 1
        self.tiles = before


def import_kernel(source: str, path: Path) -> Callable:
    """The function `kernel` of a source, which is written to a file."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel

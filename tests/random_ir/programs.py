"""Whole kernels, their arguments, and what the interpreter and the emulator make of them.

program = Program.of(7)                   the 7th, the same in every process
program.text                              tile IR
program.fault("cuda:90", any_costs=True)  "": all that is stored is equal
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import ml_dtypes
import numpy as np
from backend.cuda.launching import aligned, compile_text, emulate_compiled

from deuteron.interpreter import run_module
from deuteron.ir.text import parse_module
from random_ir import values
from random_ir.control import Statements
from random_ir.text import TILES, Text
from tests.fuzz.any_costs import any_costs

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8}
DTYPES |= {"i32": np.int32}
MOST_STORED = 4  # of each kind of values, at the end
NUMBERS = ("%n", "%begin", "%step")


@dataclass(frozen=True)
class Program:
    seed: int
    element: str
    size: int

    @staticmethod
    def of(seed: int) -> Program:
        rng = random.Random(seed)
        element = rng.choice(("f16", "f16", "f16", "f16", "bf16", "f32", "i8", "f64"))
        return Program(seed, element, rng.choice((16, 32) if element == "f64" else (16, 32, 64, 64)))

    @cached_property
    def text(self) -> str:
        t = Text(random.Random(self.seed), self.element, self.size)
        front = _front(t)
        for name in ("%zero", "%one"):
            t.add("number", name)
        statements = Statements(t)
        for make in t.rng.sample(
            (values.load, values.number, values.pointers, values.mask, values.rows), t.rng.randint(0, 3)
        ):
            make(t)
        for _ in range(t.rng.choice((1, 1, 2, 3))):
            statements.loop()
            statements.some(0, 3)
        _store_all(t)
        return "\n".join(
            ["module {", f"tt.func public @k({_parameters(t)}) {{", *front, *t.lines, "  tt.return", "}", "}"]
        )

    def launches(self) -> list[tuple[int, int, int]]:
        """n, begin and step of two."""
        rng = random.Random(self.seed + 1)
        return [(rng.choice((0, 1, 2, 3, 5)), rng.choice((0, -1, 1, 2)), rng.choice((1, 1, 2, 3))) for _ in range(2)]

    def arrays(self) -> list[np.ndarray]:
        rng, square = np.random.default_rng(self.seed), (self.size, self.size)
        loaded = [rng.integers(-2, 3, (TILES, *square)).astype(DTYPES[self.element]) for _ in range(4)]
        out = np.full((2 * TILES, *square), 77, DTYPES[Text(random.Random(), self.element, self.size).sum])
        tables = [rng.integers(0, TILES, TILES).astype(np.int32) for _ in range(2)]
        rows = rng.integers(0, self.size, TILES + self.size).astype(np.int32)
        return [aligned(one) for one in (*loaded, out, *tables, rows, np.zeros(2 * TILES, np.int32))]

    @cached_property
    def expected(self) -> list[list[np.ndarray]]:
        """What is in the arrays after each launch in the interpreter."""
        found, module = [], parse_module(self.text, f"seed_{self.seed}.ttir")
        for launch in self.launches():
            arrays = self.arrays()
            with np.errstate(all="ignore"):
                run_module(module, [*arrays, *launch], (1, 1, 1))
            found.append(arrays)
        return found

    def fault(self, target: str, by_any_costs: bool = False) -> str:
        """What is wrong of what the emulator stores; errors are raised."""
        rng = random.Random(self.seed)
        warps = rng.choice((4, 4, 4, 8, 1 if self.size < 64 else 4))
        with any_costs(self.seed) if by_any_costs else nullcontext():
            kernel = compile_text(self.text, target, num_warps=warps, num_stages=rng.choice((2, 3, 3, 4)))
        for launch, expected in zip(self.launches(), self.expected, strict=True):
            arrays = self.arrays()
            emulate_compiled(kernel, *arrays, *launch, asynchronous=rng.choice(("random", "late", "early")))
            wrong = [number for number, pair in enumerate(zip(arrays, expected, strict=True)) if not _are_equal(*pair)]
            if wrong:
                return f"of launch {launch} the arrays {wrong} are wrong"
        return ""


def _are_equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.astype(np.float64), b.astype(np.float64))


def _parameters(t: Text) -> str:
    types = {name: t.element for name in values.LOADED} | {"%out": t.sum}
    types |= dict.fromkeys(("%table", "%numbers", "%rows", "%counts"), "i32")
    arrays = [f"{name}: !tt.ptr<{type}> {{tt.divisibility = 16 : i32}}" for name, type in types.items()]
    return ", ".join([*arrays, *(f"{name}: i32" for name in NUMBERS)])


def _front(t: Text) -> list[str]:
    """Constants and coordinates that all kernels have."""
    size, wide = t.size, t.tile("i32")
    column, row = t.types["rows"], f"tensor<1x{size}xi32>"
    numbers = {"zero": 0, "one": 1, "last": TILES - 1, "eighth": size // 8, "count": size * size}
    totals = {"high": 3, "low": -3, "most": values.MOST, "least": -values.MOST, "nothing": 0}
    shown = str if t.is_of_integers else lambda value: f"{float(value):e}"
    return [
        f"  %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>",
        f"  %column = tt.expand_dims %r {{axis = 1 : i32}} : tensor<{size}xi32> -> {column}",
        f"  %row = tt.expand_dims %r {{axis = 0 : i32}} : tensor<{size}xi32> -> {row}",
        f"  %sizes = arith.constant dense<{size}> : {column}",
        f"  %sizes_of_row = arith.constant dense<{size}> : {row}",
        f"  %begins = arith.muli %column, %sizes : {column}",
        f"  %begins_of_row = arith.muli %row, %sizes_of_row : {row}",
        f"  %lines = tt.broadcast %begins : {column} -> {wide}",
        f"  %columns = tt.broadcast %row : {row} -> {wide}",
        f"  %lines_turned = tt.broadcast %begins_of_row : {row} -> {wide}",
        f"  %columns_turned = tt.broadcast %column : {column} -> {wide}",
        f"  %square = arith.addi %lines, %columns : {wide}",
        f"  %turned = arith.addi %lines_turned, %columns_turned : {wide}",
        *(f"  %{name} = arith.constant {value} : i32" for name, value in numbers.items()),
        *(f"  %{name} = arith.constant dense<{shown(value)}> : {t.types['total']}" for name, value in totals.items()),
        f"  %zeros = arith.constant dense<{shown(0)}> : {t.types['tile']}",
        f"  %ones = arith.constant dense<{shown(1)}> : {t.types['tile']}",
    ]


def _store_all(t: Text) -> None:
    """What there is at the end, where no other store goes."""
    sums = [*t.of("total")[-MOST_STORED:], *(values.widened(t, one) for one in t.of("tile")[-MOST_STORED:])]
    for place, one in enumerate(sums):
        values.store_sum(t, one, t.number(TILES + place))
    for place, one in enumerate(t.of("number")[-MOST_STORED:]):
        at = t.op(f"tt.addptr %counts, {t.number(TILES + place)} : !tt.ptr<i32>, i32")
        t.emit(f"tt.store {at}, {one} : !tt.ptr<i32>")

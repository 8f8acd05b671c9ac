"""The tile passes do not change what a kernel computes: random programs give equal bits before and after them.

Half of the operands are constants, many of them neutral or at an edge of their type, so that folds have much to do.
"""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.interpreter import run_module
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes

SHAPE = (4, 8)
TYPE = {"i32": "tensor<4x8xi32>", "f32": "tensor<4x8xf32>", "i1": "tensor<4x8xi1>", "i64": "tensor<4x8xi64>"}
INTEGERS = [0, 1, -1, 2, 31, 32, 7, -(2**31), 2**31 - 1]
FLOATS = ["0.0", "-0.0", "1.0", "-1.5", "0x7F800000", "0x00000001", "3.4028235e38", "16777216.0"]
INTEGER_OPS = (
    *("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrsi", "shrui", "minsi", "maxsi", "minui", "maxui"),
    *("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"),
)
FLOAT_OPS = ["addf", "subf", "mulf", "divf", "maximumf", "maxnumf", "minimumf", "minnumf"]


class Program:
    """Grows a kernel op by op; `values` are the names of what there is of each type."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {"i32": ["%x"], "f32": ["%y"], "i1": ["%m"], "i64": []}

    def emit(self, type: str, text: str, operand_types: list[str]) -> None:
        name = f"%v{len(self.lines)}"
        signature = ", ".join(TYPE[t] for t in operand_types)
        self.lines.append(f"{name} = {text} : ({signature}) -> {TYPE[type]}")
        self.values[type].append(name)

    def operand(self, type: str) -> str:
        if type in ("i32", "f32") and self.rng.random() < 0.4:
            self.emit(type, f'"arith.constant"() <{{value = dense<{self.literal(type)}> : {TYPE[type]}}}>', [])
        return self.values[type][-1] if self.rng.random() < 0.5 else str(self.rng.choice(self.values[type]))

    def literal(self, type: str) -> str:
        return str(self.rng.choice(INTEGERS if type == "i32" else FLOATS))

    def grow(self) -> None:
        type = str(self.rng.choice(["i32", "f32"]))
        a, b = self.operand(type), self.operand(type)
        match self.rng.integers(0, 8):
            case 0:
                op, extra = ("cmpi", "") if type == "i32" else ("cmpf", ", fastmath = #arith.fastmath<none>")
                predicate = self.rng.integers(0, 10)
                self.emit("i1", f'"arith.{op}"({a}, {b}) <{{predicate = {predicate} : i64{extra}}}>', [type, type])
            case 1:
                condition = self.operand("i1")
                self.emit(type, f'"arith.select"({condition}, {a}, {b})', ["i1", type, type])
            case 2 if type == "i32":
                self.emit("f32", f'"arith.sitofp"({a})', ["i32"])
            case 2:
                self.emit("i32", f'"arith.fptosi"({a})', ["f32"])
            case 3 if type == "i32":
                self.emit("i64", f'"arith.extsi"({a})', ["i32"])
                self.emit("i32", f'"arith.trunci"({self.operand("i64")})', ["i64"])
            case 3:
                self.emit("f32", f'"math.floor"({a})', ["f32"])
            case _:
                op = self.rng.choice(INTEGER_OPS if type == "i32" else FLOAT_OPS)
                self.emit(type, f'"arith.{op}"({a}, {b})', [type, type])

    def text(self) -> str:
        """The last values of each type are stored, floats also as a sum over rows."""
        i, f, m = (self.values[type][-1] for type in ("i32", "f32", "i1"))
        return "\n".join(
            [
                *self.lines,
                f'%both = "arith.select"({m}, {i}, %x) : ({TYPE["i1"]}, {TYPE["i32"]}, {TYPE["i32"]}) -> {TYPE["i32"]}',
                f'%row = "tt.reduce"({f}) <{{axis = 0 : i32}}> ({{',
                '^bb9(%ra: f32, %rb: f32): %rc = "arith.addf"(%ra, %rb) : (f32, f32) -> f32',
                f'"tt.reduce.return"(%rc) : (f32) -> () }}) : ({TYPE["f32"]}) -> tensor<8xf32>',
                store("%both", "%ip", "i32", SHAPE),
                store(f, "%fp", "f32", SHAPE),
                store("%row", "%rp", "f32", (8,)),
            ]
        )


def tensor(element: str, shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def pointers(name: str, base: str, element: str, shape: tuple[int, ...]) -> str:
    count, pointer = int(np.prod(shape)), f"!tt.ptr<{element}>"
    return f"""
    %{name}r = "tt.make_range"() <{{start = 0 : i32, end = {count} : i32}}> : () -> tensor<{count}xi32>
    %{name}i = "tt.reshape"(%{name}r) : (tensor<{count}xi32>) -> {tensor("i32", shape)}
    %{name}b = "tt.splat"({base}) : ({pointer}) -> {tensor(pointer, shape)}
    %{name} = "tt.addptr"(%{name}b, %{name}i) : ({tensor(pointer, shape)}, {tensor("i32", shape)})
      -> {tensor(pointer, shape)}"""


def store(value: str, base: str, element: str, shape: tuple[int, ...]) -> str:
    name = base[1:] + "s"
    return f"""{pointers(name, base, element, shape)}
    "tt.store"(%{name}, {value}) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
      : ({tensor(f"!tt.ptr<{element}>", shape)}, {tensor(element, shape)}) -> ()"""


def load(name: str, base: str, element: str) -> str:
    return f"""{pointers(name[1:] + "l", base, element, SHAPE)}
    {name} = "tt.load"({name}l) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
      cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : ({tensor(f"!tt.ptr<{element}>", SHAPE)})
      -> {tensor(element, SHAPE)}"""


INPUTS = "%xp: !tt.ptr<i32>, %yp: !tt.ptr<f32>, %mp: !tt.ptr<i1>"
OUTPUTS = "%ip: !tt.ptr<i32>, %fp: !tt.ptr<f32>, %rp: !tt.ptr<f32>"
LOADS = "\n".join([load("%x", "%xp", "i32"), load("%y", "%yp", "f32"), load("%m", "%mp", "i1")])


def outputs_of(module, inputs: list[np.ndarray]) -> list[bytes]:
    outputs = [np.full(SHAPE, 77, np.int32), np.full(SHAPE, 77, np.float32), np.full(8, 77, np.float32)]
    run_module(module, [*inputs, *outputs], (1, 1, 1))
    return [np.where(np.isnan(out), 99, out).tobytes() for out in outputs]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", range(40))
def test_random_elementwise_programs(parse_kernel, rng, case):
    program = Program(rng)
    while len(program.lines) < 30:
        program.grow()
    module = parse_kernel(f"{INPUTS}, {OUTPUTS}", LOADS + "\n" + program.text())
    inputs = [
        rng.choice(np.int32([*INTEGERS, 100, -100]), SHAPE),
        (rng.standard_normal(SHAPE) * 10.0 ** rng.integers(-6, 7, SHAPE)).astype(np.float32),
        rng.integers(0, 2, SHAPE).astype(bool),
    ]
    expected = outputs_of(module, inputs)
    before = len(list(module.walk()))
    run_passes(module, tile_passes())
    assert len(list(module.walk())) < before
    assert outputs_of(module, inputs) == expected

"""`evaluate` runs one op in the interpreter: operands come from arrays, the result goes into a poisoned one."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from deuteron.interpreter import run_module
from deuteron.ir.text import parse_module

DTYPES = {
    "i1": np.bool_,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}


def tile_type(element: str, shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>" if shape else element


def pointer_tile(name: str, base: str, element: str, shape: tuple[int, ...]) -> str:
    """Ops that make `%name`, pointers to all elements of a row-major array at `base`."""
    count = math.prod(shape)
    flat, pointers = f"tensor<{count}xi32>", f"!tt.ptr<{element}>"
    wide = tile_type(pointers, shape)
    return f"""
    %{name}_range = "tt.make_range"() <{{start = 0 : i32, end = {count} : i32}}> : () -> {flat}
    %{name}_index = "tt.reshape"(%{name}_range) : ({flat}) -> {tile_type("i32", shape)}
    %{name}_base = "tt.splat"({base}) : ({pointers}) -> {wide}
    %{name} = "tt.addptr"(%{name}_base, %{name}_index) : ({wide}, {tile_type("i32", shape)}) -> {wide}"""


def load(name: str, base: str, element: str, shape: tuple[int, ...]) -> str:
    address = pointer_tile(f"{name}_ptr", base, element, shape) if shape else ""
    pointer = f"%{name}_ptr" if shape else base
    return f"""{address}
    %{name} = "tt.load"({pointer}) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
      cache = 1 : i32, evict = 1 : i32, isVolatile = false}}>
      : ({tile_type(f"!tt.ptr<{element}>", shape)}) -> {tile_type(element, shape)}"""


def store(value: str, base: str, element: str, shape: tuple[int, ...]) -> str:
    label = value.replace("#", "_")
    address = pointer_tile(f"{label}_ptr", base, element, shape) if shape else ""
    pointer = f"%{label}_ptr" if shape else base
    return f"""{address}
    "tt.store"({pointer}, %{value}) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
      : ({tile_type(f"!tt.ptr<{element}>", shape)}, {tile_type(element, shape)}) -> ()"""


def kernel(parameters: str, body: str) -> str:
    """The text of a module with one kernel; every op is at k.py:1:1 unless it says otherwise."""
    types = ", ".join(parameter.split(":", 1)[1].strip() for parameter in parameters.split(", ") if parameter)
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({types}) -> (), sym_visibility = "public"}}> ({{
  ^bb0({parameters}):
    {body}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


@pytest.fixture
def run_kernel():
    """Run the kernel with these parameters and this body."""

    def run(parameters: str, body: str, args, grid=(1, 1, 1)) -> None:
        run_module(parse_module(kernel(parameters, body), "k.ttir"), args, grid)

    return run


@pytest.fixture
def evaluate(run_kernel):
    """evaluate('"arith.addi"(%x0, %x1)', [("i32", a), ("i32", b)], "i32") -> array of the result.

    The result has the shape of the first operand unless `shape` says otherwise; the op's type signature is added.
    Where the op uses what `prologue` makes of the operands, `types` are the types of what it uses.
    """

    def run(op: str, operands, result: str, shape=None, prologue: str = "", types=None) -> np.ndarray:
        arrays = [np.asarray(values, DTYPES[element], order="C") for element, values in operands]
        shapes = [array.shape for array in arrays]
        out_shape = shapes[0] if shape is None else shape
        out = np.full(out_shape, 77 if result != "i1" else 1, DTYPES[result])
        types = types or [tile_type(e, s) for (e, _), s in zip(operands, shapes, strict=True)]
        loads = [load(f"x{i}", f"%p{i}", e, s) for i, ((e, _), s) in enumerate(zip(operands, shapes, strict=True))]
        apply = f"    {prologue}\n    %r = {op} : ({', '.join(types)}) -> {tile_type(result, out_shape)}"
        parameters = [f"%p{i}: !tt.ptr<{e}>" for i, (e, _) in enumerate(operands)]
        body = "\n".join([*loads, apply, store("r", "%out", result, out_shape)])
        run_kernel(", ".join([*parameters, f"%out: !tt.ptr<{result}>"]), body, [*arrays, out])
        return out

    return run

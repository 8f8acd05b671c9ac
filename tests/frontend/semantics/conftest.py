"""Statements put into a kernel, to see what they mean.

    op_names("x + n")         ["arith.sitofp", "tt.splat", "arith.addf"]
    result_type("x + n")      "fp32[64]"
    error("x + p")            "+ does not take pointers, ..."
    evaluate("tl.sum(x, 0)", array)   what the NumPy interpreter computes

The kernel has p: *fp32, q: *i32, b: *i1, c: *kfp32 (constant data), n: int32, f: fp32, and where the statement names
them the tiles t = 0 .. 63, x: fp32[64], i: int32[64], u: uint32[64], h: fp16[64], m: fp16[16, 32], k: int1[64].
"""

from __future__ import annotations

import importlib.util
import re
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import Block

from deuteron.errors import CompilationError, Location
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.ir.builder import Builder
from deuteron.ir.location import to_attribute
from deuteron.ir.verifier import verify_ttir
from deuteron.language.functions.function import Function

SIGNATURE = {"p": "*fp32", "q": "*i32", "b": "*i1", "c": "*kfp32", "n": "i32", "f": "fp32"}
TILES = {
    "t": "tl.arange(0, 64)",
    "x": "tl.load(p + tl.arange(0, 64))",
    "i": "tl.load(q + tl.arange(0, 64))",
    "u": "tl.load(q + tl.arange(0, 64)).to(tl.uint32)",
    "h": "tl.zeros([64], tl.float16)",
    "m": "tl.zeros((16, 32), tl.float16)",
    "k": "tl.load(q + tl.arange(0, 64)) > 0",
}


def _tiles(statement: str) -> list[str]:
    words = set(re.findall(r"\w+", statement))
    return [f"{name} = {value}" for name, value in TILES.items() if name in words]


@pytest.fixture
def load_kernel(tmp_path: Path):
    """load_kernel(parameters, lines): a function of the language with these lines."""
    numbers = count()

    def load(parameters, lines) -> Function:
        path = tmp_path / f"k{next(numbers)}.py"
        body = "".join(f"    {line}\n" for line in lines)
        header = "import deuteron.language as tl\nfrom deuteron.language.functions.function import Function as jit\n"
        helpers = "@jit\ndef add(a, b):\n    return a + b\n@jit\ndef compare(a, b):\n    return a > b\n"
        path.write_text(f"{header}{helpers}def kernel({', '.join(parameters)}):\n{body}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return Function(module.kernel)

    return load


@pytest.fixture
def compile_lines(load_kernel):
    """compile_lines(lines): the ops of a verified kernel with the standard parameters."""

    def compile(lines):
        module = lower_function(load_kernel(SIGNATURE, lines), SIGNATURE, {}, {})
        verify_ttir(module, "the frontend")
        return list(module.body.block.first_op.body.block.ops)[:-1]

    return compile


@pytest.fixture
def ops(compile_lines):
    """ops(statement): the ops that the statement makes, without those of the tiles that it names."""

    def compile(statement: str):
        tiles = _tiles(statement)
        return compile_lines([*tiles, statement])[len(compile_lines([*tiles, "pass"])) :]

    return compile


@pytest.fixture
def op_names(ops):
    """op_names(statement): their names."""
    return lambda statement: [op.name for op in ops(statement)]


@pytest.fixture
def result_type(compile_lines, capsys):
    """result_type(expression): its type of the language."""

    def compile(expression: str) -> str:
        compile_lines([*_tiles(expression), f"tl.static_print(({expression}).type)"])
        return capsys.readouterr().out.strip()

    return compile


@pytest.fixture
def error(compile_lines):
    """error(statement): the message of its error, without the place."""

    def compile(statement: str) -> str:
        with pytest.raises(CompilationError) as raised:
            compile_lines([*_tiles(statement), statement])
        return raised.value.message

    return compile


@pytest.fixture
def evaluate(load_kernel):
    """evaluate(expression, x, dtype): the value of an expression in a tile `x`, by the interpreter, as that dtype."""
    types = {"float32": "*fp32", "int8": "*i8", "uint8": "*u8", "int32": "*i32", "bool": "*i1"}

    def run(expression: str, x: np.ndarray, dtype: str = "float32") -> np.ndarray:
        offsets = " + ".join(
            f"tl.arange(0, {extent}){'[:, None]' if axis < x.ndim - 1 else ''} * {x.strides[axis] // x.itemsize}"
            for axis, extent in enumerate(x.shape)
        )
        lines = [f"x = tl.load(p + {offsets})", f"y = tl.ravel({expression})"]
        kernel = load_kernel(["p", "o"], [*lines, "tl.store(o + tl.arange(0, y.numel), y)"])
        module = lower_function(kernel, {"p": types[str(x.dtype)], "o": types[dtype]}, {}, {})
        verify_ttir(module, "the frontend")
        out = np.full(4096, 99, dtype)
        run_module(module, [x.copy(), out], (1, 1, 1))
        return out

    return run


class BareContext:
    """Enough of a Context for semantic functions that call nothing."""

    checks_overflow = False

    def __init__(self) -> None:
        self.builder = Builder.at_end(Block(), to_attribute(Location("k.py", 1)))

    def error(self, message: str, kind: type[CompilationError] = CompilationError) -> CompilationError:
        return kind(message)


@pytest.fixture
def ctx() -> BareContext:
    return BareContext()

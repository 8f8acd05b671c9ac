"""The kernels that are mutated, as programs of the fuzzer.

    original(random.Random(1))      a Case: one kernel, with the functions that it calls, and its arguments

    @triton.jit                                          @triton.jit
    def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):    def kernel(x_ptr, out_ptr, n):
        ...                                                  BLOCK: tl.constexpr = 64
                                                             ...

What is known when it is compiled becomes lines at its beginning, as does a descriptor. Integers in arrays stay what
they are, since they are lengths and places; floats are drawn anew, rather small whole numbers, whose sums are exact.
Arrays have room behind them, at times in front. Hints (`tl.multiple_of`, `tl.assume`), which an edit may make untrue,
are left out.
"""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.dtypes import FLOATS
from deuteron.language import constexpr
from deuteron.runtime.jit import JITFunction
from tests.fuzz.case import POISON, Argument, Case
from tests.fuzz.mutator.launches import Launched, launches

OPTIONS = ("num_warps", "num_stages", "num_ctas", "enable_fp_fusion")
HINTS = ("multiple_of", "max_contiguous", "max_constancy")
MOST_GIVEN = 300
"""Integers of an array that are written out; of longer ones the least and the largest are kept."""


def original(rng: random.Random) -> Case:
    return program_of(rng.choice(launches())(rng), rng)


def program_of(launched: Launched, rng: random.Random) -> Case:
    return _Original(rng, launched).case()


@dataclass
class _Original:
    """Writes the program of a launch."""

    rng: random.Random
    launched: Launched
    arguments: list[Argument] = field(default_factory=list)
    prologue: list[str] = field(default_factory=list)

    def case(self) -> Case:
        functions = _functions(self.launched.kernel)
        kernel = functions[-1]
        kernel.name = "kernel"
        for parameter in kernel.args.args:
            self._pass(parameter.arg)
        kernel.args = ast.arguments([], [ast.arg(a.name) for a in self.arguments], None, [], [], None, [])
        kernel.body[:0] = ast.parse("\n".join(self.prologue)).body
        source = "\n\n\n".join(map(ast.unparse, functions)) + "\n"
        options = {name: self.launched.given[name] for name in OPTIONS if name in self.launched.given}
        return Case(0, source, tuple(self.arguments), _fewer(self.rng, self.launched.grid), options)

    def _pass(self, name: str) -> None:
        """As an argument, or as a line of the prologue."""
        value = self.launched.given[name]
        is_constant = "constexpr" in str(self.launched.kernel.fn.__annotations__.get(name))
        if is_constant or value is None or isinstance(value, str):
            self.prologue.append(f"{name}: tl.constexpr = {value!r}")
        elif isinstance(value, np.ndarray):
            self._pass_array(name, value)
        elif isinstance(value, TensorDescriptor):
            self._pass_array(f"{name}_ptr", value.base)
            shapes = ", ".join(map(str, (value.shape, value.strides, value.block_shape)))
            self.prologue.append(f"{name} = tl.make_tensor_descriptor({name}_ptr, {shapes})")
        else:
            dtype = {bool: "int1", int: "int32", float: "float32"}[type(value)]
            self.arguments.append(Argument(name, dtype, None, value))

    def _pass_array(self, name: str, array: np.ndarray) -> None:
        before = self.rng.choice((0, 0, 0, 64, 64, 3))
        size = before + array.size + self.rng.choice((64, 256, 1024))
        fill, bound = _fill(self.rng, array, before)
        self.arguments.append(Argument(name, _dtype_of(array), size, fill, self.rng.randrange(1 << 20), bound))
        if before:
            self.prologue.append(f"{name} = {name} + {before}")


def _dtype_of(array: np.ndarray) -> str:
    names = {declared.array_name: declared.name for declared in FLOATS} | {"bool": "int1"}
    return names.get(str(array.dtype), str(array.dtype))


def _fewer(rng: random.Random, grid: tuple[int, ...]) -> tuple[int, ...]:
    """At most some programs on each axis."""
    return tuple(min(extent, rng.choice((2, 3, extent))) for extent in grid)


def _fill(rng: random.Random, array: np.ndarray, before: int) -> tuple[Any, int]:
    """What an array is filled with, and the bound of it."""
    flat = array.ravel()
    if not flat.view(np.uint8).any():
        return "zeros", 0
    if (flat.view(np.uint8) == POISON).all():
        return "poison", 0
    if array.dtype.kind in "iu" and array.size <= MOST_GIVEN:
        return tuple([0] * before + flat.tolist()), 0
    if array.dtype.kind in "iu" and array.min() >= 0:
        return "index", int(array.max()) + 1
    if array.dtype.kind not in "iub" and np.isnan(flat).all():
        return "poison", 0
    return rng.choice(("small", "small", "small", "normal", "normal", "special")), 0


def _functions(kernel: JITFunction) -> list[ast.FunctionDef]:
    """Those that the kernel calls, each after what it calls itself; the kernel is the last."""
    found: dict[str, ast.FunctionDef] = {}

    def visit(one: JITFunction) -> None:
        tree = _Plain().visit(ast.parse(textwrap.dedent(inspect.getsource(one.fn)))).body[0]
        tree.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        for name, value in _globals_of(tree, one.fn):
            if isinstance(value, JITFunction) and name not in found:
                visit(value)
            elif isinstance(value, constexpr | int | float):
                tree.body[:0] = ast.parse(f"{name}: tl.constexpr = {getattr(value, 'value', value)!r}").body
        found[tree.name] = tree

    visit(kernel)
    return list(found.values())


def _globals_of(tree: ast.FunctionDef, fn: Callable) -> Iterator[tuple[str, Any]]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return ((name, fn.__globals__[name]) for name in sorted(names & set(fn.__globals__)))


class _Plain(ast.NodeTransformer):
    """Without docstrings, hints and assumptions."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        is_docstring = isinstance(node.value, ast.Constant)
        is_assumed = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "tl.assume"
        return ast.Pass() if is_docstring or is_assumed else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return node.args[0] if ast.unparse(node.func) in [f"tl.{hint}" for hint in HINTS] else node

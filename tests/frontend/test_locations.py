"""Locations: file, line, column and variable of every op, through inlined calls; defects are located too."""

from __future__ import annotations

from pathlib import Path

import pytest

from deuteron.errors import InternalError, Location
from deuteron.frontend.semantics import METHODS
from deuteron.ir.location import from_attribute


def locations(module, op_name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Of each op of that name: line:column, and those of the calls that led there."""
    found = []
    for op in module.walk():
        if op.name == op_name:
            location, chain = from_attribute(op.location)
            found.append((place(location), tuple(map(place, chain))))
    return found


def place(location: Location) -> str:
    assert Path(location.file).name == "k.py"
    return f"{location.line}:{location.column}"


def test_line_and_column_of_a_decorated_indented_function(load_source, lower):
    k = load_source(
        """
class Kernels:
    @staticmethod
    @jit
    def kernel(
        n,
    ):
        '''A docstring
of two lines.'''
        x = 1 - (n *
            n)
"""
    )
    module = lower(k.Kernels.kernel, "i32")
    assert locations(module, "arith.muli") == [("10:18", ())]
    assert locations(module, "arith.subi") == [("10:13", ())]
    assert locations(module, "tt.func") == [("5:5", ())]


def test_chain_of_inlined_calls(load_source, lower):
    k = load_source(
        """
@jit
def inner(x):
    return x * x

@jit
def outer(x):
    y = inner(x)
    return y + y

@jit
def kernel(n):
    z = 1 + outer(n)
    w = outer(z)
"""
    )
    module = lower(k.kernel, "i32")
    assert locations(module, "arith.muli") == [("4:12", ("8:9", "13:13")), ("4:12", ("8:9", "14:9"))]
    assert locations(module, "arith.addi") == [("9:12", ("13:13",)), ("13:9", ()), ("9:12", ("14:9",))]


def test_name_of_the_variable_is_in_the_location(load_source, lower):
    k = load_source("@jit\ndef kernel(n):\n    twice = n + n\n")
    (op,) = (op for op in lower(k.kernel, "i32").walk() if op.name == "arith.addi")
    assert str(op.location).startswith('loc("twice"(')


def test_arguments_of_kernels_and_loops_are_located(load_source, lower):
    k = load_source("@jit\ndef kernel(a,\n           n):\n    x = 0\n    for i in range(n):\n        x += i\n")
    args = [arg for op in lower(k.kernel, "i32 i32").walk() for region in op.regions for arg in region.block.args]
    found = [(arg.name_hint, place(from_attribute(arg.location)[0])) for arg in args if arg.name_hint]
    assert found == [("a", "3:12"), ("n", "4:12"), ("i", "6:5"), ("x", "6:5")]


def test_exception_in_a_semantic_function_is_a_located_defect(load_source, lower, monkeypatch):
    def fails(ctx, x):
        raise ValueError("no such thing")

    monkeypatch.setitem(METHODS, "sigmoid", fails)
    k = load_source("@jit\ndef inner(x):\n    return x.sigmoid()\n\n@jit\ndef kernel(n):\n    x = inner(n)\n")
    with pytest.raises(InternalError, match="'fails' failed with ValueError: no such thing") as raised:
        lower(k.kernel, "fp32")
    assert place(raised.value.location) == "4:12"
    assert [place(call) for call in raised.value.call_chain] == ["8:9"]

"""The key of a kernel has what it reads of classes, of their objects, of arrays and of modules, however it comes to it.

Each case is a kernel twice, with one thing that differs in what it uses; two definitions of one text have one key.
"""

import linecache
from itertools import count

import pytest

import deuteron.compat  # noqa: F401  (an extern function is marked by `triton`)
from deuteron.compiler import ASTSource

HEAD = """
import enum, functools, types
from dataclasses import dataclass, field
from typing import NamedTuple
import numpy as np
import deuteron
import deuteron.language as tl
from triton.language import core

GIVEN = None
"""
SIZES = "class Sizes:\n    ROWS = {}\n"
MODE = "class Mode(enum.Enum):\n    A = {}\n"
SHAPE = "@dataclass(frozen=True)\nclass Shape:\n    rows: int = {}\n"
PAIR = "class Pair(NamedTuple):\n    x: object\n    y: int = {}\n"
STEP = "class Steps:\n    @staticmethod\n    @deuteron.jit\n    def step(x):\n        return x + {}\n"
MEASURE = "class Base:\n    def width(self):\n        return {}\nclass Measure(Base):\n    pass\n"
NOW = "@deuteron.constexpr_function\ndef now():\n    return "
CASES = {
    "a class that is given": (SIZES + "GIVEN = Sizes", "G.ROWS"),
    "a class in a tuple that is given": (SIZES + "GIVEN = (Sizes,)", "G[0].ROWS"),
    "a class that a constexpr holds": (SIZES + "HELD = tl.constexpr(Sizes)", "HELD.ROWS"),
    "a class under another name": (SIZES, "other = Sizes\n    tl.store(p, other.ROWS)"),
    "an attribute by its name": (SIZES, "getattr(Sizes, 'ROWS')"),
    "the class of an object that is given": (SIZES + "    __repr__ = lambda self: 'S'\nGIVEN = Sizes()", "G.ROWS"),
    "a member of an enumeration by its name": (MODE, "Mode['A'].value"),
    "a property of a member": (MODE.format(1) + "    wide = property(lambda self: {})\n", "Mode.A.wide"),
    "a field that the text of an object leaves out": (
        "@dataclass(frozen=True)\nclass Shape:\n    rows: int = field(repr=False)\nGIVEN = Shape({})",
        "G.rows",
    ),
    "an object whose text says nothing": (
        "class Sizes:\n    def __init__(self, rows):\n        self.rows = rows\n"
        "    def __repr__(self):\n        return 'Sizes'\nGIVEN = Sizes({})",
        "G.rows",
    ),
    "a number of a class of its own": (
        "class Number(int):\n    def __repr__(self):\n        return 'N'\nGIVEN = Number({})",
        "G",
    ),
    "slots": (
        "class Sizes:\n    __slots__ = ('rows',)\n    def __repr__(self):\n        return 'S'\nGIVEN = Sizes()\n"
        "GIVEN.rows = {}",
        "G.rows",
    ),
    "a private slot": (
        "class Sizes:\n    __slots__ = ('__rows',)\n    def __init__(self, rows):\n        self.__rows = rows\n"
        "    rows = property(lambda self: self.__rows)\n    def __repr__(self):\n        return 'S'\nGIVEN = Sizes({})",
        "G.rows",
    ),
    "the default of a class that the kernel makes an object of": (SHAPE, "Shape().rows"),
    "the default of a named tuple": (PAIR, "Pair(1).y"),
    "a static method that is compiled": (STEP, "Steps.step(1)"),
    "a static method of a class that is given": (STEP + "GIVEN = Steps", "G.step(1)"),
    "a method that is inherited": (MEASURE + NOW + "Measure().width()", "now()"),
    "a method of an object": (MEASURE + "one = Measure()\n" + NOW + "one.width()", "now()"),
    "an attribute of a class under another name, when compiling": (
        SIZES + "@deuteron.constexpr_function\ndef now():\n    sizes = Sizes\n    return sizes.ROWS",
        "now()",
    ),
    "what a function in a list calls": (
        "def width():\n    return {}\ndef twice():\n    return 2 * width()\nALL = [twice]\n" + NOW + "ALL[0]()",
        "now()",
    ),
    "the middle of a long array": (
        "A = np.zeros(5000, np.int32)\nA[2500] = {}\n" + NOW + "int(A[2500])",
        "now()",
    ),
    "the last bits of an array": ("A = np.array([1 + {} * 2.0**-40])\n" + NOW + "float(A[0])", "now()"),
    "what an extern function calls": (
        "def width():\n    return {}\n@core.extern\ndef wide(x, _semantic=None):\n    return _semantic.add(x, width())",
        "wide(1)",
    ),
    "a variable of an extern function": (
        "WIDTH = {}\n@core.extern\ndef wide(x, _semantic=None):\n    return _semantic.add(x, WIDTH)",
        "wide(1)",
    ),
    "a function with a cache": ("@functools.cache\ndef width():\n    return {}\n" + NOW + "width()", "now()"),
}
_numbers = count()


def fingerprint(text, read, number):
    """The fingerprint of a kernel that is in a module of this text."""
    used = read if "tl.store" in read else f"tl.store(p, {read})"
    source = f"{HEAD}{text.format(number)}\n@deuteron.jit\ndef kernel(p, G: tl.constexpr):\n    {used}\n"
    file = f"<keys {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = {"__name__": "keys_of_objects"}
    exec(compile(source, file, "exec"), module)
    return ASTSource(module["kernel"], {"p": "*i32", "G": "constexpr"}, {"G": module["GIVEN"]}).fingerprint()


@pytest.mark.parametrize("case", CASES)
def test_the_key_changes_with_it_alone(case):
    text, read = CASES[case]
    three = fingerprint(text, read, 3)
    assert fingerprint(text, read, 3) == three
    assert fingerprint(text, read, 4) != three


@pytest.mark.parametrize("read", ["other = m\n    tl.store(p, other.ROWS)", "getattr(m, 'ROWS')", "G.ROWS"])
def test_a_module_that_is_used_as_a_value_is_not_taken_for_another(read):
    """Its contents are not looked into: each one is its own."""
    text = "m = types.ModuleType('m')\nm.ROWS = {}\nGIVEN = m"
    assert fingerprint(text, read, 3) != fingerprint(text, read, 4)


def test_classes_that_mention_themselves():
    text = "class Sizes:\n    ROWS = {}\n    def other(self):\n        return Sizes()\nSizes.ALL = (Sizes, Sizes())"
    assert fingerprint(text, "Sizes().ROWS", 3) == fingerprint(text, "Sizes().ROWS", 3)
    assert fingerprint(text, "Sizes().ROWS", 3) != fingerprint(text, "Sizes().ROWS", 4)

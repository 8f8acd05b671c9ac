"""constexpr on the host computes like what it holds."""

from __future__ import annotations

import operator
import pickle

import pytest

from deuteron import language as tl
from deuteron.language.constant import unwrap

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", BINARY + COMPARISONS)
def test_binary_operators_from_both_sides(name: str):
    operation = getattr(operator, name)
    for left, right in ((tl.constexpr(7), 3), (7, tl.constexpr(3)), (tl.constexpr(7), tl.constexpr(3))):
        result = operation(left, right)
        assert isinstance(result, tl.constexpr) and result.value == operation(7, 3)


@pytest.mark.parametrize("name", ["neg", "pos", "invert"])
def test_unary_operators(name: str):
    operation = getattr(operator, name)
    assert operation(tl.constexpr(5)).value == operation(5)


def test_use_as_a_python_value():
    assert list(range(tl.constexpr(3))) == [0, 1, 2]
    assert [int(tl.constexpr(3)), float(tl.constexpr(3)), bool(tl.constexpr(0))] == [3, 3.0, False]
    assert tl.constexpr((1, 2))[tl.constexpr(1)] == 2 and len(tl.constexpr((1, 2))) == 2
    assert {tl.constexpr(3): "a"}[tl.constexpr(3)] == "a"
    assert repr(tl.constexpr(128)) == "constexpr[128]"
    assert pickle.loads(pickle.dumps(tl.constexpr(3))).value == 3


def test_unwrap():
    assert tl.constexpr(tl.constexpr(3)).value == 3
    assert unwrap((tl.constexpr(1), [tl.constexpr("a")], tl.float32)) == (1, ["a"], tl.float32)

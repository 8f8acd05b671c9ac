"""Constexprs that Python takes for equal, or that were changed, are constants of their own, in fast launches too."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import deuteron
import deuteron.language as tl


@dataclass(frozen=True)
class Scale:
    factor: Any


class Changed:
    def __init__(self, factor):
        self.factor = factor


class Number(float):
    pass


@deuteron.jit
def reciprocal(x_ptr, C: tl.constexpr):
    tl.store(x_ptr, 1.0 / (tl.load(x_ptr) + C))


@deuteron.jit
def is_whole(x_ptr, C: tl.constexpr):
    tl.store(x_ptr, isinstance(C.factor, int))


@deuteron.jit
def factor_of(x_ptr, C: tl.constexpr):
    tl.store(x_ptr, C.factor)


@pytest.fixture(params=["interpreter", "cpu"], autouse=True)
def executor(request, monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1" if request.param == "interpreter" else "0")
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")


def launched(kernel, constant, start=0.0):
    x = np.full(1, start, np.float32)
    kernel[(1,)](x, constant)
    return x[0]


@pytest.mark.parametrize("kind", [float, np.float32, np.float64, Number])
def test_zeros_of_both_signs(kind):
    for _ in range(3):
        assert launched(reciprocal, kind(0.0), -0.0) == np.inf
        assert launched(reciprocal, kind(-0.0), -0.0) == -np.inf


def test_objects_that_compare_equal():
    for _ in range(3):
        assert [launched(is_whole, Scale(factor)) for factor in (2, 2.0)] == [1, 0]


def test_objects_and_classes_that_are_changed():
    changed = Changed(1)
    for factor in range(6):
        changed.factor = Scale.factor = factor
        assert [launched(factor_of, each) for each in (changed, Scale)] == [factor, factor]
    del Scale.factor

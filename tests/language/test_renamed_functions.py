"""A copy of a function under another name: its source is that of the original, its globals are its own."""

import functools
from types import FunctionType

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.language.functions.source import read_source


def scale_by(value):
    return value * FACTOR


FACTOR = tl.constexpr(3)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_copy_under_another_name_keeps_its_own_globals(wrapped):
    """As programs make one kernel per activation: the `def` in the file has the name of the original."""
    copy = FunctionType(scale_by.__code__, {**globals(), "FACTOR": tl.constexpr(5)}, "scale_by_five")
    if wrapped:
        copy = functools.update_wrapper(copy, scale_by)
        copy.__name__ = "scale_by_five"
    source = read_source(copy)
    assert source.tree.name == "scale_by"

    @deuteron.jit
    def kernel(x_ptr, FN: tl.constexpr):
        tl.store(x_ptr, FN(tl.load(x_ptr)))

    x = np.array([2], np.int32)
    for function, result in ((deuteron.jit(copy), 10), (deuteron.jit(scale_by), 30)):
        kernel[(1,)](x, function)
        assert x[0] == result

"""Kernels in Gluon are defined, so that a module with others beside them can be imported, and not launched."""

import pytest

from deuteron import language as tl
from deuteron.compat import gluon
from deuteron.errors import UsageError


@gluon.jit
def in_gluon(x_ptr, N: tl.constexpr = 16):
    i = tl.arange(0, N, layout=tl.BlockedLayout([1], [32], [4], [0]))
    tl.store(x_ptr + i, i)


def test_a_kernel_in_gluon_has_parameters():
    assert in_gluon.arg_names == ["x_ptr", "N"]
    assert gluon.jit(repr=str)(in_gluon.fn).arg_names == ["x_ptr", "N"]


@pytest.mark.parametrize("launch", [lambda: in_gluon[(1,)](None), lambda: in_gluon.warmup(None, grid=(1,))])
def test_a_kernel_in_gluon_is_not_launched(launch):
    with pytest.raises(UsageError, match="'in_gluon' is written in Gluon, a language of its own"):
        launch()


def test_the_types_of_gluon_are_those_of_the_language():
    names = gluon.GLUON_LANGUAGE_NAMES
    assert names["float32"] is tl.float32 and names["constexpr"] is tl.constexpr and names["dtype"] is tl.dtype

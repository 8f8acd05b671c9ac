"""Kernels may have any name that Python allows, also those that mean something else in object code or in PTX."""

import importlib.util

import numpy as np
import pytest

from deuteron.backend.llvm.module import Module
from deuteron.errors import InternalError

SOURCE = """
import deuteron as triton
import deuteron.language as tl

@triton.jit
def {name}(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.sin(x * 1e8) + tl.sum(x, 0), mask=i < n)

kernel = {name}
"""


@pytest.mark.parametrize(
    "name",
    [
        "_",
        "WARP_SZ",
        "llvm",
        "shared",
        "memcpy",
        "memset",
        "vprintf",
        "reduce_large_angle",
        "is_outside",
        "__nv_sin",
        "ret",
    ],
)
def test_any_name(tmp_path, draw, poisoned, name):
    path = tmp_path / "named.py"
    path.write_text(SOURCE.format(name=name))
    spec = importlib.util.spec_from_file_location("named", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = draw("float64", 100), poisoned("float64", 100)
    module.kernel[(1,)](x, y, 100, B=128)
    np.testing.assert_allclose(y, np.sin(x * 1e8) + x.sum(), rtol=1e-9)


def test_no_function_takes_the_place_of_another():
    module = Module("one")
    module.function("twice", "void", [])
    with pytest.raises(InternalError, match="two functions of module 'one' are called 'twice'"):
        module.function("twice", "void", [])

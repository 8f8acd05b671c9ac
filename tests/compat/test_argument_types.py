"""What Triton's launches know of arguments, by the names that programs import from triton.runtime.jit."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compat.argument_types import create_function_from_signature
from deuteron.errors import UsageError
from deuteron.runtime.cuda_device import CUDADriver
from deuteron.runtime.driver import Driver


@deuteron.jit(do_not_specialize=["m"], do_not_specialize_on_alignment=["k"])
def kernel(x, y: tl.const, n, m, k, scale=0.5, BLOCK: tl.constexpr = 64):
    tl.store(x, tl.load(y) + n + m + k + scale + BLOCK)


def test_arguments_by_name_with_their_types_and_the_options():
    x, y = np.zeros(16, np.float32), np.zeros(17, np.float16)[1:]
    bind = create_function_from_signature(kernel.signature, kernel.params, None)
    named, types, options = bind(x, y, 1, k=32, m=1, num_warps=2)
    assert list(named) == kernel.arg_names and named["x"] is x and named["BLOCK"] == 64
    assert options == {"num_warps": 2}
    assert types == [
        ("*fp32", "D"),
        ("*kfp16", None),
        ("constexpr", 1),
        ("i32", None),
        ("i32", None),
        ("fp32", None),
        ("constexpr", 64),
    ]
    with pytest.raises(TypeError, match="missing a required argument: 'm'"):
        bind(x, y, 1)


def test_c_types_of_what_is_passed():
    scalars = ["int32_t", "uint8_t", "float", "double"]
    for driver, pointer in ((CUDADriver(), "CUdeviceptr"), (Driver(), "void*")):
        passed = [driver.map_python_to_cpp_type(ty) for ty in ("*fp16", "i32", "u8", "fp16", "fp64")]
        assert passed == [pointer, *scalars]
        with pytest.raises(UsageError, match="no launcher passes the type fp8e5"):
            driver.map_python_to_cpp_type("fp8e5")

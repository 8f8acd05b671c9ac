"""Functions that kernels call: several results, constexpr parameters, defaults, keywords, globals, nesting."""

from functools import partial

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

OFFSET = tl.constexpr(40)


@triton.jit
def minmax(x, y):
    return tl.minimum(x, y), tl.maximum(x, y)


@triton.jit
def scaled(x, scale=2, *, shift=0):
    return x * scale + shift


@triton.jit
def spread(x, y):
    low, high = minmax(x, y)
    return scaled(high - low, shift=OFFSET)


@triton.jit
def calls_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + offsets, spread(x, y) + scaled(x, scale=-1), mask=offsets < n)


def test_nested_calls(draw, poisoned, check):
    x, y, out = draw("int32", 40, -99, 99), draw("int32", 40, -99, 99), poisoned("int32", 40)
    calls_kernel[(1,)](x, y, out, 40, BLOCK=64)
    check(out, 2 * np.abs(x - y) + 40 - x)


@triton.jit
def activation(x, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(x, 0.0)
    elif KIND is None:  # noqa: RET505  (a chain, of which one return is compiled)
        return x
    else:
        return 1 / (1 + tl.exp(-x))


@triton.jit
def activation_kernel(x_ptr, out_ptr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), activation(x, KIND))


@pytest.mark.parametrize("kind", ["relu", "sigmoid", None])
def test_constexpr_parameter_chooses_a_return(draw, poisoned, check_norm, kind):
    x, out = draw("float32", 64), poisoned("float32", 64)
    activation_kernel[(1,)](x, out, KIND=kind, BLOCK=64)
    x = x.astype(np.float64)
    check_norm(out, {"relu": np.maximum(x, 0), "sigmoid": 1 / (1 + np.exp(-x)), None: x}[kind], 1e-6)


@triton.jit
def first_above(x, limit):
    if x > limit:
        return limit
    return x


@triton.jit
def return_kernel(x_ptr, out_ptr, limit):
    tl.store(out_ptr + tl.program_id(0), first_above(tl.load(x_ptr + tl.program_id(0)), limit))


def test_return_within_a_runtime_branch(draw, poisoned, check):
    x, out = draw("int32", 20, 0, 100), poisoned("int32", 20)
    return_kernel[(20,)](x, out, 50)
    check(out, np.minimum(x, 50))


@triton.jit
def dtype_kernel(x_ptr, out_ptr, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK)).to(DTYPE)
    tl.static_assert(x.dtype == DTYPE)
    tl.static_assert(x.shape[0] == BLOCK)
    tl.store(out_ptr + tl.arange(0, BLOCK), x.to(tl.float32) * 3)


@pytest.mark.parametrize("name", ["float16", "int8", "float32"])
def test_a_type_as_a_constexpr(draw, poisoned, check, name):
    x, out = draw("float32", 32, -10, 10), poisoned("float32", 32)
    dtype_kernel[(1,)](x, out, DTYPE=getattr(tl, name), BLOCK=32)
    check(out, x.astype(name).astype(np.float64) * 3)


@tl.constexpr
def sum_dtype(dtype):
    return tl.int64 if dtype.is_int() else dtype


WEIGHT = 3


def weighted(count):
    return count.value * WEIGHT  # a constexpr, as Triton gives it


def one_more(count):
    return weighted(count) + 1


@triton.jit
def given_functions_kernel(x_ptr, out_ptr, FUNCTION: tl.constexpr, OTHERS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.static_assert(one_more == FUNCTION)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * FUNCTION(BLOCK) + OTHERS["scale"][0](2))


def test_functions_of_python_as_constexpr_arguments_run_at_compile_time(draw, poisoned, check):
    x, out = draw("int32", 32, -99, 99), poisoned("int32", 32)
    given_functions_kernel[(1,)](x, out, one_more, {"scale": (weighted,)}, BLOCK=32)
    check(out, x * 97 + 6)


@pytest.mark.parametrize("weight", [2, 3])
def test_lambdas_and_partials_as_constexpr_arguments(draw, poisoned, check, weight):
    x, out = draw("int32", 32, -99, 99), poisoned("int32", 32)
    others = {"scale": (lambda a: a * weight, lambda a: a)}
    given_functions_with_parts_kernel[(1,)](x, out, partial(scaled_and_shifted, shift=weight), others, BLOCK=32)
    check(out, 5 * x + weight + 7 * weight + 1)


@triton.jit
def scaled_and_shifted(x, scale: tl.constexpr, shift):
    return x * scale + shift


@triton.jit
def given_functions_with_parts_kernel(x_ptr, out_ptr, F: tl.constexpr, OTHERS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    first, second = OTHERS["scale"]
    tl.store(out_ptr + offsets, F(tl.load(x_ptr + offsets), 5) + first(7) + LOWER(second(BLOCK)))


LOWER = tl.constexpr(partial(lambda limit, n: min(limit, n), 1))


@triton.jit
def function_in_a_constexpr_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    accumulator: tl.constexpr = sum_dtype(x_ptr.dtype.element_ty)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)).to(accumulator)))


def test_a_function_of_python_in_a_constexpr_runs_at_compile_time(draw, poisoned, check):
    x, out = draw("int32", 32), poisoned("int64", 1)
    function_in_a_constexpr_kernel[(1,)](x, out, BLOCK=32)
    check(out, x.sum(dtype=np.int64, keepdims=True))


@triton.jit
def is_of_type(dtype):
    if dtype is tl.float32:
        return 1
    return 2 if dtype is tl.int8 else 3


@triton.jit
def identity_of_types_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    stride: tl.constexpr = n * BLOCK
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i * n), tl.load(y_ptr + i)
    scale = is_of_type(x_ptr.dtype.element_ty) + 4 * is_of_type(x.to(tl.int8).dtype)
    tl.store(out_ptr + i, x * is_of_type((x + y).dtype) + scale + stride)


def test_types_are_compared_by_identity_and_run_time_values_annotated_as_constexpr(draw, poisoned, check):
    x, y, out = draw("float32", 96), draw("int8", 32), poisoned("float32", 32)
    with pytest.warns(UserWarning, match="'stride' is annotated as constexpr, got int32, .* The annotation is ignored"):
        identity_of_types_kernel[(1,)](x, y, out, 3, BLOCK=32)
    check(out, (x[::3] + np.float32(9)) + np.float32(96))

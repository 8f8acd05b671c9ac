"""Private names of Triton's standard library that projects use, in kernels."""

import numpy as np

import deuteron as triton
import deuteron.language as tl
from deuteron.compat.standard_names import CORE_NAMES, STANDARD_NAMES

add, product = STANDARD_NAMES["_sum_combine"], STANDARD_NAMES["_prod_combine"]
largest, smallest = STANDARD_NAMES["_elementwise_max"], STANDARD_NAMES["_elementwise_min"]
xor, either = STANDARD_NAMES["_xor_combine"], STANDARD_NAMES["_or_combine"]
arg_largest, arg_smallest = STANDARD_NAMES["_argmax_combine"], STANDARD_NAMES["_argmin_combine"]
log2, indicator, flip_dim = (STANDARD_NAMES[f"_{name}"] for name in ("log2", "indicator", "get_flip_dim"))


@triton.jit
def first_largest(value1, index1, value2, index2):
    return arg_largest(value1, index1, value2, index2, True)


@triton.jit
def first_smallest(value1, index1, value2, index2):
    return arg_smallest(value1, index1, value2, index2, True)


@triton.jit
def private_names_kernel(x_ptr, out_ptr, bits_ptr, N: tl.constexpr, FIRST: tl.constexpr = CORE_NAMES["CONSTEXPR_0"]):
    i = tl.arange(FIRST, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr, tl.reduce(x, 0, add))
    tl.store(out_ptr + 1, tl.reduce(x % 3 + 1, 0, product))
    tl.store(out_ptr + 2, tl.reduce(x, 0, largest))
    tl.store(out_ptr + 3, tl.reduce(x, 0, smallest))
    tl.store(out_ptr + 4, tl.reduce(x, 0, xor))
    tl.store(out_ptr + 5, tl.reduce(x, 0, either))
    tl.store(out_ptr + 6, tl.reduce((x, i), 0, first_largest)[1])
    tl.store(out_ptr + 7, tl.reduce((x, i), 0, first_smallest)[1])
    dims: tl.constexpr = log2(N)
    for j in tl.static_range(dims):
        bit = tl.reshape(tl.broadcast_to(indicator(dims, j), (2,) * dims), (N,))
        tl.store(bits_ptr + j * N + i, bit)
    tl.static_assert(flip_dim(None, x.shape) == 0 and flip_dim(-1, (4, 8)) == 1)


def test_private_names(draw, poisoned, check):
    n = 16
    x, out, bits = draw("int32", n, 0, 9), poisoned("int32", 8), poisoned("int32", (4, n))
    private_names_kernel[(1,)](x, out, bits, N=n)
    reduced = [x.sum(), np.prod(x % 3 + 1), x.max(), x.min(), np.bitwise_xor.reduce(x), np.bitwise_or.reduce(x)]
    check(out, np.array([*reduced, x.argmax(), x.argmin()]))
    check(bits, np.arange(n)[None] >> np.arange(4)[:, None] & 1)

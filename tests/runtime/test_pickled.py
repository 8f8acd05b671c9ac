"""Kernels with `@autotune` and `@heuristics` are pickled, sent and copied by their name, as kernels are."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import VariableChanged
from deuteron.language.extra import cuda, libdevice


@deuteron.autotune(configs=[deuteron.Config({"BLOCK": 16})], key=["n"])
@deuteron.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


class Kernels:
    @staticmethod
    @deuteron.autotune(configs=[deuteron.Config({"num_warps": 1})], key=["n"])
    @deuteron.heuristics({"BLOCK": lambda args: args["n"]})
    @deuteron.jit
    def computed(x_ptr, n, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), n)


KERNELS = [tuned, Kernels.computed]


def launched(kernel):
    x = np.zeros(16, np.int32)
    kernel[(1,)](x, 16)
    return x.sum()


@pytest.mark.parametrize("kernel", KERNELS)
def test_by_name(kernel):
    assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert copy.deepcopy(kernel) is kernel and copy.copy(kernel) is kernel


def test_sent_to_a_process():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(launched, KERNELS) == [256, 256]


def test_a_function_that_was_defined_anew_is_told_apart():
    def defined(factor):
        @deuteron.jit
        def scaled(x):
            return x * factor

        return scaled

    def kernel_of(scaled):
        @deuteron.jit
        def kernel(x_ptr, n):
            tl.store(x_ptr, scaled(n))

        def redefine(other):
            nonlocal scaled
            scaled = other

        return kernel, redefine

    kernel, redefine = kernel_of(defined(tl.constexpr(2)))
    kernel[(1,)](np.zeros(16, np.int32), 16)
    redefine(defined(tl.constexpr(3)))
    with pytest.raises(VariableChanged, match=r"compiled: it is another JITFunction\(.*\. Pass"):
        kernel[(1,)](np.zeros(16, np.int32), 16)


@pytest.mark.parametrize("function", [tl.load, tl.sum, tl.cdiv, libdevice.tanh, cuda.smid, tl.math.exp2, deuteron.cdiv])
def test_functions_of_the_language_are_themselves(function):
    """Kernels know them by their identity, also those that an object brings which was copied."""
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.copy(function) is function and copy.deepcopy([function])[0] is function

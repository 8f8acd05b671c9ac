"""Tuples as arguments of kernels: arrays, numbers, None, functions, descriptors, named, nested, aggregates."""

from typing import NamedTuple

import numpy as np

import deuteron as triton
import deuteron.language as tl
from deuteron.tools.tensor_descriptor import TensorDescriptor


class Input(NamedTuple):
    pointer: object
    sizes: tuple
    bias: object


@triton.jit
def doubled(x):
    return 2 * x


@triton.jit
def combine(inputs, outputs, function, shift, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for item in inputs:
        total += tl.load(item.pointer + offsets, mask=offsets < item.sizes[0] * item.sizes[1], other=0)
        if item.bias is not None:
            total += item.bias
    tl.static_assert(len(outputs) == 2)
    tl.store(outputs[0] + offsets, total)
    tl.store(outputs[1] + offsets, function[0](total) + shift[0] + shift[1])


def test_nested_tuples(draw, poisoned, check):
    """Among the numbers are 1, which is compiled in, and multiples of 16; the second launch differs in them only."""
    x, y = draw("float32", 64, -9, 9), draw("float32", 64, -9, 9)
    mask = np.arange(64)
    for x_sizes, y_sizes, shift in (((4, 16), (48, 1), (1, 3)), ((1, 33), (7, 5), (16, 1))):
        outs = poisoned("float32", 64), poisoned("float32", 64)
        inputs = (Input(x, x_sizes, None), Input(y, y_sizes, 0.5))
        combine[(1,)](inputs, outs, (doubled,), shift, BLOCK=64)
        total = np.where(mask < np.prod(x_sizes), x, 0) + np.where(mask < np.prod(y_sizes), y, 0) + np.float32(0.5)
        check(outs[0], total)
        check(outs[1], 2 * total + sum(shift), 4)


@triton.jit
def copy_blocks(descriptors, n):
    x = descriptors[0].load([0, 0])
    descriptors[1].store([0, n], x)


def test_descriptors_in_a_tuple(draw, poisoned, check):
    x, out = draw("float32", (8, 16), -9, 9), poisoned("float32", (8, 32))
    out[:] = 0
    copy_blocks[(1,)]((TensorDescriptor.from_tensor(x, [8, 16]), TensorDescriptor.from_tensor(out, [8, 16])), 16)
    check(out, np.concatenate([np.zeros_like(x), x], axis=1))


@triton.aggregate
class Slice:
    pointer: tl.tensor
    start: tl.tensor
    SIZE: tl.constexpr

    @triton.jit
    def offsets(self):
        return self.start + tl.arange(0, self.SIZE)

    @triton.jit
    def load(self):
        return tl.load(self.pointer + self.offsets())

    @triton.jit
    def store(self, x):
        tl.store(self.pointer + self.offsets(), x)


@triton.jit
def move(source, target):
    target.store(source.load())


def test_aggregates_as_arguments(draw, poisoned, check):
    x, out = draw("int32", 40), poisoned("int32", 16)
    move[(1,)](Slice(x, 5, 16), Slice(out, 0, 16))
    check(out, x[5:21])

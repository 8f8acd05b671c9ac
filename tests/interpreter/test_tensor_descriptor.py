"""What TMA asks for is checked, whatever the kernel is compiled for."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import MemoryAccessError
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module


@deuteron.jit
def move(x, y, rows, stride, row, column):
    source = tl.make_tensor_descriptor(x, [rows, 16], [stride, 1], [4, 16])
    target = tl.make_tensor_descriptor(y, [rows, 16], [16, 1], [4, 16])
    target.store([row, column], source.load([0, 0]))


SIGNATURE = {"x": "*fp16", "y": "*fp16", **dict.fromkeys(("rows", "stride", "row", "column"), "i32")}


def run(x: np.ndarray, *numbers: int) -> np.ndarray:
    y = np.zeros((8, 16), np.float16)
    run_module(lower_function(move, SIGNATURE, {}), [x, y, *numbers], (1, 1, 1))
    return y


def test_a_block():
    x = np.arange(128, dtype=np.float16).reshape(8, 16)
    expected = np.zeros_like(x)
    expected[6:] = x[:2]
    np.testing.assert_array_equal(run(x, 8, 16, 6, 0), expected)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((8, 12, 0, 0), "strides but the last are multiples of 16 bytes, got 12 elements of 2 bytes"),
        ((8, 16, -1, 0), r"stored through a tensor descriptor at \[-1, 0\]"),
        ((8, 24, 0, 0), "Out-of-bounds descriptor load: lane"),
    ],
)
def test_errors(numbers: tuple[int, ...], message: str):
    """The last one: four rows that are 48 bytes apart are more than the array has."""
    with pytest.raises(MemoryAccessError, match=message):
        run(np.zeros((4, 16), np.float16), *numbers)


def test_an_unaligned_array():
    space = np.zeros(300, np.float16)
    start = 1 if space.ctypes.data % 16 == 0 else 0
    with pytest.raises(MemoryAccessError, match="base is a multiple of 16 bytes"):
        run(space[start : start + 128], 8, 16, 0, 0)

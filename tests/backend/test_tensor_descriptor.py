"""Descriptors of arrays: what they are to a kernel, and what no kernel can take."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.compat  # noqa: F401
from deuteron.backend.tensor_descriptor import TensorDescriptor, flatten, specialise
from deuteron.errors import LaunchError, UsageError
from deuteron.language.signature import parse_type
from deuteron.runtime.mock import reinterpret


@pytest.fixture
def x() -> np.ndarray:
    return np.zeros((20, 48), np.float16)


def test_import_paths():
    from triton.tools.tensor_descriptor import TensorDescriptor as compat

    from deuteron.tools.tensor_descriptor import TensorDescriptor as own

    assert own is compat is TensorDescriptor


def test_from_tensor(x):
    descriptor = TensorDescriptor.from_tensor(x, [16, 32])
    assert (descriptor.shape, descriptor.strides, descriptor.block_shape) == ([20, 48], [48, 1], [16, 32])
    token, passed = specialise(descriptor)
    assert token == "tensordesc<fp16[16,32]>:16"
    assert passed == (x.ctypes.data, 20, 48, 48)
    assert flatten([1, descriptor, 2])[2:] == [20, 48, 48, 2]


def test_rows_that_are_no_multiple_of_16_bytes(x):
    assert specialise(TensorDescriptor(x, [20, 41], [48, 1], [16, 32]))[0] == "tensordesc<fp16[16,32]>"


def test_blocks_may_change_between_launches(x):
    """A hook of the autotuner does it."""
    descriptor = TensorDescriptor.from_tensor(x, [1, 8])
    descriptor.block_shape = [8, 16]
    assert specialise(descriptor)[0] == "tensordesc<fp16[8,16]>:16"


def test_padding_and_other_types(x):
    assert specialise(TensorDescriptor.from_tensor(x, [8, 8], padding="nan"))[0] == "tensordesc<fp16[8,8],nan>:16"
    from deuteron.language import float8e5

    wrapped = reinterpret(x.view(np.uint8), float8e5)
    descriptor = TensorDescriptor.from_tensor(wrapped, [8, 32])
    assert specialise(descriptor)[0] == "tensordesc<fp8e5[8,32]>:16"
    assert descriptor.strides == [96, 1]


def test_torch():
    torch = pytest.importorskip("torch")
    t = torch.zeros((20, 48), dtype=torch.bfloat16)
    descriptor = TensorDescriptor.from_tensor(t, [16, 32])
    assert specialise(descriptor) == ("tensordesc<bf16[16,32]>:16", (t.data_ptr(), 20, 48, 48))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([20], [48, 1], [8, 8]), "as many strides"),
        (([], [], []), "one to 5 dimensions"),
        (([0, 48], [48, 1], [8, 8]), "sizes .* are from 1 to"),
        (([20, 48], [48, 2], [8, 8]), "last dimension .* has stride 1"),
        (([20, 48], [48, 1], [8, 8], "one"), "padding .* is one of"),
        (([20, 48], [48, 1], [8, 8], "zero", True), "rounds fp32 to tf32 is not supported"),
    ],
)
def test_usage_errors(x, given, message):
    with pytest.raises(UsageError, match=message):
        TensorDescriptor(x, *given)


def test_alignment_is_checked(x):
    with pytest.raises(LaunchError, match="multiples of 16 bytes"):
        TensorDescriptor(x, [20, 40], [44, 1], [8, 8])
    with pytest.raises(LaunchError, match="multiples of 16 bytes"):
        TensorDescriptor(x[:, 1:], [20, 40], [48, 1], [8, 8])
    with pytest.raises(LaunchError, match="is of an array, got an object of type 'int'"):
        TensorDescriptor(3, [20, 40], [48, 1], [8, 8])


@pytest.mark.parametrize("block_shape", ([16.0, 8], ["a", 8], [None, 8], [[3], 8]))
def test_a_block_of_no_whole_numbers_is_refused(x, block_shape):
    with pytest.raises(UsageError, match="has whole numbers, got"):
        TensorDescriptor.from_tensor(x, block_shape)
    assert specialise(TensorDescriptor.from_tensor(x, [16, 8]))[0] == "tensordesc<fp16[16,8]>:16"


def test_what_a_hook_makes_of_a_block_spoils_no_other(x):
    changed = TensorDescriptor.from_tensor(x, [64, 8])
    changed.block_shape = [128.0, 8]
    with pytest.raises(UsageError, match="has whole numbers, got"):
        specialise(changed)
    assert specialise(TensorDescriptor.from_tensor(x, [128, 8]))[0] == "tensordesc<fp16[128,8]>:16"


def test_shapes_and_strides_are_whole_numbers(x):
    for shape, strides in (([20.0, 48], [48, 1]), ([None, 48], [48, 1]), ([20, 48], ["a", 1]), ([20, 48], [48.0, 1])):
        with pytest.raises(UsageError, match="has whole numbers, got"):
            TensorDescriptor(x, shape, strides, [16, 8])
    for size in (0, 2**31):  # kernels get them as int32
        with pytest.raises(UsageError, match="are from 1 to 2147483647, got"):
            TensorDescriptor(x, [size, 48], [48, 1], [16, 8])
    number = np.int64(16)
    assert type(TensorDescriptor.from_tensor(x, [number, 8]).block_shape[0]) is int


@pytest.mark.parametrize("extents", ("3,16", "0,16", "1099511627776,16", "16,24"))
def test_a_block_that_is_no_tile_is_refused(extents):
    """They were an InternalError of the verifier, one of memory, and an error about shapes."""
    with pytest.raises(UsageError, match="The block of a descriptor has"):
        parse_type(f"tensordesc<fp16[{extents}]>")

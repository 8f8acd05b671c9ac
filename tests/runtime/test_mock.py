"""Stand-ins for arrays: MockTensor and reinterpret."""

import numpy as np
import pytest

import deuteron.language as tl
from deuteron import MockTensor, TensorWrapper, reinterpret
from deuteron.errors import UsageError
from deuteron.runtime.specialise import specialise


def test_a_mock_tensor_is_an_aligned_pointer():
    assert specialise(MockTensor(tl.bfloat16)) == ("*bf16:16", 0)
    assert MockTensor(tl.float32, (4, 3, 2)).stride() == (6, 2, 1)


@pytest.mark.parametrize("value", [3, 0.5, None, "float32", [1]])
def test_other_values_are_not_wrapped(value):
    assert MockTensor.wrap_dtype(value) is value


def test_reinterpret_changes_the_type_and_keeps_the_address():
    x = np.zeros((4, 6), np.int8)
    wrapped = reinterpret(x, tl.float8e5)
    token, address = specialise(wrapped)
    assert token.startswith("*fp8e5") and address == x.ctypes.data
    assert (wrapped.shape, wrapped.stride(), wrapped.stride(0), wrapped.element_size()) == ((4, 6), (6, 1), 6, 1)


def test_other_data_of_a_reinterpreted_array():
    x = np.zeros((4, 6), np.int8)
    wrapped = reinterpret(x, tl.float8e5)
    assert wrapped.data is x
    wrapped.data = wrapped.data[1:, :3]
    assert (wrapped.shape, wrapped.stride(), wrapped.data_ptr()) == ((3, 3), (6, 1), x.ctypes.data + 6)
    with pytest.raises(UsageError, match="the data is an array of int8, taken for fp8e5, got array"):
        wrapped.data = x.astype(np.int16)


def test_reinterpret_to_its_own_type_gives_the_array_back():
    x = np.zeros(4, np.int8)
    assert reinterpret(x, tl.int8) is x
    assert reinterpret(reinterpret(x, tl.float8e5), tl.int8) is x


def test_reinterpreting_twice_wraps_once():
    twice = reinterpret(reinterpret(np.zeros(4, np.int16), tl.float16), tl.bfloat16)
    assert isinstance(twice, TensorWrapper) and isinstance(twice.base, np.ndarray)
    assert specialise(twice)[0].startswith("*bf16")


def test_only_arrays_can_be_reinterpreted():
    with pytest.raises(UsageError, match="reinterpret takes an array, got int"):
        reinterpret(5, tl.float32)

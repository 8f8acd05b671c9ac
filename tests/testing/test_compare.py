"""assert_close."""

import ml_dtypes
import numpy as np
import pytest

from deuteron.testing import assert_close


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_equal_arrays(dtype):
    assert_close(np.ones(5, dtype), np.ones(5, dtype))


@pytest.mark.parametrize(("dtype", "step"), [(np.float32, 1e-6), (np.float64, 1e-15), (np.float16, 0.1), (np.int32, 1)])
def test_arrays_that_differ(dtype, step):
    x = np.ones(5, dtype)
    y = x.copy()
    y[3] += dtype(step)
    with pytest.raises(AssertionError, match="sum of rows"):
        assert_close(x, y, err_msg="sum of rows")


def test_tolerances():
    assert_close(np.array([1.0]), np.array([1.1]), atol=0.11)
    assert_close(np.array([100.0]), np.array([110.0]), rtol=lambda dtype: 0.1 if dtype == np.float64 else 0)
    with pytest.raises(AssertionError):
        assert_close(np.array([100.0]), np.array([110.0]), rtol=0.09)


def test_nan_equals_nan_only():
    assert_close(np.array([np.nan]), np.array([np.nan]))
    with pytest.raises(AssertionError):
        assert_close(np.array([np.nan, 1]), np.array([1.0, 1]), atol=10)


def test_shapes_must_agree():
    with pytest.raises(AssertionError, match=r"^sum\narrays of different shapes: \(2, 3\) and \(3, 2\)$"):
        assert_close(np.ones((2, 3)), np.ones((3, 2)), err_msg="sum")

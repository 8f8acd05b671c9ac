"""What Triton's programs ask of an error: its message, its cause."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def inner(x, N: tl.constexpr):
    return x + tl.arange(0, N)


@triton.jit
def outer(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + inner(0, N), 1.0)


@triton.jit
def direct(x_ptr, N: tl.constexpr):
    tl.static_assert(N == 16, "N is 16")
    tl.store(x_ptr + tl.arange(0, N), 1.0)


def failure(kernel, n: int) -> triton.CompilationError:
    with pytest.raises(triton.CompilationError) as raised:
        kernel[(1,)](np.zeros(16, np.float32), n)
    return raised.value


def test_the_cause_of_an_error_in_a_called_function_is_the_error_there():
    error = failure(outer, 12)
    assert isinstance(error.__cause__, triton.CompilationError)
    assert error.__cause__.location == error.location
    assert not error.__cause__.call_chain
    assert "called from" in str(error)
    assert str(error.__cause__.__cause__) == error.error_message


def test_an_assertion_has_none():
    error = failure(direct, 8)
    assert error.__cause__ is None
    assert error.error_message.endswith("N is 16")


def test_an_integer_of_more_than_64_bits_is_an_overflow():
    with pytest.raises(OverflowError, match="64 bits"):
        outer[(1,)](2**64, 16)

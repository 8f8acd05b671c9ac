"""When launches check what they access, and of which arguments: the environment, options, kinds of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.backend.spans import EVERYTHING, Span, span_of
from deuteron.errors import MemoryAccessError, UsageError


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.delenv("DEUTERON_CHECK", raising=False)


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 1, mask=i < n)


def fails(out, n, **options) -> bool:
    try:
        fill[(1,)](out, n, BLOCK=16, **options)
    except MemoryAccessError:
        return True
    return False


def test_the_environment_is_asked_at_each_launch(monkeypatch):
    out = np.zeros(16, np.int32)[:8]
    for _ in range(5):  # the last ones without Python
        assert not fails(out, 9)
    monkeypatch.setenv("DEUTERON_CHECK", "bounds")
    for _ in range(5):
        assert fails(out, 9) and not fails(out, 8)
    assert not fails(out, 9, check="")
    monkeypatch.setenv("DEUTERON_CHECK", "none")
    assert not fails(out, 9)
    assert not fails(out, 9, debug=True)
    monkeypatch.setenv("DEUTERON_CHECK", "everything")
    with pytest.raises(UsageError, match="DEUTERON_CHECK must be bounds or none, got 'everything'"):
        fails(out, 9)


def test_options():
    out = np.zeros(16, np.int32)[:8]
    assert fails(out, 9, debug=True)
    assert fails(out, 9, check="bounds")
    assert not fails(out, 9, debug=True, check="")
    with pytest.raises(UsageError, match='check is None, "" or "bounds"'):
        fails(out, 9, check="all")


def test_prepared_launches_and_compiled_kernels_check():
    out = np.zeros(16, np.int32)[:8]
    prepared = fill.prepare(out, 8, BLOCK=16, grid=(1,), check="bounds")
    prepared.launch(out, 8)
    with pytest.raises(MemoryAccessError, match=r"lane \(8,\)"):
        prepared.launch(out, 9)
    kernel = fill.warmup(out, 8, BLOCK=16, grid=(1,), check="bounds")
    kernel[(1,)](out, 8)
    with pytest.raises(MemoryAccessError, match="byte offset 32 of out_ptr, which has 32 bytes"):
        kernel[(1,)](out, 16)
    with pytest.raises(MemoryAccessError, match="and the kernel was given no array"):
        kernel[(1,)](out.ctypes.data, 16)


def test_after_an_error_other_programs_do_not_begin(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "1")

    @triton.jit
    def count(out_ptr, bad):
        tl.store(out_ptr + tl.program_id(0) + tl.where(tl.program_id(0) == bad, 1000, 0), 1)

    out = np.zeros(100, np.int32)
    with pytest.raises(MemoryAccessError, match=r"Out-of-bounds store: program \(7, 0, 0\) of kernel 'count'"):
        count[(100,)](out, 7, debug=True)
    assert out.sum() == 7


class Tensor:
    """As torch's are."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def element_size(self):
        return self.array.itemsize


class Address:
    """All that a launch asks of an array."""

    def __init__(self, array):
        self.array, self.dtype = array, array.dtype

    def data_ptr(self):
        return self.array.ctypes.data


class OnlyDLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyInterface:
    def __init__(self, array):
        self.array, self.dtype = array, array.dtype

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


def test_spans():
    x = np.zeros((6, 8), np.float32)
    at = x.ctypes.data
    assert span_of(x) == span_of(x.T) == Span(at, 192)
    assert span_of(x[1:5:2, 2:4]) == Span(at + 40, 64 + 8)
    assert span_of(x[::-1, ::-1]) == Span(at, 192)
    assert span_of(np.broadcast_to(x[0], (100, 8))) == Span(at, 32)
    assert span_of(x[:0]).num_bytes == 0
    assert span_of(x[0, 0, None].reshape(())) == Span(at, 4)
    for other in (Tensor, OnlyDLPack, OnlyInterface):
        assert span_of(other(x[1:5:2, 2:4])) == Span(at + 40, 64 + 8)
    assert span_of(Address(x)) == EVERYTHING
    assert span_of(7) is None


@pytest.mark.parametrize("kind", [Tensor, Address, OnlyInterface])
def test_kinds_of_arrays(kind):
    out = kind(np.zeros(16, np.int32)[:8])
    assert not fails(out, 8, check="bounds")
    assert fails(out, 9, check="bounds") == (kind is not Address)

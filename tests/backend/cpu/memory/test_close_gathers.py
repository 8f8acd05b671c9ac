"""What is gathered from close by is loaded as vectors, and touches no page that has no element of it."""

import ctypes
import mmap

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl

PAGE = mmap.PAGESIZE


@deuteron.jit
def gather(x, numbers, o, n, first, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = (i < n) & (i >= first)
    at = tl.load(numbers + i, mask=mask)
    tl.store(o + i, tl.load(x + at, mask=mask, other=7), mask=i < n)


def _between_pages(array):
    """A copy that fills a page, before and after which none may be touched; and what holds it."""
    memory = mmap.mmap(-1, 3 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for guard in (start, start + 2 * PAGE):
        assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(PAGE), 0) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, PAGE)
    copy[:] = array
    return copy


def _numbers(kind, n, size, rng):
    near = np.arange(n) // 2
    return {
        "enlarged": near,
        "at the end": size - 1 - near[::-1],
        "reversed": size - 1 - np.arange(n),
        "apart": rng.integers(0, size, n),
        "some": np.where(np.arange(n) % 16 < 9, near, rng.integers(0, size, n)),
        "around one": size // 2 + rng.integers(-7, 8, n),
        "beyond two vectors": np.where(np.arange(n) % 8 == 0, 0, rng.integers(0, size * 176 // PAGE, n)),
        "the same": np.full(n, size - 1),
    }[kind].astype(np.int32)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16, np.uint8])
@pytest.mark.parametrize(
    "kind",
    ["enlarged", "at the end", "reversed", "apart", "some", "around one", "beyond two vectors", "the same"],
)
def test_elements_of_one_page(rng, dtype, kind):
    size = PAGE // np.dtype(dtype).itemsize
    x = _between_pages(rng.integers(0, 99, size).astype(dtype))
    for n, first in ((200, 0), (37, 0), (64, 3), (1, 0), (50, 50)):
        numbers, o = _numbers(kind, n, size, rng), np.full(n + 16, 77, dtype)
        gather[(-(-n // 64),)](x, numbers, o, n, first, B=64)
        expected = np.where(np.arange(n) >= first, x[numbers], 7).astype(dtype)
        np.testing.assert_array_equal(o, np.concatenate([expected, np.full(16, 77, dtype)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_two_vectors_are_shuffled(dtype):
    x, numbers = np.zeros(64, dtype), np.zeros(64, np.int32)
    text = compile_for("cpu:x86-64-v4", gather, x, numbers, x, 64, 0, B=64).asm["llir"]
    assert "vpermi2var" in text
    text = compile_for("cpu:x86-64-v3", gather, x, numbers, x, 64, 0, B=64).asm["llir"]
    assert "vpermi2var" not in text


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int8])
def test_processors_that_gather_fast_do_not_look(dtype):
    """Narrow elements neither: words that hold them are gathered."""
    x, numbers = np.zeros(64, dtype), np.zeros(64, np.int32)
    text = compile_for("cpu:sapphirerapids", gather, x, numbers, x, 64, 0, B=64).asm["llir"]
    assert "vpermi2var" not in text and "llvm.masked.gather" in text

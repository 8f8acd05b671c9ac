"""Pointers as values: addresses in arrays, conversions to integers and to other pointers, booleans as bytes."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def grouped_kernel(addresses_ptr, lengths_ptr, out_ptr, x_ptr, BLOCK: tl.constexpr):
    """Arrays whose addresses lie in memory, as in a grouped matmul; x_ptr lets every executor know their memory."""
    group, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(addresses_ptr + group).to(tl.pointer_type(tl.float32))
    values = tl.load(x + i, mask=i < tl.load(lengths_ptr + group), other=0.0)
    tl.store(out_ptr + group, tl.sum(values))
    tl.store(x_ptr + group, (x + 1).to(tl.int64) - x.to(tl.int64))


def test_addresses_in_memory(draw, poisoned, check_norm):
    x, out, lengths = draw("float32", 100), poisoned("float32", 3), np.array([20, 7, 31], np.int32)
    starts = np.array([4, 30, 64])
    expected = [x[start : start + n].astype(np.float64).sum() for start, n in zip(starts, lengths, strict=True)]
    grouped_kernel[(3,)](x.ctypes.data + 4 * starts, lengths, out, x, BLOCK=32)
    check_norm(out, np.array(expected), 1e-6)
    np.testing.assert_array_equal(x[:3], 4)


@triton.jit
def from_null_kernel(x_ptr, address_ptr, out_ptr, n):
    """Loads through null and an offset what it has stored through the array that is there."""
    p = tl.cast(0, tl.int64).to(tl.pointer_type(tl.int32)) + tl.load(address_ptr) // 4
    total = 0
    for i in range(n):
        tl.store(x_ptr, i)
        total += tl.load(p)
    tl.store(out_ptr, total)


def test_null_and_an_offset_may_be_the_address_of_an_array(poisoned, check):
    x, out = poisoned("int32", 1), poisoned("int32", 1)
    from_null_kernel[(1,)](x, np.array([x.ctypes.data]), out, 5)
    check(out, np.array([10]))


@triton.jit
def halves_kernel(x_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    """Words as pairs of halves; a number other than 0 stored as a bool is the byte 1."""
    i = tl.arange(0, BLOCK)
    halves = tl.load(x_ptr.to(tl.pointer_type(tl.uint16)) + i, mask=i < 2 * n, other=0)
    tl.store(out_ptr + i, halves, mask=i < 2 * n)
    tl.store(flag_ptr + i, halves > 40000, mask=i < 2 * n)
    flags = tl.load(flag_ptr + i, mask=i < 2 * n, other=False)
    tl.debug_barrier()
    tl.store(flag_ptr + i, tl.where(flags, 0, halves % 3).to(tl.int1), mask=i < n)


def test_another_type_of_pointer(draw, poisoned, check):
    x, out, flags = draw("uint32", 25), poisoned("int32", 50), np.zeros(60, bool)
    halves_kernel[(1,)](x, out, flags, 25, BLOCK=64)
    halves = x.view(np.uint16).astype(np.int64)
    check(out, halves)
    large = halves > 40000
    expected = np.where(np.arange(50) < 25, ~large & (halves % 3 != 0), large)
    np.testing.assert_array_equal(flags.view(np.uint8), np.append(expected, np.zeros(10)).astype(np.uint8))


@triton.jit
def modifiers_kernel(x_ptr, out_ptr, n, LOAD: tl.constexpr, STORE: tl.constexpr, EVICT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=-1, cache_modifier=LOAD, eviction_policy=EVICT, volatile=LOAD == "")
    y = tl.load(x_ptr + n - 1, cache_modifier=LOAD)
    tl.store(out_ptr + i, x + y, mask=i < n + 1, cache_modifier=STORE, eviction_policy=EVICT)
    tl.store(out_ptr + n + 1, y, cache_modifier=STORE)


@pytest.mark.parametrize(
    ("load", "store", "evict"),
    [("", "", "evict_first"), (".ca", ".wb", ""), (".cg", ".cg", "evict_last"), (".cs", ".cs", ""), (".cv", ".wt", "")],
)
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_hints_change_no_value(draw, poisoned, check, dtype, load, store, evict):
    x, out = draw(dtype, 30), poisoned(dtype, 32)
    modifiers_kernel[(1,)](x, out, 30, LOAD=load, STORE=store, EVICT=evict, B=32)
    with np.errstate(over="ignore"):
        check(out, np.append(np.append(x, np.array([-1], dtype)) + x[-1], x[-1]))

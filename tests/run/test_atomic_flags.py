"""atomic_load, atomic_store, atomic_poll: flags by which programs tell each other that something is there."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def hand_over_kernel(data_ptr, flag_ptr, out_ptr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    """Program 0 waits for what program 1 stores."""
    offsets = tl.arange(0, BLOCK)
    if tl.program_id(0) == 1:
        tl.store(data_ptr + offsets, offsets + 100)
        tl.atomic_store(flag_ptr, 7, scope=SCOPE)
    else:
        matched = tl.atomic_poll(flag_ptr, 7, scope=SCOPE)
        tl.store(out_ptr + offsets, tl.load(data_ptr + offsets) + matched.to(tl.int32))


@pytest.mark.parametrize("dtype", ["int32", "uint16", "int64"])
def test_poll_waits_for_a_store(poisoned, check, dtype):
    data, flag, out = poisoned("int32", 64), np.zeros(1, dtype), poisoned("int32", 64)
    hand_over_kernel[(2,)](data, flag, out, SCOPE="sys" if dtype == "int64" else "gpu", BLOCK=64)
    check(out, np.arange(64) + 101)
    check(flag, np.array([7]))


@triton.jit
def wait_for_all_kernel(flag_ptr, data_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The last program waits until each of the others has raised its flag."""
    pid, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    if pid == n:
        tl.atomic_poll(flag_ptr + offsets, tl.where(offsets < n, offsets + 1, 0))
        values = tl.load(data_ptr + offsets, mask=offsets < n, other=0)
        tl.store(out_ptr, tl.sum(values))
    else:
        tl.store(data_ptr + pid, 10 * pid)
        (flag_ptr + pid).atomic_store(pid + 1, sem="release")


def test_poll_of_a_tile(poisoned, check):
    flags, data, out = np.zeros(8, np.int32), poisoned("int32", 5), poisoned("int32", 1)
    wait_for_all_kernel[(6,)](flags, data, out, 5, BLOCK=8)
    check(out, np.array([100]))


@triton.jit
def give_up_kernel(flag_ptr, out_ptr, timeout, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.atomic_poll(flag_ptr + offsets, offsets, timeout_ns=timeout))
    tl.store(out_ptr + BLOCK, tl.atomic_poll(flag_ptr, 5, timeout_ns=0))
    tl.store(out_ptr + BLOCK + 1, tl.atomic_poll(flag_ptr, 0, sem="relaxed", scope="cta", timeout_ns=0))


def test_poll_gives_up(poisoned, check):
    flags, out = np.array([0, 1, 5, 3], np.int32), poisoned("int32", 6)
    give_up_kernel[(1,)](flags, out, 1000, BLOCK=4)
    check(out, np.array([1, 1, 0, 1, 0, 1]))


@triton.jit
def load_store_kernel(x_ptr, out_ptr, n, SEM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.atomic_load(x_ptr + offsets, mask=inside, sem="acquire" if SEM == "release" else SEM)
    tl.atomic_store(out_ptr + offsets, x, mask=inside, sem=SEM)
    tl.atomic_store(out_ptr + n, tl.atomic_load(x_ptr))


@pytest.mark.parametrize(
    ("dtype", "sem"),
    [
        ("int8", "relaxed"),
        ("uint16", "release"),
        ("float16", "release"),
        ("bfloat16", "relaxed"),
        ("float32", "release"),
        ("int64", "relaxed"),
        ("float64", "release"),
        ("bool", "relaxed"),
    ],
)
def test_every_type(draw, poisoned, dtype, sem):
    x, out = draw(dtype, 27), poisoned(dtype, 28)
    load_store_kernel[(1,)](x, out, 25, SEM=sem, BLOCK=32)
    np.testing.assert_array_equal(out[:26], np.append(x[:25], x[0]))
    np.testing.assert_array_equal(out[26:].view(np.uint8), poisoned(dtype, 28)[26:].view(np.uint8))

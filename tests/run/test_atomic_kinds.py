"""Every read-modify-write in every type, on tiles with masks and lanes that meet, and on scalars; special values."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu

N, SLOTS = 128, 8


@triton.jit
def integers_kernel(x_ptr, mask_ptr, out_ptr, N: tl.constexpr, SLOTS: tl.constexpr):
    """A row of slots for each kind; lanes of one slot meet. Nobody asks for the old values."""
    i = tl.arange(0, N)
    x, mask = tl.load(x_ptr + i), tl.load(mask_ptr + i)
    slots = out_ptr + i % SLOTS
    tl.atomic_add(slots, x, mask=mask, sem="relaxed", scope="cta")
    tl.atomic_max(slots + SLOTS, x, mask=mask, sem="acquire", scope="sys")
    tl.atomic_min(slots + 2 * SLOTS, x, mask=mask, sem="release")
    tl.atomic_and(slots + 3 * SLOTS, x, mask=mask)
    tl.atomic_or(slots + 4 * SLOTS, x, mask=mask, scope="gpu")
    (slots + 5 * SLOTS).atomic_xor(x, mask=mask, sem="acq_rel")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integers(draw, check, dtype):
    x, mask, out = draw(dtype, N), draw("bool", N), draw(dtype, (6, SLOTS))
    x[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    expected = out.copy()
    for i in np.flatnonzero(mask):
        column = expected[:, i % SLOTS]
        with np.errstate(over="ignore"):
            column[0] += x[i]
        column[1], column[2] = max(column[1], x[i]), min(column[2], x[i])
        column[3:] = column[3] & x[i], column[4] | x[i], column[5] ^ x[i]
    integers_kernel[(1,)](x, mask, out, N=N, SLOTS=SLOTS)
    check(out, expected)


@triton.jit
def floats_kernel(x_ptr, mask_ptr, out_ptr, old_ptr, N: tl.constexpr):
    """Lanes have slots of their own, so that the old values are known."""
    i = tl.arange(0, N)
    x, mask = tl.load(x_ptr + i), tl.load(mask_ptr + i)
    tl.store(old_ptr + i, tl.atomic_max(out_ptr + i, x, mask=mask), mask=mask)
    tl.store(old_ptr + N + i, tl.atomic_min(out_ptr + N + i, x))
    tl.store(old_ptr + 2 * N + i, tl.atomic_xchg(out_ptr + 2 * N + i, x, mask=mask), mask=mask)
    tl.store(old_ptr + 3 * N, tl.atomic_max(out_ptr + 3 * N, tl.load(x_ptr)))


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 1.0, -1.0]


def by_bits(old: np.ndarray, x: np.ndarray, is_max: bool) -> np.ndarray:
    """The bits of a positive value as signed integers, those of a negative one as unsigned ones."""
    width = 8 * old.itemsize
    signed = [a.view(f"int{width}") for a in (old, x)]
    unsigned = [a.view(f"uint{width}") for a in (old, x)]
    positive = (np.maximum if is_max else np.minimum)(*signed)
    negative = (np.minimum if is_max else np.maximum)(*unsigned)
    return np.where(signed[1] >= 0, positive.view(old.dtype), negative.view(old.dtype))


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    bits = f"uint{8 * got.itemsize}"
    np.testing.assert_array_equal(got.view(bits), expected.astype(got.dtype).view(bits))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_in_the_order_of_their_bits(draw, poisoned, dtype):
    x, mask, out, old = draw(dtype, N), draw("bool", N), draw(dtype, (4, N)), poisoned(dtype, (4, N))
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1).astype(dtype)
    x[1 : 1 + pairs.shape[1]], out[:3, 1 : 1 + pairs.shape[1]] = pairs
    before, expected_old = out.copy(), old.copy()
    expected = before.copy()
    expected[0] = np.where(mask, by_bits(before[0], x, True), before[0])
    expected[1] = by_bits(before[1], x, False)
    expected[2] = np.where(mask, x, before[2])
    expected[3, :1] = by_bits(before[3, :1], x[:1], True)
    expected_old[0], expected_old[2] = (np.where(mask, before[row], old[row]) for row in (0, 2))
    expected_old[1], expected_old[3, 0] = before[1], before[3, 0]
    floats_kernel[(1,)](x, mask, out, old, N=N)
    same_bits(out, expected)
    same_bits(old, expected_old)


@triton.jit
def swap_kernel(x_ptr, compare_ptr, value_ptr, old_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    old = tl.atomic_cas(x_ptr + i, tl.load(compare_ptr + i), tl.load(value_ptr + i), sem="acquire", scope="sys")
    tl.store(old_ptr + i, old)
    tl.store(old_ptr + N, tl.atomic_cas(x_ptr + N, tl.load(compare_ptr + N), tl.load(value_ptr + N)))


@pytest.mark.parametrize("dtype", ["int16", "uint32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_compare_and_swap_compares_bits(draw, poisoned, dtype):
    x, value, old = draw(dtype, N + 1), draw(dtype, N + 1), poisoned(dtype, N + 1)
    compare = np.where(draw("bool", N + 1), x, value)
    if x.dtype.kind not in "iu":
        x[:2], compare[:2] = np.array([0.0, np.nan], x.dtype), np.array([-0.0, np.nan], x.dtype)
    before = x.copy()
    bits = f"uint{8 * x.itemsize}"
    expected = np.where(before.view(bits) == compare.view(bits), value.view(bits), before.view(bits))
    swap_kernel[(1,)](x, compare, value, old, N=N)
    np.testing.assert_array_equal(x.view(bits), expected)
    same_bits(old, before)


@triton.jit
def add_one_by_one(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.atomic_add(x_ptr + offsets, tl.load(y_ptr + offsets))


def test_gpus_add_subnormal_floats_as_zeros(rng, executor):
    """Seen on an H100, by random programs; in fp16 and fp64 they are added as they are."""
    tiny = np.finfo(np.float32).tiny
    x = rng.choice(np.float32([0, -0.0, tiny / 2, -tiny / 2, tiny, 1]), 64)
    y = rng.choice(np.float32([0, -0.0, tiny / 4, -tiny / 4, -tiny, -3 * tiny / 4]), 64)

    def flush(x):
        return np.where(np.abs(x) < tiny, np.copysign(np.float32(0), x), x)

    expected = flush(flush(x) + flush(y)) if executor.startswith("cuda") else x + y
    add_one_by_one[(1,)](x, y, N=64)
    np.testing.assert_array_equal(x.view(np.uint32), expected.view(np.uint32))

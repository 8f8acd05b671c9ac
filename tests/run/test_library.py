"""What no other test here uses of the language: shapes, hints, small functions; each against NumPy."""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def shapes_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    rows, columns = tl.broadcast(x[:, None], y[None, :])
    out = out_ptr + i[:, None] * N + i[None, :]
    tl.store(out, tl.sub(rows, columns))
    tl.store(out + N * N, tl.squeeze(tl.unsqueeze(rows, 1), -2) * tl.mul(columns, 2))
    out += 2 * N * N
    both = tl.cat(x, y)
    tl.store(out_ptr + 2 * N * N + tl.arange(0, 2 * N), both)
    pairs = tl.cat(x[:, None], y[:, None], dim=1)
    tl.store(out_ptr + 2 * N * N + 2 * N + i[:, None] * 2 + tl.arange(0, 2)[None, :], pairs)
    tl.store(out_ptr + 2 * N * N + 4 * N + i, tl.cumprod(x % 3 + 1, 0))
    tl.store(out_ptr + 2 * N * N + 5 * N + i, tl.cumprod(y % 3 + 1, 0, reverse=True))
    tl.store(out_ptr + 2 * N * N + 6 * N, tl.xor_sum(x, 0))
    tl.store(out_ptr + 2 * N * N + 6 * N + 1, tl.reduce_or(x, 0))
    tl.store(out_ptr + 2 * N * N + 6 * N + 2, tl.sum(x[None, :], 1).item())
    any_order = tl.cat(x, y, can_reorder=True)
    tl.store(out_ptr + 2 * N * N + 6 * N + 3, tl.sum(any_order))
    within = (x > 0).logical_and(y > 0)
    beyond = (x > 0).logical_or(y > 0)
    tl.store(out_ptr + 2 * N * N + 7 * N + i, within.to(tl.int32) + 2 * beyond.to(tl.int32))


def test_shapes_and_reductions(draw, poisoned, check):
    n = 16
    x, y, out = draw("int32", n, -99, 99), draw("int32", n, -99, 99), poisoned("int32", 2 * n * n + 8 * n)
    shapes_kernel[(1,)](x, y, out, N=n)
    rest = out[2 * n * n :]
    check(out[: n * n], (x[:, None] - y[None, :]).ravel())
    check(out[n * n : 2 * n * n], (2 * x[:, None] * y[None, :]).ravel())
    check(rest[: 2 * n], np.concatenate([x, y]))
    check(rest[2 * n : 4 * n], np.stack([x, y], 1).ravel())
    check(rest[4 * n : 5 * n], np.cumprod(np.fmod(x, 3) + 1, dtype=np.int32))
    check(rest[5 * n : 6 * n], np.cumprod((np.fmod(y, 3) + 1)[::-1], dtype=np.int32)[::-1])
    last = [np.bitwise_xor.reduce(x), np.bitwise_or.reduce(x), x.sum(), x.sum() + y.sum()]
    check(rest[6 * n : 6 * n + 4], np.array(last))
    check(rest[7 * n :], ((x > 0) & (y > 0)) + 2 * ((x > 0) | (y > 0)))


@triton.jit
def hints_kernel(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 4), BLOCK)
    inside = tl.max_constancy(i < n, 4)
    stride = tl.multiple_of(stride, 8)
    x = tl.load(x_ptr + i, mask=inside, other=0.0)
    x = tl.expect_zero(x, ~inside)
    tl.device_assert(i >= 0, "no index is negative")
    quotient = tl.fdiv(x, tl.to_tensor(3.0), ieee_rounding=True) + tl.fdiv(x, 7.0)
    row, column = tl.swizzle2d(i // 8, i % 8, 8, 8, 2)
    tl.store(out_ptr + i, quotient, mask=inside)
    tl.store(out_ptr + stride + i, (8 * row + column).to(tl.float32), mask=inside)
    even, odd = tl.random.pair_uniform_to_normal(tl.abs(x) / 10 + 0.1, tl.abs(x) / 8)
    tl.store(out_ptr + 2 * stride + i, even * even + odd * odd, mask=inside)


def test_hints_and_small_functions(draw, poisoned, check_norm):
    x, out = draw("float32", 60, -8, 8), poisoned("float32", (3, 64))
    hints_kernel[(2,)](x, out, 60, 64, BLOCK=32)
    wide = x.astype(np.float64)
    check_norm(out[0, :60], wide / 3 + wide / 7, 1e-6)
    order = np.arange(64).reshape(4, 2, 8).transpose(0, 2, 1).ravel()  # down the columns of groups of two rows
    np.testing.assert_array_equal(out[1, :60], order[:60])
    check_norm(out[2, :60], -2 * np.log(np.abs(wide) / 10 + 0.1), 1e-5)
    assert np.isnan(out[:, 60:]).all()


@triton.jit
def loaded_starts_kernel(x_ptr, starts_ptr, out_ptr, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Groups of neighbours begin where memory says; only those of programs with even numbers are aligned."""
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    start = tl.load(starts_ptr + pid * BLOCK)
    index = tl.load(starts_ptr + pid * BLOCK + i)
    if pid % 2 == 0:
        aligned = tl.max_contiguous(tl.multiple_of(tl.load(starts_ptr + pid * BLOCK + i), GROUP), GROUP)
        total = tl.load(x_ptr + aligned) + tl.load(x_ptr + tl.multiple_of(start, GROUP) + i)
    else:
        total = tl.load(x_ptr + index) + tl.load(x_ptr + start + i)
    tl.store(out_ptr + pid * BLOCK + i, total)


def test_hints_on_what_is_loaded_hold_in_their_branch(draw, poisoned, check):
    group, block, programs = 4, 256, 4
    x, out = draw("int32", 4 * block, -99, 99), poisoned("int32", programs * block)
    starts = np.random.default_rng(0).integers(0, 2 * block // group, (programs, block // group)) * group
    starts[1::2] += 3
    index = (starts[:, :, None] + np.arange(group)).reshape(programs, block).astype(np.int32)
    loaded_starts_kernel[(programs,)](x, index, out, GROUP=group, BLOCK=block)
    check(out, (x[index] + x[index[:, :1] + np.arange(block)]).ravel())


@triton.aggregate
class Range:
    first: tl.tensor
    count: tl.constexpr


@triton.jit
def loops_kernel(out_ptr, n, STEP: tl.constexpr):
    range = tl.aggregate_replace(Range(tl.to_tensor(0), 4), first=tl.to_tensor(10))
    total, i = range.first * 0, 0
    while tl.condition(i < n, disable_licm=True):
        total += range.first + i
        i += STEP
    tl.store(out_ptr, total + range.count)


def test_a_condition_and_a_changed_aggregate(poisoned, check):
    out = poisoned("int32", 1)
    loops_kernel[(1,)](out, 7, STEP=2)
    check(out, np.array([(10 + 0) + (10 + 2) + (10 + 4) + (10 + 6) + 4]))

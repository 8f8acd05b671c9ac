"""Algorithms outside of networks: dynamic programming, a transform, a merge, a hash, prefix sums over all programs."""

from __future__ import annotations

import hashlib

import deuteron as triton
import deuteron.language as tl
import numpy as np
from tests.kernels.case import Case, Launch, case, normal, poisoned, wide


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b)


@triton.jit
def edit_distance_kernel(a_ptr, b_ptr, out_ptr, a_length, b_length, BLOCK: tl.constexpr):
    """A row of the table at a time: insertions within the row are a scan of its minima."""
    j = tl.arange(0, BLOCK)
    row = j
    for i in range(a_length):
        a = tl.load(a_ptr + i)
        b = tl.load(b_ptr + j - 1, mask=(j > 0) & (j <= b_length), other=0)
        diagonal = tl.gather(row, tl.maximum(j - 1, 0), 0) + (a != b).to(tl.int32)
        best = tl.where(j == 0, i + 1, tl.minimum(diagonal, row + 1))
        row = tl.associative_scan(best - j, 0, smaller) + j
    tl.store(out_ptr, tl.sum(tl.where(j == b_length, row, 0), 0))


@triton.jit
def fourier_kernel(x_ptr, out_ptr, STEPS: tl.constexpr):
    """Stockham's order: halves are split, and joined again as neighbours."""
    N: tl.constexpr = 1 << STEPS
    row = tl.program_id(0) * 2 * N
    i = tl.arange(0, N)
    re = tl.load(x_ptr + row + 2 * i)
    im = tl.load(x_ptr + row + 2 * i + 1)
    for step in tl.static_range(STEPS):
        done: tl.constexpr = 1 << step
        rest: tl.constexpr = N // 2 // done
        re0, re1 = tl.split(tl.trans(re.reshape(2, N // 2)))
        im0, im1 = tl.split(tl.trans(im.reshape(2, N // 2)))
        angle = -3.141592653589793 / done * (tl.arange(0, N // 2) % done).to(tl.float32)
        c, s = tl.cos(angle), tl.sin(angle)
        re1, im1 = re1 * c - im1 * s, re1 * s + im1 * c
        re = tl.join((re0 + re1).reshape(rest, done), (re0 - re1).reshape(rest, done)).permute(0, 2, 1).reshape(N)
        im = tl.join((im0 + im1).reshape(rest, done), (im0 - im1).reshape(rest, done)).permute(0, 2, 1).reshape(N)
    tl.store(out_ptr + row + 2 * i, re)
    tl.store(out_ptr + row + 2 * i + 1, im)


@triton.jit
def merge_kernel(a_ptr, b_ptr, out_ptr, a_size, b_size, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """How many of the first i come from a: each lane looks by bisection."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < a_size + b_size
    low = tl.maximum(0, i - b_size)
    high = tl.minimum(i, a_size)
    for _ in range(STEPS):
        middle = (low + high) // 2
        looks = (low < high) & mask
        is_more = tl.load(a_ptr + middle, looks, other=0) <= tl.load(b_ptr + i - 1 - middle, looks, other=0)
        low = tl.where(looks & is_more, middle + 1, low)
        high = tl.where(looks & ~is_more, middle, high)
    a = tl.load(a_ptr + low, mask & (low < a_size), other=2147483647)
    b = tl.load(b_ptr + i - low, mask & (i - low < b_size), other=2147483647)
    tl.store(out_ptr + i, tl.minimum(a, b), mask)


@triton.jit
def look_back_kernel(x_ptr, out_ptr, state_ptr, sum_ptr, prefix_ptr, n, BLOCK: tl.constexpr):
    """A program adds up what those before it have found out: 1 is its own sum, 2 the sum of all up to it."""
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    total = tl.sum(x, 0)
    before = 0
    if pid > 0:
        tl.store(sum_ptr + pid, total)
        tl.debug_barrier()
        tl.atomic_xchg(state_ptr + pid, 1, sem="release")
        other = pid - 1
        while other >= 0:
            state = tl.atomic_add(state_ptr + other, 0, sem="acquire")
            if state == 2:
                before += tl.load(prefix_ptr + other, volatile=True)
                other = -1
            elif state == 1:
                before += tl.load(sum_ptr + other, volatile=True)
                other -= 1
    tl.store(prefix_ptr + pid, before + total)
    tl.debug_barrier()
    tl.atomic_xchg(state_ptr + pid, 2, sem="release")
    tl.store(out_ptr + i, before + tl.cumsum(x, 0), mask=i < n)


def fraction_of_root(number: int, degree: int) -> int:
    """The first 32 bits behind the point: what SHA-256 begins with, and adds in each round."""
    root = round(number ** (1 / degree) * 2**32)
    while root**degree > number << 32 * degree:
        root -= 1
    while (root + 1) ** degree <= number << 32 * degree:
        root += 1
    return root % 2**32


PRIMES = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
START = tl.constexpr(tuple(fraction_of_root(prime, 2) for prime in PRIMES[:8]))
ROUNDS = tl.constexpr(tuple(fraction_of_root(prime, 3) for prime in PRIMES))


@triton.jit
def rotated(x, bits: tl.constexpr):
    return (x >> bits) | (x << (32 - bits))


@triton.jit
def sha256_kernel(block_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One message of one block in each lane: tuples of tiles that grow, written out 64 times."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    w = ()
    for t in tl.static_range(16):
        w = w + (tl.load(block_ptr + i * 16 + t, mask, other=0),)
    start = [tl.full((BLOCK,), word, tl.uint32) for word in START]
    a, b, c, d, e, f, g, h = start
    for t in tl.static_range(64):
        if t >= 16:
            s0 = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ (w[t - 15] >> 3)
            s1 = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ (w[t - 2] >> 10)
            w = w + (w[t - 16] + s0 + w[t - 7] + s1,)
        first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[t] + w[t]
        second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = first + second, a, b, c, d + first, e, f, g
    for k, word in enumerate((a, b, c, d, e, f, g, h)):
        tl.store(out_ptr + i * 8 + k, start[k] + word, mask)


def edit_distance(a: np.ndarray, b: np.ndarray) -> int:
    row = list(range(len(b) + 1))
    for i, left in enumerate(a):
        above, row = row, [i + 1]
        for j, right in enumerate(b):
            row.append(min(above[j] + int(left != right), above[j + 1] + 1, row[j] + 1))
    return row[-1]


@case
def edit_distance_of_two_words(rng):
    a, b = (rng.integers(97, 101, size).astype(np.uint8) for size in (29, 50))
    out = poisoned(1, "int32")
    launch = Launch(edit_distance_kernel, (1,), (a, b, out, len(a), len(b)), {"BLOCK": 64, "num_warps": 1})
    return Case([launch], [(out, np.array([edit_distance(a, b)]), 0)])


@case
def fourier_transform(rng):
    x, out = normal(rng, (3, 128, 2)), poisoned((3, 128, 2))
    expected = np.fft.fft(wide(x[..., 0]) + 1j * wide(x[..., 1]))
    launch = Launch(fourier_kernel, (3,), (x, out), {"STEPS": 7})
    return Case([launch], [(out, np.stack([expected.real, expected.imag], -1), 1e-5)])


@case
def merge_of_sorted_arrays(rng):
    a, b = (np.sort(rng.integers(0, 500, size)).astype(np.int32) for size in (97, 155))
    out = poisoned(97 + 155, "int32")
    launch = Launch(merge_kernel, (4,), (a, b, out, 97, 155), {"STEPS": 8, "BLOCK": 64, "num_warps": 2})
    return Case([launch], [(out, np.sort(np.concatenate([a, b])), 0)])


@case
def prefix_sum_by_look_back(rng):
    x, out = rng.integers(-9, 10, 700).astype(np.int32), poisoned(700, "int32")
    state = np.zeros(11, np.int32)
    args = (x, out, state, poisoned(11, "int32"), poisoned(11, "int32"), 700)
    launch = Launch(look_back_kernel, (11,), args, {"BLOCK": 64, "num_warps": 2})
    return Case([launch], [(out, np.cumsum(x), 0), (state, np.full(11, 2), 0)])


@case
def sha256_of_short_messages(rng):
    messages = [rng.bytes(size) for size in rng.integers(0, 56, 45)]
    padded = [m + b"\x80" + bytes(55 - len(m)) + (8 * len(m)).to_bytes(8, "big") for m in messages]
    blocks = np.frombuffer(b"".join(padded), ">u4").astype(np.uint32)
    expected = np.frombuffer(b"".join(hashlib.sha256(m).digest() for m in messages), ">u4").astype(np.uint32)
    out = poisoned(45 * 8, "uint32")
    launch = Launch(sha256_kernel, (2,), (blocks, out, 45), {"BLOCK": 32, "num_warps": 1})
    return Case([launch], [(out, expected, 0)])

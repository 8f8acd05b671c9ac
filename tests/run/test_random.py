"""Random numbers: the published vectors of Philox, and bit for bit what Triton gives."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

# Counter, key, result: known answers of Random123 for ten rounds. Digits of pi are its arbitrary input.
ANSWERS_32 = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
ANSWERS_64 = [
    ((0, 0, 0, 0), (0, 0), (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)),
    (
        (2**64 - 1,) * 4,
        (2**64 - 1,) * 2,
        (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0),
    ),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


def philox(counter: list[np.ndarray], key: tuple[int, int], rounds: int = 10) -> list[np.ndarray]:
    """Philox-4x32 by the paper: of words of 32 bits, computed in 64."""
    c0, c1, c2, c3 = (word.astype(np.uint64) for word in counter)
    k0, k1 = (np.uint64(word) for word in key)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(rounds):
        first, second = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (second >> shift) ^ c1 ^ k0, second & low, (first >> shift) ^ c3 ^ k1, first & low
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return [word.astype(np.uint32) for word in (c0, c1, c2, c3)]


def random_words(seed: int, offsets: np.ndarray, rounds: int = 10) -> list[np.ndarray]:
    offsets = offsets.astype(np.int64).view(np.uint64) if offsets.dtype.itemsize == 8 else offsets.astype(np.uint32)
    low = offsets.astype(np.uint32)
    high = (offsets >> np.uint64(32)).astype(np.uint32) if offsets.dtype.itemsize == 8 else np.zeros_like(low)
    zero = np.zeros_like(low)
    return philox([low, high, zero, zero], (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF), rounds)


def uniform(words: np.ndarray) -> np.ndarray:
    signed = words.view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


@triton.jit
def words_kernel(counter_ptr, key_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    words = tl.philox_impl(
        tl.load(counter_ptr + i),
        tl.load(counter_ptr + N + i),
        tl.load(counter_ptr + 2 * N + i),
        tl.load(counter_ptr + 3 * N + i),
        tl.load(key_ptr + i),
        tl.load(key_ptr + N + i),
    )
    for k in tl.static_range(4):
        tl.store(out_ptr + k * N + i, words[k])


@pytest.mark.parametrize(("dtype", "answers"), [("uint32", ANSWERS_32), ("uint64", ANSWERS_64)])
def test_published_vectors(poisoned, check, dtype, answers):
    counter, key, expected = (np.array([*column, column[0]], dtype).T.copy() for column in zip(*answers, strict=True))
    out = poisoned(dtype, (4, 4))
    words_kernel[(1,)](counter, key, out, N=4)
    check(out, expected)


@triton.jit
def numbers_kernel(seed, offset_ptr, words_ptr, uniform_ptr, normal_ptr, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    offsets = tl.load(offset_ptr + i, mask=inside, other=0)
    words = tl.randint4x(seed, offsets, ROUNDS)
    numbers = tl.rand4x(seed, offsets, ROUNDS)
    normals = tl.randn4x(seed, offsets, n_rounds=ROUNDS)
    for k in tl.static_range(4):
        tl.store(words_ptr + k * n + i, words[k], mask=inside)
        tl.store(uniform_ptr + k * n + i, numbers[k], mask=inside)
        tl.store(normal_ptr + k * n + i, normals[k], mask=inside)
    tl.store(words_ptr + 4 * n + i, tl.randint(seed, offsets, ROUNDS), mask=inside)
    tl.store(uniform_ptr + 4 * n + i, tl.rand(seed, offsets, ROUNDS), mask=inside)
    tl.store(normal_ptr + 4 * n + i, tl.randn(seed, offsets, ROUNDS), mask=inside)


@pytest.mark.parametrize(
    ("key", "dtype", "rounds"), [(0, "int32", 10), (0xDEADBEEF, "int32", 6), (-5 << 40, "int64", 10)]
)
def test_numbers_of_seeds_and_offsets(draw, poisoned, check, check_norm, key, dtype, rounds):
    n = 45
    offsets = draw(dtype, n)
    words, numbers, normals = poisoned("uint32", (5, n)), poisoned("float32", (5, n)), poisoned("float32", (5, n))
    numbers_kernel[(2,)](key, offsets, words, numbers, normals, n, ROUNDS=rounds, BLOCK=32)
    expected = random_words(key, offsets, rounds)
    check(words, np.stack([*expected, expected[0]]))
    floats = [uniform(word) for word in expected]
    np.testing.assert_array_equal(numbers, np.stack([*floats, floats[0]]))
    assert (numbers >= 0).all() and (numbers < 1).all()
    pairs = [floats[0:2], floats[2:4]]
    expected_normals = []
    for u1, u2 in pairs:
        radius = np.sqrt(-2 * np.log(np.maximum(u1.astype(np.float64), 1e-7)))
        angle = 2 * np.pi * u2.astype(np.float64)
        expected_normals += [radius * np.cos(angle), radius * np.sin(angle)]
    check_norm(normals, np.stack([*expected_normals, expected_normals[0]]), 1e-5)


@triton.jit
def wide_kernel(seed, out_ptr, uniform_ptr, N: tl.constexpr):
    i = tl.arange(0, N).to(tl.int64)
    words = tl.philox(seed, i, i + 1, i * 0, i * 0)
    for k in tl.static_range(4):
        tl.store(out_ptr + k * N + i, words[k])
    tl.store(uniform_ptr + i, tl.uint_to_uniform_float(words[0]))


def test_words_of_64_bits(poisoned, check):
    """NumPy's own Philox-4x64 raises the counter before each block."""
    seed, n = 0x123456789ABCDEF, 8
    out, numbers = poisoned("uint64", (4, n)), poisoned("float32", n)
    wide_kernel[(1,)](seed, out, numbers, N=n)
    expected = [np.random.Philox(counter=i + ((i + 1) << 64) - 1, key=seed).random_raw(4) for i in range(n)]
    check(out, np.stack(expected).T)
    signed = out[0].view(np.int64)
    halves = np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(1.0842020432385337e-19)
    np.testing.assert_array_equal(numbers, halves)


@triton.jit
def scalar_kernel(seed, out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.rand(seed, tl.program_id(0)))


def test_scalar_offsets(poisoned):
    out = poisoned("float32", 5)
    scalar_kernel[(5,)](7, out)
    np.testing.assert_array_equal(out, uniform(random_words(7, np.arange(5, dtype=np.int32))[0]))

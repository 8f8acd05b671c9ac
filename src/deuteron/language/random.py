"""Random numbers: Philox, a counter-based generator, bit for bit as Triton has it. Written in the language.

    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, offsets) > p                   a float in [0, 1) for each offset
    a, b, c, d = tl.randint4x(seed, offsets)            four 32-bit integers for the work of one

The same seed and offset give the same number, whatever the target, the grid and the tiles. There is no state: a
program asks for other numbers by other offsets. Offsets of 32 and 64 bits give the same numbers where both fit.

Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011 (Philox-4x32-10, Philox-4x64-10).
"""

from __future__ import annotations

from deuteron.language.arithmetic import maximum
from deuteron.language.constant import constexpr
from deuteron.language.convert import to_tensor
from deuteron.language.creation import full
from deuteron.language.debug import static_assert
from deuteron.language.functions.function import Function
from deuteron.language.iterators import static_range
from deuteron.language.math import cos, log, sin, sqrt, umulhi
from deuteron.language.select import where
from deuteron.language.types import int32, int64, uint32, uint64

N_ROUNDS_DEFAULT = constexpr(10)

# Multipliers of the two halves of the counter, and what is added to the two words of the key after each round: the
# golden ratio and sqrt(3) - 1 as binary fractions.
_MULTIPLIERS_32 = constexpr((0xD2511F53, 0xCD9E8D57))
_MULTIPLIERS_64 = constexpr((0xD2E7470EE14C6C93, 0xCA5A826395121157))
_KEY_STEPS_32 = constexpr((0x9E3779B9, 0xBB67AE85))
_KEY_STEPS_64 = constexpr((0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B))

# The largest float whose product with the largest positive integer is below 1.
_SCALE_32 = constexpr(4.6566127342e-10)
_SCALE_64 = constexpr(1.0842020432385337e-19)


@Function
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four words of random bits: `n_rounds` rounds of Philox on a counter of four words and a key of two.

    :param c0: the lowest word of the counter; all words are uint32 (Philox-4x32), or all uint64 (Philox-4x64).
    :param k0: the lower word of the key, a scalar or a tile.

    Error: words that are neither uint32 nor uint64.
    """
    static_assert(c0.dtype == uint32 or c0.dtype == uint64, "philox_impl takes words of uint32 or uint64")
    multipliers: constexpr = _MULTIPLIERS_32 if c0.dtype == uint32 else _MULTIPLIERS_64
    steps: constexpr = _KEY_STEPS_32 if c0.dtype == uint32 else _KEY_STEPS_64
    for _ in static_range(n_rounds):
        high_0, low_0 = umulhi(c0, multipliers[0]), c0 * multipliers[0]
        high_2, low_2 = umulhi(c2, multipliers[1]), c2 * multipliers[1]
        c0, c1, c2, c3 = high_2 ^ c1 ^ k0, low_2, high_0 ^ c3 ^ k1, low_0
        k0, k1 = k0 + steps[0], k1 + steps[1]
    return c0, c1, c2, c3


@Function
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four words of random bits for a seed and a counter of four words.

    :param seed: an integer of up to 64 bits; the key of Philox.
    :param c0: the lowest word of the counter; integers of 32 bits give four uint32, those of 64 bits four uint64.
    :param n_rounds: 10 unless it is said otherwise.

    Errors: a seed that is no integer, words that have neither 32 nor 64 bits.
    """
    seed = to_tensor(seed)
    c0, c1, c2, c3 = to_tensor(c0), to_tensor(c1), to_tensor(c2), to_tensor(c3)
    static_assert(seed.dtype.is_int(), "the seed of philox is an integer")
    width: constexpr = c0.dtype.primitive_bitwidth
    static_assert(width == 32 or width == 64, "philox takes words of 32 or 64 bits")
    key = seed.to(uint64)
    if width == 32:
        word: constexpr = uint32
        k0, k1 = key.to(uint32), (key >> 32).to(uint32)
    else:
        word: constexpr = uint64
        k0, k1 = key, full((), 0, uint64)
    c0, c1 = c0.to(word, bitcast=True), c1.to(word, bitcast=True)
    c2, c3 = c2.to(word, bitcast=True), c3.to(word, bitcast=True)
    return philox_impl(c0, c1, c2, c3, k0, k1, n_rounds)


@Function
def randint4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four uint32 of 32 random bits for each offset, of the shape of `offset`; the cheapest way to four numbers.

    :param seed: a scalar integer of up to 64 bits.
    :param offset: integers of up to 64 bits, a scalar or a tile.
    :param n_rounds: rounds of Philox.
    """
    offset = to_tensor(offset)
    low = offset.to(uint32)
    zero = low * 0
    high = (offset >> 32).to(uint32) if offset.dtype.primitive_bitwidth > 32 else zero
    return philox(seed, low, high, zero, zero, n_rounds)


@Function
def randint(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A uint32 of 32 random bits for each offset: the first of `randint4x`."""
    first, _, _, _ = randint4x(seed, offset, n_rounds)
    return first


@Function
def uint_to_uniform_float(x):
    """Random bits as floats that are uniform in [0, 1): fp32 of 32-bit integers, and of 64-bit ones.

    A negative number counts as its complement, so that 31 or 63 bits are used.

    Error: integers of another width, floats.
    """
    static_assert(x.dtype.is_int(), "uint_to_uniform_float takes integers")
    width: constexpr = x.dtype.primitive_bitwidth
    static_assert(width == 32 or width == 64, "uint_to_uniform_float takes integers of 32 or 64 bits")
    signed: constexpr = int32 if width == 32 else int64
    scale: constexpr = _SCALE_32 if width == 32 else _SCALE_64
    x = x.to(signed, bitcast=True)
    return where(x < 0, ~x, x) * scale


@Function
def rand4x(seed, offsets, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four fp32, uniform in [0, 1), for each offset; parameters as `randint4x`."""
    a, b, c, d = randint4x(seed, offsets, n_rounds)
    return uint_to_uniform_float(a), uint_to_uniform_float(b), uint_to_uniform_float(c), uint_to_uniform_float(d)


@Function
def rand(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """An fp32, uniform in [0, 1), for each offset; parameters as `randint4x`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@Function
def pair_uniform_to_normal(u1, u2):
    """Two independent normal numbers of mean 0 and variance 1 out of two uniform ones, by Box and Muller."""
    angle = 6.283185307179586 * u2
    radius = sqrt(-2.0 * log(maximum(1.0e-7, u1)))
    return radius * cos(angle), radius * sin(angle)


@Function
def randn(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """An fp32, normal of mean 0 and variance 1, for each offset; parameters as `randint4x`."""
    a, b, _, _ = randint4x(seed, offset, n_rounds)
    normal, _ = pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))
    return normal


@Function
def randn4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four fp32, normal of mean 0 and variance 1, for each offset; parameters as `randint4x`."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4

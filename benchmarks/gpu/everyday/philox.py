"""The random numbers of `tl.rand` by torch, to compare with: ten rounds of Philox with four words of 32 bits.

    uniform(seed, n)            fp32 [n], what tl.rand(seed, tl.arange(0, n)) gives
    uniforms(seed, begin, n)    four of them, what tl.rand4x(seed, begin + tl.arange(0, n)) gives

After Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

from typing import Any

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
WORD = 0xFFFFFFFF
# The largest fp32 below 2^-31: the results are below 1.
SCALE = 4.6566127342e-10


def uniform(seed: int, n: int) -> Any:
    """Of a seed of 64 bits."""
    return uniforms(seed, 0, n)[0]


def uniforms(seed: int, begin: int, n: int) -> tuple[Any, ...]:
    import torch  # deferred: --precompile needs none

    counter = [torch.arange(begin, begin + n), *(torch.zeros(n, dtype=torch.int64) for _ in range(3))]
    key = [seed & WORD, seed >> 32 & WORD]
    for _ in range(10):
        (high_a, low_a), (high_b, low_b) = (_product(m, counter[2 * i]) for i, m in enumerate(MULTIPLIERS))
        counter = [high_b ^ counter[1] ^ key[0], low_b, high_a ^ counter[3] ^ key[1], low_a]
        key = [(k + step) & WORD for k, step in zip(key, KEY_STEPS, strict=True)]
    signed = (torch.where(word > WORD >> 1, word - WORD - 1, word) for word in counter)
    return tuple(torch.where(word < 0, -word - 1, word).float() * SCALE for word in signed)


def _product(multiplier: int, x: Any) -> tuple[Any, Any]:
    """The high and the low word, of halves of x: an int64 would overflow."""
    low, high = (x & 0xFFFF) * multiplier, (x >> 16) * multiplier
    total = low + ((high & 0xFFFF) << 16)
    return ((high >> 16) + (total >> 32)) & WORD, total & WORD

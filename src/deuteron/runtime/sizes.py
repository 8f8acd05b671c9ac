"""Sizes on the host: `cdiv` and `next_power_of_2`. Kernels may call both with compile-time values."""

from __future__ import annotations

from deuteron.language.source_functions import CompileTimeFunction


@CompileTimeFunction
def cdiv(x: int, y: int) -> int:
    """`x / y` rounded up, for integers."""
    return -(-x // y)


@CompileTimeFunction
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least `n`; 0 for 0, as in Triton."""
    return 1 << (n - 1).bit_length() if n > 0 else 0

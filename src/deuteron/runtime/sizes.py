"""Sizes on the host: `cdiv` and `next_power_of_2`. Kernels may call both with compile-time values."""

from __future__ import annotations

from operator import index

from deuteron.language.functions.source_functions import CompileTimeFunction


@CompileTimeFunction
def cdiv(x: int, y: int) -> int:
    """`x / y` rounded up, for integers."""
    return -(-x // y)


@CompileTimeFunction
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least `n`; 0 for 0, as in Triton."""
    try:
        whole = index(n)  # NumPy's integers too
    except TypeError:
        raise TypeError(f"next_power_of_2 takes a whole number, got {n!r}: divide with //") from None
    return 1 << (whole - 1).bit_length() if whole > 0 else 0

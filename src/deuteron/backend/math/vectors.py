"""Lanes of vectors that functions take apart, put together again, and ask.

concatenated(b, [<8 x float> x, <8 x float> y])      <16 x float>, the lanes of x before those of y
any_lane(b, <8 x i1> mask), all_lanes(b, mask)       i1
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, width


def concatenated(b: Builder, parts: list[Value]) -> Value:
    """Vectors of one type, a power of two of them, one after the other."""
    while len(parts) > 1:
        count = 2 * width(parts[0].type)
        parts = [b.shufflevector(*parts[i : i + 2], range(count)) for i in range(0, len(parts), 2)]
    return parts[0]


def any_lane(b: Builder, mask: Value) -> Value:
    return b.intrinsic("llvm.vector.reduce.or", "i1", mask, overloads=[mask.type])


def all_lanes(b: Builder, mask: Value) -> Value:
    return b.intrinsic("llvm.vector.reduce.and", "i1", mask, overloads=[mask.type])

"""What is known of integers and pointers along each dimension of a tile: contiguity, divisibility, constancy.

Along a dimension, a tile falls into aligned groups of neighbours, all of one power-of-two size, such that

    contiguity    within a group, values count up by one (pointers: by one element)
    divisibility  the first value of every contiguous group is a multiple of this (pointers: in bytes)
    constancy     within a group of that size, all values are equal

    offs = pid * 64 + arange(0, 64)      contiguity 64, divisibility 64, constancy 1
    x + offs, x divisible by 16          contiguity 64, divisibility 16 (bytes), constancy 1
    offs < n, n divisible by 16          constancy 16

It is a forward dataflow analysis; values that loops carry start with what enters and are weakened until stable.
Masks are where `constancy` matters: a vector access needs one mask for all of its elements.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from xdsl.ir import SSAValue

from deuteron.ir.types import (
    bit_width_of,
    byte_width_of,
    element_type_of,
    is_integer,
    is_pointer,
    pointee_of,
    shape_of,
)

MAX_DIVISIBILITY = 1 << 30
MIN_BITS = 32  # of integers that are taken not to wrap around


def power_of_two_divisor(number: int) -> int:
    """The largest power of two that divides a number; a large one for 0."""
    return min(number & -number, MAX_DIVISIBILITY) if number else MAX_DIVISIBILITY


class AxisInfo(NamedTuple):
    """What is known along each dimension; a scalar has one entry. `constant` is the value if it is one; `step` is
    by how much contiguous neighbours differ: 1, or the bytes of an element for pointers.
    """

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    constant: int | None = None
    step: int = 1

    def divisibility_at(self, axis: int, group: int) -> int:
        """What divides the first value of every group of that size."""
        if group >= self.contiguity[axis]:
            return self.divisibility[axis]
        return gcd(self.divisibility[axis], group * self.step)

    def join(self, other: AxisInfo) -> AxisInfo:
        """What holds of a value that is either one or the other."""
        axes = range(len(self.contiguity))
        contiguity = tuple(gcd(self.contiguity[a], other.contiguity[a]) for a in axes)
        return AxisInfo(
            contiguity,
            tuple(gcd(self.divisibility_at(a, contiguity[a]), other.divisibility_at(a, contiguity[a])) for a in axes),
            tuple(gcd(self.constancy[a], other.constancy[a]) for a in axes),
            self.constant if self.constant == other.constant else None,
            max(self.step, other.step),
        )


def unwrapped(value: SSAValue, info: AxisInfo) -> AxisInfo:
    """What holds of integers that wrap around where they are of few bits: groups that begin with a multiple of their
    size are contiguous all the same, and no others are known to be.
    """
    element = element_type_of(value.type)
    if not is_integer(element) or bit_width_of(element) >= MIN_BITS:
        return info
    return in_aligned_groups(info, 1 << bit_width_of(element) - 1)


def in_aligned_groups(info: AxisInfo, most: int) -> AxisInfo:
    """What holds whatever is wrapped around at a multiple of `most`."""
    contiguity = tuple(gcd(c, d, most) for c, d in zip(info.contiguity, info.divisibility, strict=True))
    divisibility = tuple(info.divisibility_at(axis, group) for axis, group in enumerate(contiguity))
    return info._replace(contiguity=contiguity, divisibility=divisibility)


def unknown(value: SSAValue) -> AxisInfo:
    """Nothing but what the shape says."""
    ones = (1,) * max(len(shape_of(value.type)), 1)
    return AxisInfo(ones, ones, ones, step=_step_of(value))


def uniform(value: SSAValue, divisibility: int, constant: int | None = None) -> AxisInfo:
    shape = shape_of(value.type) or (1,)
    return AxisInfo((1,) * len(shape), (divisibility,) * len(shape), shape, constant, _step_of(value))


def _step_of(value: SSAValue) -> int:
    element = element_type_of(value.type)
    return byte_width_of(pointee_of(element)) if is_pointer(element) else 1

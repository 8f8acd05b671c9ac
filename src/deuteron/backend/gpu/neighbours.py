"""Registers of a thread that follow from those of neighbours, so that an op on them is done once.

    i // n, of 8 neighbours, n a multiple of 16      the quotient of the first, 8 times
    i % n                                            the remainder of the first, + 1, ... + 7
    count, carried by a loop, += i < n               one count

What is known of neighbours says the axis analysis; which of them a thread holds says the layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import floordiv, or_

from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.backend.gpu.fragment import Fragment, Operand, positions, with_registers
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.layout.linear import REGISTER, LinearLayout


def first_of_equals(operand: Operand, constancy: Sequence[int]) -> Operand:
    """In the place of every element the first, in its thread, of those for which something is the same."""
    if not isinstance(operand, Fragment):
        return operand
    return with_registers(operand, (operand.registers[first] for first in _firsts(operand.layout, constancy)))


def distinct(operand: Operand, constancy: Sequence[int]) -> tuple[Value, ...]:
    """The registers that are the first of their groups; a scalar is one register."""
    if not isinstance(operand, Fragment):
        return (operand,)
    firsts = _firsts(operand.layout, constancy)
    return tuple(operand.registers[register] for register, first in enumerate(firsts) if register == first)


def spread(like: Operand, constancy: Sequence[int], values: Sequence[Value]) -> Operand:
    """A tile of what `distinct` gives of one."""
    if not isinstance(like, Fragment):
        return values[0]
    firsts = _firsts(like.layout, constancy)
    value_of = dict(zip(dict.fromkeys(firsts), values, strict=True))
    return with_registers(like, (value_of[first] for first in firsts))


def counted_along(operand: Operand, info: AxisInfo) -> tuple[int, ...]:
    """The groups within which the registers of a thread count up as their places do: along one axis, 1 along others.

    The place of an element is that of its register plus what lane and warp add, if these have no bit in common.
    """
    if not isinstance(operand, Fragment):
        return ()
    sizes = [_apart_from_threads(operand.layout, axis, size) for axis, size in enumerate(info.contiguity)]
    longest = sizes.index(max(sizes))
    return tuple(size if axis == longest else 1 for axis, size in enumerate(sizes))


def count_up(b: Builder, firsts: Operand, sizes: Sequence[int]) -> Operand:
    """Of what is the same in each group the number that it begins with, and those that follow."""
    if not isinstance(firsts, Fragment):
        return firsts
    places = positions(firsts.layout)
    distances = (
        sum(places[register]) - sum(places[first]) for register, first in enumerate(_firsts(firsts.layout, sizes))
    )
    counted = zip(firsts.registers, distances, strict=True)
    return with_registers(firsts, (b.add(x, const(x.type, n)) if n else x for x, n in counted))


def _apart_from_threads(layout: LinearLayout, axis: int, size: int) -> int:
    """The size of a group, or 1 if registers and threads share a bit of the places in it."""
    held = _bits(basis[axis] for basis in layout.of(REGISTER))
    others = _bits(basis[axis] for name in layout.in_names if name != REGISTER for basis in layout.of(name))
    return 1 if held & others & (size - 1) else size


def _bits(numbers: Iterable[int]) -> int:
    return reduce(or_, numbers, 0)


def _firsts(layout: LinearLayout, sizes: Sequence[int]) -> list[int]:
    """For every register the first one of its group."""
    found: dict[tuple[int, ...], int] = {}
    groups = (tuple(map(floordiv, at, sizes)) for at in positions(layout))
    return [found.setdefault(group, register) for register, group in enumerate(groups)]

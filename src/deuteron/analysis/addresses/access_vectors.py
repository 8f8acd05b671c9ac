"""Which registers of a tile one access to memory takes: neighbours in registers and in memory, up to 128 bits.

    a row of 64 f16 in each thread, addresses divisible by 16      8 accesses of 8 registers
    the same, the mask constant in groups of 4                     16 accesses of 4 registers

How many is what the layout has in registers along a dimension, what axis info knows of contiguity and alignment of the
pointers, and for how many elements the mask is the same. A copy into shared memory needs neighbours there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout

MAX_BYTES = 16


@dataclass(frozen=True)
class _Run:
    """Register bits whose elements are neighbours along a dimension: bit i is 2**i further."""

    axis: int
    bits: tuple[int, ...]


def access_vectors(layout: LinearLayout, pointer: AxisInfo, mask: AxisInfo | None, size: int) -> list[list[int]]:
    """The registers of each access, in the order of their addresses; elements have `size` bytes."""
    return grouped(layout.in_size(REGISTER), _longest_run(layout, pointer, mask, size).bits)


def copy_vectors(
    layout: LinearLayout,
    shared: LinearLayout,
    pointer: AxisInfo,
    mask: AxisInfo | None,
    size: int,
    copy_bytes: Sequence[int],
) -> list[list[int]] | None:
    """The registers of each asynchronous copy from a tile of pointers into shared memory; None where it cannot be done:
    where it would be of other than `copy_bytes`, or where a thread holds an element twice. Of several threads that hold
    the same one the first copies it.
    """
    free = layout.free_bits()
    if free[REGISTER]:
        return None
    bits = _longest_run(layout, pointer, mask, size).bits
    bits = bits[: _contiguous_bits(layout.compose(shared.right_inverse()), bits)]  # replicas have no offset
    if size << len(bits) not in copy_bytes:
        return None
    return grouped(layout.in_size(REGISTER), bits)


def leaders(layout: LinearLayout, pointer: AxisInfo) -> list[tuple[int, int]]:
    """For each register of a tile of pointers the first one from which it is known to be so many bytes away."""
    columns = [basis for name in (REGISTER, LANE, WARP) for basis in layout.of(name)]
    known = [_distance(basis, columns, pointer) for basis in layout.of(REGISTER)]
    registers = range(layout.in_size(REGISTER))
    within = sum(1 << bit for bit, distance in enumerate(known) if distance)
    return [(r & ~within, sum(d for bit, d in enumerate(known) if r >> bit & 1) * pointer.step) for r in registers]


def _distance(basis: tuple[int, ...], columns: Sequence[tuple[int, ...]], pointer: AxisInfo) -> int:
    """By how many elements a bit of a register's number moves its pointer; 0 where that is not known."""
    axis = next((axis for axis, step in enumerate(basis) if step), 0)
    step = basis[axis]
    alone = sum(bool(column[axis] & step) for column in columns) == 1
    is_power = step and not step & (step - 1) and not any(basis[:axis] + basis[axis + 1 :])
    return step if is_power and alone and pointer.contiguity[axis] % (2 * step) == 0 else 0


def width_limit(layout: LinearLayout, pointer: AxisInfo, mask: AxisInfo | None, size: int) -> str | None:
    """What keeps the accesses of `access_vectors` from taking 16 bytes, in words; None where they do."""
    taken = _longest_run(layout, pointer, mask, size)
    count, wanted = 1 << len(taken.bits), MAX_BYTES // size
    if count >= wanted:
        return None
    axis = taken.axis if taken.bits else max(range(len(layout.shape)), key=lambda a: pointer.contiguity[a])
    return _limit_along(axis, count, wanted, layout, pointer, mask, size)


def _limit_along(
    axis: int, count: int, wanted: int, layout: LinearLayout, pointer: AxisInfo, mask: AxisInfo | None, size: int
) -> str:
    divisor = pointer.divisibility_at(axis, wanted)
    if pointer.contiguity[axis] <= count:
        return f"{'no two' if count == 1 else f'only {count}'} elements are known to be contiguous"
    if divisor <= count * size:
        return f"addresses are only known to be aligned to {max(divisor, size)} bytes"
    if mask is not None and mask.constancy[axis] <= count:
        return "the mask may differ between " + ("any two elements" if count == 1 else f"groups of {count} elements")
    held = 1 << len(register_run(layout, axis))
    return "a thread holds no neighbours" if held == 1 else f"a thread holds only {held} neighbours"


def copy_limit(
    layout: LinearLayout,
    shared: LinearLayout,
    pointer: AxisInfo,
    mask: AxisInfo | None,
    size: int,
    copy_bytes: Sequence[int],
) -> str | None:
    """What keeps the copies of `copy_vectors` from taking 16 bytes."""
    copies = copy_vectors(layout, shared, pointer, mask, size, copy_bytes)
    if copies is not None and len(copies[0]) * size == MAX_BYTES:
        return None
    return width_limit(layout, pointer, mask, size) or "neighbours in memory are not neighbours in shared memory"


def _contiguous_bits(to_offset: LinearLayout, bits: tuple[int, ...]) -> int:
    """How many of these register bits are the lowest bits of the offset, which then nothing else decides."""
    columns = [basis[0] for name in (REGISTER, LANE, WARP) for basis in to_offset.of(name)]
    count = 0
    while count < len(bits) and [c for c in columns if c >> count & 1] == [columns[bits[count]]] == [1 << count]:
        count += 1
    return count


def _longest_run(layout: LinearLayout, pointer: AxisInfo, mask: AxisInfo | None, size: int) -> _Run:
    best = _Run(0, ())
    for axis in range(len(layout.shape)):
        run = register_run(layout, axis)
        run = _Run(axis, run[: _vector_size(axis, 1 << len(run), pointer, mask, size).bit_length() - 1])
        best = max(best, run, key=lambda r: len(r.bits))
    return best


def register_run(layout: LinearLayout, axis: int) -> tuple[int, ...]:
    """The bits of a register's number that are the lowest ones of a place along an axis, which nothing else decides."""
    bases, found = layout.of(REGISTER), []
    all_bases = [basis for _, vectors in layout.bases for basis in vectors]
    for step in range(layout.shape[axis].bit_length() - 1):
        unit = tuple(1 << step if a == axis else 0 for a in range(len(layout.shape)))
        if unit not in bases or sum(basis[axis] >> step & 1 for basis in all_bases) > 1:
            break
        found.append(bases.index(unit))
    return tuple(found)


def _vector_size(axis: int, run: int, pointer: AxisInfo, mask: AxisInfo | None, size: int) -> int:
    """How many elements along an axis one access may take."""
    count = gcd(run, pointer.contiguity[axis], MAX_BYTES // size)
    if mask is not None:
        count = gcd(count, mask.constancy[axis])
    while count > 1 and pointer.divisibility_at(axis, count) % (count * size):
        count //= 2
    return count


def grouped(num_registers: int, bits: tuple[int, ...]) -> list[list[int]]:
    mask = sum(1 << bit for bit in bits)

    def spread(index: int) -> int:
        return sum((index >> i & 1) << bit for i, bit in enumerate(bits))

    firsts = [register for register in range(num_registers) if not register & mask]
    return [[first | spread(index) for index in range(1 << len(bits))] for first in firsts]

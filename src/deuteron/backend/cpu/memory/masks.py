"""Masks of accesses: whether all lanes are on, one way where they are, and another where some are off."""

from __future__ import annotations

from collections.abc import Callable

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.fragment import Fragment, Uniform, Vector
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, vector, width
from deuteron.backend.math.vectors import all_lanes


def if_full(
    access: Access, mask: Fragment | None, full: Callable[[], list[Value]], others: Callable[[], list[Value]]
) -> list[Value]:
    """Emit one way where all lanes are on, and another one where some may be off."""
    if mask is None:
        return full()
    with access.b.if_(is_full(access.b, mask), "all_on") as branch:
        branch.yield_(*full())
        branch.otherwise()
        branch.yield_(*others())
    return branch.results


def if_on(access: Access, mask: Fragment | None, emit: Callable[[], None]) -> None:
    if mask is None:
        emit()
        return
    with access.b.if_(mask.value, "on"):
        emit()


def mask_vector(access: Access, mask: Fragment | None) -> Value:
    if mask is None:
        return const(vector("i1", access.lanes), True)
    return as_vector(access.ctx.emitter, mask, access.lanes)


def is_full(b: Builder, mask: Fragment) -> Value:
    """Whether all lanes of a mask are on; where it says so by itself, it may say no."""
    if isinstance(mask, Uniform):
        return mask.value
    return all_of(b, mask.value) if mask.full is None else mask.full


def is_tested_by_lanes(mask: Fragment) -> bool:
    return not isinstance(mask, Uniform) and mask.full is None


def reversed_mask(b: Builder, mask: Fragment | None) -> Fragment | None:
    if not isinstance(mask, Vector):
        return mask
    return Vector(reverse(b, mask.value), mask.level, mask.full)


def reverse(b: Builder, elements: Value) -> Value:
    return b.shufflevector(elements, elements, range(width(elements.type))[::-1])


def all_of(b: Builder, mask: Value) -> Value:
    return all_lanes(b, mask) if width(mask.type) > 1 else mask

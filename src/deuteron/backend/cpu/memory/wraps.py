"""Lanes whose offsets of 32 bits may wrap around between two of them (`Affine.elements`): found out if some are off.

Those that are on are accessed where they are then, and not where the first one and the step say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.cpu.memory.masks import if_full
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bit_width, const


def may_wrap(pointer: Fragment, mask: Fragment | None) -> bool:
    """Whether lanes that are on may be elsewhere than lanes which are off let expect."""
    is_mixed = mask is not None and not isinstance(mask, Uniform)
    return is_mixed and isinstance(pointer, Affine) and pointer.elements is not None


def unless_wrapped(
    access: Access,
    chosen: tuple[Affine, Fragment],
    straight: Callable[[Fragment | None], list[Value]],
    elsewhere: Callable[[], list[Value]],
) -> list[Value]:
    """Emit what all lanes do, what some do that are a step apart, and what those do that are not."""
    pointer, mask = chosen

    def some() -> list[Value]:
        b = access.b
        with b.if_(is_straight(b, pointer), "straight") as branch:
            branch.yield_(*straight(mask))
            branch.otherwise()
            branch.yield_(*elsewhere())
        return branch.results

    return if_full(access, mask, lambda: straight(None), some)


def is_straight(b: Builder, pointer: Affine) -> Value:
    """Whether all lanes are where the first one and the step say, as they are where the last one of each narrower
    integer that is widened is.
    """
    return functools.reduce(b.and_, [_reaches_last(b, narrow) for narrow in pointer.widened])


def _reaches_last(b: Builder, narrow: Affine) -> Value:
    type, lanes = narrow.base.type, narrow.lanes
    wide = f"i{2 * bit_width(type)}"
    step = const(wide, narrow.step) if isinstance(narrow.step, int) else b.sext(narrow.step, wide)
    last = b.add(b.sext(narrow.base, wide), b.mul(step, const(wide, lanes - 1)))
    return b.icmp("eq", b.sext(b.trunc(last, type), wide), last)

"""When all lanes of a mask are on, as a scalar: its first and last lane tell it.

    base + [0, 1, ..., 63] < n       base + 63 < n  and  base <= base + 63          which does not wrap around then
    a & b                            both

It may be false although all lanes are on, which only takes longer. Vectors are compared nowhere but where it is false.
"""

from __future__ import annotations

import functools

from deuteron.backend.cpu.emitter import Emitter
from deuteron.backend.cpu.fragment import Affine, Fragment, Uniform, Vector, level_of
from deuteron.backend.llvm.types import Value, bit_width, const

SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def where_comparison_is_full(emitter: Emitter, predicate: str, x: Fragment, y: Fragment) -> Value | None:
    """Of a comparison (`slt`, `uge`, ...) of what grows along the lanes with what is the same in all of them."""
    sign, relation = predicate[:1], predicate[1:]
    if relation not in SWAPPED:
        return None
    if isinstance(x, Uniform):
        x, y, relation = y, x, SWAPPED[relation]
    if not (isinstance(x, Affine) and isinstance(y, Uniform) and isinstance(x.step, int)) or x.elements is not None:
        return None
    growth = (x.lanes - 1) * x.step
    if not 0 < growth < 1 << (bit_width(x.base.type) - 1):
        return None
    b = emitter.at(level_of(x, y))
    last = b.add(x.base, const(x.base.type, growth))
    holds = b.icmp(sign + relation, last if relation in ("lt", "le") else x.base, y.value)
    return b.and_(holds, b.icmp(f"{sign}le", x.base, last))


def where_both_are_full(emitter: Emitter, *masks: Fragment) -> Value | None:
    """Of two masks that are anded; None where it is not known of one of them."""
    known = [mask.value if isinstance(mask, Uniform) else mask.full for mask in masks if not isinstance(mask, Affine)]
    if len(known) < len(masks) or None in known:
        return None
    return functools.reduce(emitter.at(level_of(*masks)).and_, known)


def mask_of(fragment: Fragment, full: Value | None) -> Fragment:
    """The mask, with when it is full."""
    return Vector(fragment.value, fragment.level, full) if isinstance(fragment, Vector) else fragment

"""What a tile's value is in the body of a loop: the elements of a few neighbouring lanes.

    arange(0, 64) at i          Affine(base=%i, step=1, lanes=16)          i, i + 1, ..., i + 15
    splat(n)                    Uniform(%n)
    p + arange * 4              Affine(%p + 16 * %i, step=16)              of pointers the step is in bytes
    load(...)                   Vector(<16 x float>)

How contiguous an access is falls out of this: an Affine pointer whose step is the size of an element. A fragment
knows the `level`, the depth of the innermost loop that it changes in; code that uses it alone is emitted there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from deuteron.backend.llvm.types import Value, const, width


@dataclass(frozen=True, eq=False)
class Uniform:
    """The same value in all lanes; also what a scalar is."""

    value: Value
    level: int


@dataclass(frozen=True, eq=False)
class Affine:
    """`base + lane * step` for integers (step in the integer's units) and pointers (step in bytes).

    `is_range`: the elements are those of a range of numbers, which does not wrap around. `elements`: emits them, where
    they are computed from narrower integers that may wrap around between lanes, as what is an offset does not;
    `widened`: those integers.
    """

    base: Value
    step: int | Value
    lanes: int
    level: int
    is_range: bool = False
    elements: Callable[[], Value] | None = None
    widened: tuple[Affine, ...] = ()


@dataclass(frozen=True, eq=False)
class Vector:
    """A value for each lane. `full`: of a mask, a scalar that is true only where all lanes are on (`full_masks.py`)."""

    value: Value
    level: int
    full: Value | None = None


Fragment = Uniform | Affine | Vector


@dataclass(frozen=True, eq=False)
class Axis:
    """What runs along a dimension in a loop: `start`, an i32, and the lanes from there on (1 for a scalar)."""

    start: Value
    lanes: int
    level: int


@cache
def one_element(number: int) -> Axis:
    """The entry of an index for one element of a dimension; the same object every time: indices are compared."""
    return Axis(const("i32", number), 1, 0)


def lanes_of(*fragments: Fragment) -> int:
    """How many lanes fragments have together; 1 if all are uniform."""
    counts = [1]
    for fragment in fragments:
        if isinstance(fragment, Affine):
            counts.append(fragment.lanes)
        elif isinstance(fragment, Vector):
            counts.append(width(fragment.value.type))
    return max(counts)


def known_truth(mask: Fragment | None) -> bool | None:
    """Whether all lanes are known to be on, or off, while code is emitted; no mask is on."""
    if mask is None:
        return True
    if not isinstance(mask, Uniform) or mask.value.type != "i1":
        return None
    return {"true": True, "false": False}.get(mask.value.text)


def level_of(*fragments: Fragment) -> int:
    return max((fragment.level for fragment in fragments), default=0)

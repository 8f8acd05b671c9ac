"""What of masks is known by comparing: up to which element they are on, and when they are full.

    offsets[None, :] < n        Limit: on up to n - offsets[0], as far as the dimension reaches

`limits.py` finds them; an index is that of a nest (`plan/indices.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue


@dataclass(frozen=True)
class Limit:
    """A comparison, at an index of a nest, of `counted`, which counts up along the dimension, with `bound`.

    `is_below`: it is true up to the limit and false from there on; else the contrary. `includes`: whether the element
    that equals the bound is before the limit.
    """

    op: Operation
    index: tuple
    counted: SSAValue
    bound: SSAValue
    is_signed: bool
    is_below: bool
    includes: bool


@dataclass(frozen=True)
class FullMask:
    """When a mask of two dimensions is full: every limit is at the end of its dimension, or at the first element of it
    where the mask is on behind it, and every comparison that is the same everywhere is true.
    """

    limits: tuple[tuple[Limit, int], ...]
    fixed: tuple[tuple[Operation, tuple], ...]

    def compared(self) -> list[SSAValue]:
        """What has to be known."""
        values = [value for limit, _ in self.limits for value in (limit.counted, limit.bound)]
        return values + [op.results[0] for op, _ in self.fixed]

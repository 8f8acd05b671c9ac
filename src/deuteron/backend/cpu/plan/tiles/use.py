"""Who reads a tile, as far as that decides whether the tile is kept: the roots that read it.

m = max(x); s = sum(exp(x - m))         of x: Use(%s, %s, others=(%m,), is_shared=True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import Operation


@dataclass(frozen=True)
class Use:
    """The roots that read a tile: `key` identifies one of them, `op` is where it is, `others` where others are.

    `is_shared`: there are several. `is_repeated`: one reads elements repeatedly; `is_moved`: one reads an element at
    another index than its own, as of a transpose.
    """

    key: object
    op: Operation
    is_shared: bool = False
    is_repeated: bool = False
    is_moved: bool = False
    others: tuple[Operation, ...] = ()

    @property
    def ops(self) -> tuple[Operation, ...]:
        """Where the roots are."""
        return (self.op, *self.others)

    def merged(self, other: Use) -> Use:
        is_shared = self.is_shared or other.is_shared or self.key != other.key
        is_repeated, is_moved = self.is_repeated or other.is_repeated, self.is_moved or other.is_moved
        others = tuple(op for op in dict.fromkeys((*self.others, *other.ops)) if op is not self.op)
        return replace(self, others=others, is_shared=is_shared, is_repeated=is_repeated, is_moved=is_moved)

    def through(self, is_repeated: bool, is_moved: bool) -> Use:
        """That of what the tile is computed from, by an op that repeats or moves elements."""
        return replace(self, is_repeated=self.is_repeated or is_repeated, is_moved=self.is_moved or is_moved)

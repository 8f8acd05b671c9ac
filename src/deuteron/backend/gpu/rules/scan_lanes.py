"""A scan between the lanes of a warp, each of which has a group: its own total, or that of a warp.

    lanes            a  b  c  d
    bit 0            a  ab c  cd         a lane joins the last total of the lanes before those that differ in this bit
    bit 1            a  ab abc abcd

The bits of a mask are a number, the place of a lane; lanes that differ in other bits are scanned apart. `reverse` goes
from the highest place to the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context
from deuteron.backend.gpu.elements import from_bits, to_bits
from deuteron.backend.gpu.rules.combine import Group, combine, select
from deuteron.backend.gpu.shuffles import fetch
from deuteron.backend.llvm.types import Value, const


@dataclass(frozen=True)
class LaneScan:
    """What lanes do for a scan."""

    ctx: Context
    op: Operation

    @property
    def is_reverse(self) -> bool:
        return self.op.reverse.value.data

    def inclusive(self, groups: list[Group], bits: Sequence[int]) -> list[Group]:
        """Each with those of the lanes before it; the bits ascend."""
        b, lane, mask = self.ctx.b, self.ctx.threads.lane, sum(1 << bit for bit in bits)
        for bit in bits:
            below = mask & (1 << bit) - 1
            kept = b.and_(lane, const("i32", ~(below | 1 << bit)))
            nearest = b.or_(kept, const("i32", 1 << bit if self.is_reverse else below))
            is_after = self._is_set(1 << bit)
            pairs = zip(self.fetch(groups, nearest), groups, strict=True)
            joined = [(combine(self.ctx, self.op.combine.block, other, group), group) for other, group in pairs]
            groups = [select(self.ctx, is_after, both, group) for both, group in joined]
        return groups

    def _is_set(self, bit: int) -> Value:
        """Whether the bit says that a lane comes after those without it; in reverse, with it."""
        b = self.ctx.b
        masked = b.and_(self.ctx.threads.lane, const("i32", bit))
        return b.icmp("eq" if self.is_reverse else "ne", masked, const("i32", 0))

    def is_not_first(self, number: Value, mask: int) -> Value:
        """Whether something comes before the place that these bits of a number are."""
        b = self.ctx.b
        return b.icmp("ne", b.and_(number, const("i32", mask)), const("i32", mask if self.is_reverse else 0))

    def last(self, mask: int) -> Value:
        """The lane of the last place."""
        b, lane = self.ctx.b, self.ctx.threads.lane
        return b.and_(lane, const("i32", ~mask)) if self.is_reverse else b.or_(lane, const("i32", mask))

    def before(self, number: Value, mask: int) -> Value:
        """The lane one place before that of a number: its bits of the mask, less one; in reverse, one more."""
        b, lane = self.ctx.b, self.ctx.threads.lane
        if self.is_reverse:
            stepped = b.add(b.or_(number, const("i32", ~mask)), const("i32", 1))
        else:
            stepped = b.sub(b.and_(number, const("i32", mask)), const("i32", 1))
        return b.or_(b.and_(stepped, const("i32", mask)), b.and_(lane, const("i32", ~mask)))

    def fetch(self, groups: list[Group], lane: Value) -> list[Group]:
        b, columns = self.ctx.b, []
        for src, column in zip(self.op.srcs, zip(*groups, strict=True), strict=True):
            moved = fetch(b, self.ctx.isa, [to_bits(b, value, src.type) for value in column], lane)
            columns.append([from_bits(b, value, src.type) for value in moved])
        return [list(group) for group in zip(*columns, strict=True)]

"""How the parts of a reduction that warps hold are combined: the way that takes the fewest cycles.

    by threads    each thread combines the parts of all warps, of each of its results
    by lanes      lanes that hold the same results take a part each, and combine by shuffles
    shared out    all threads take parts of any results, combine by shuffles, and give results to those that hold them

Sums over columns of 64 in 16 warps: a thread has 4 results, and would combine 60 parts. 512 threads have two each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.layout.distributed import axis_bits, slice_axis
from deuteron.layout.linear import LANE, REGISTER, WARP, log2

NUM_CHAINS, MIN_CHAIN = 4, 4  # an instruction that waits for the one before it takes four times as long
# In cycles: of an op, of what lanes exchange, of what warps exchange; warps take turns.
LATENCY, SHUFFLE_LATENCY, EXCHANGE_LATENCY, SCHEDULERS = 4, 25, 80, 4
# Of the cycles of another way, at most, for all to wait once more. Not measured.
SHARED_OUT_GAIN = 2 / 3


def num_parts(op: ReduceOp) -> int:
    """How many warps hold a part of each result."""
    return 1 << len(axis_bits(layout_of(op.srcs[0].type), op.axis.value.data, WARP))


class Way(Enum):
    THREADS = "by threads"
    LANES = "by lanes"
    SHARED_OUT = "shared out"


@dataclass(frozen=True)
class WarpParts:
    """How many parts each result has, results there are, and of these a thread holds; ops that combine two parts, and
    operands; lanes of a warp that hold the same.
    """

    parts: int
    results: int
    held: int
    num_ops: int
    num_srcs: int
    spare_lanes: int
    num_threads: int
    warp_size: int

    @staticmethod
    def of(op: ReduceOp) -> WarpParts:
        layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
        sliced = slice_axis(layout, axis)
        return WarpParts(
            parts=num_parts(op),
            results=prod(sliced.shape),
            held=sliced.in_size(REGISTER),
            num_ops=len(op.combine.block.ops) - 1,
            num_srcs=len(op.srcs),
            spare_lanes=1 << sum(not column for column in sliced.columns(LANE)),
            num_threads=layout.in_size(LANE) * layout.in_size(WARP),
            warp_size=layout.in_size(LANE),
        )

    @property
    def lanes_together(self) -> int:
        """Of parts that are shared out, the lanes that have one result's."""
        return min(self.parts, self.warp_size, max(self.num_threads // self.results, 1))

    @property
    def taken(self) -> int:
        """Of parts that are shared out, the results of which a thread has parts."""
        return max(self.results // self.num_threads, 1)

    @property
    def way(self) -> Way:
        by_threads, by_lanes = self._by_threads(), self._by_lanes()
        fewest = by_threads if by_lanes is None else min(by_threads, by_lanes)
        if self._shared_out() < SHARED_OUT_GAIN * fewest:
            return Way.SHARED_OUT
        return Way.THREADS if fewest == by_threads else Way.LANES

    def _by_threads(self) -> float:
        chains = min(NUM_CHAINS, -(-self.parts // MIN_CHAIN))
        depth = self.parts // chains - 1 + chains - 1
        return max(depth * self.num_ops * LATENCY, self.held * (self.parts - 1) * self.num_ops * self._turns)

    def _by_lanes(self) -> float | None:
        """None where there are too few. Last they exchange what all of them agree on."""
        if self.spare_lanes < self.parts:
            return None
        waits = self._exchanged(log2(self.parts)) + SHUFFLE_LATENCY
        issued = log2(self.parts) * (self.num_ops + self.num_srcs) + self.num_srcs
        return max(waits, self.held * issued * self._turns)

    def _shared_out(self) -> float:
        steps, own = log2(self.lanes_together), self.parts // self.lanes_together - 1
        waits = own * self.num_ops * LATENCY + self._exchanged(steps) + EXCHANGE_LATENCY
        combined = self.taken * (own * self.num_ops + steps * (self.num_ops + self.num_srcs))
        return waits + (combined + self.held * self.num_srcs) * self._turns

    def _exchanged(self, steps: int) -> int:
        return steps * (self.num_ops * LATENCY + SHUFFLE_LATENCY)

    @property
    def _turns(self) -> float:
        """How many warps take turns on a scheduler."""
        return self.num_threads / self.warp_size / SCHEDULERS

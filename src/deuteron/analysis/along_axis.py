"""Which registers, lanes and warps a layout spreads along an axis, and the order in which they take part in a scan.

    64 rows, four in a thread, eight lanes and two warps along them:

    weight        1  2  | 4  8  16  | 32        Phase("register", (0, 1)), Phase("lane", (2, 3, 4)), Phase("warp", (0,))
    moved by      r0 r1 | l2 l3 l4  | w0

The bits of a phase ascend, so that they are a number. Warps take part three bits at a time: each reads what all wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deuteron.layout.distributed import axis_bits
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout

WARP_BITS_TOGETHER = 3


@dataclass(frozen=True)
class Phase:
    """Bits of one input of a layout, in the order of what they add to the position."""

    in_name: str
    bits: tuple[int, ...]

    @property
    def mask(self) -> int:
        return sum(1 << bit for bit in self.bits)

    def takes(self, in_name: str, bit: int) -> bool:
        """Whether a bit that comes next belongs to it."""
        has_room = in_name != WARP or len(self.bits) < WARP_BITS_TOGETHER
        return in_name == self.in_name and bit > self.bits[-1] and has_room


def scan_phases(layout: LinearLayout, axis: int) -> list[Phase]:
    """Without bits that hold replicas. Each bit moves along one dimension."""
    steps = [
        (layout.of(in_name)[bit][axis], in_name, bit)
        for in_name in (REGISTER, LANE, WARP)
        for bit in axis_bits(layout, axis, in_name)
    ]
    phases: list[Phase] = []
    for _, in_name, bit in sorted(steps):
        if phases and phases[-1].takes(in_name, bit):
            phases[-1] = Phase(in_name, (*phases[-1].bits, bit))
        else:
            phases.append(Phase(in_name, (bit,)))
    return phases


def own_lanes(layout: LinearLayout, phases: Sequence[Phase]) -> list[int]:
    """The lane bits by which totals differ after these phases: others hold replicas, or agree on the total."""
    scanned = sum(phase.mask for phase in phases if phase.in_name == LANE)
    return [bit for bit, column in enumerate(layout.columns(LANE)) if column and not scanned >> bit & 1]


def num_exchanged(layout: LinearLayout, axis: int) -> int:
    """How many totals warps exchange at once, at most, for each operand."""
    rows, most = layout.in_size(REGISTER) >> layout.free_bits()[REGISTER].bit_count(), 0
    phases = scan_phases(layout, axis)
    for index, phase in enumerate(phases):
        if phase.in_name == REGISTER:
            rows >>= len(phase.bits)
        elif phase.in_name == WARP:
            most = max(most, rows << layout.in_bits(WARP) + len(own_lanes(layout, phases[:index])))
    return most

"""Where a warp finds the elements that tl.gather takes from a tile, if it has them all itself.

Along the axis the index names the element, otherwise its own place does. So the element for the index value `a` in
register r of lane l of warp w is in (register, lane) = XOR of an entry for each bit of r, l, w and a:

    source     lane i has element i of 32                     axis bit k: (0, 1 << k)
    index      any layout; r, l, w decide nothing             all other entries (0, 0)

    out[r] = shuffle(source, lane = a)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from deuteron.layout import f2
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2

Entry = tuple[int, int]  # a register and a lane

# Registers of the source that one element may be in: each is a shuffle. Not measured.
MAX_CANDIDATES = 4


@dataclass(frozen=True)
class GatherRoute:
    """The (register, lane) of the source that each bit of the index's register, lane, warp and value contributes."""

    register_bits: tuple[Entry, ...]
    lane_bits: tuple[Entry, ...]
    warp_bits: tuple[Entry, ...]
    axis_bits: tuple[Entry, ...]

    @property
    def choices(self) -> list[int]:
        """A basis of the source registers among which the thread and the value choose."""
        return f2.independent([register for register, _ in (*self.lane_bits, *self.warp_bits, *self.axis_bits)])


@dataclass(frozen=True)
class ExchangeRoute:
    """The register, lane and warp of an element, XOR these, are those of its partner."""

    register: int
    lane: int
    warp: int


@lru_cache(maxsize=1024)
def plan_exchange(layout: LinearLayout, mask: int) -> ExchangeRoute | None:
    """Where the elements are whose row-major positions differ in `mask`: best in the same thread, else in the warp.

    None where they are in another CTA.
    """
    registers, lanes, warps = (layout.columns(name) for name in (REGISTER, LANE, WARP))
    found = f2.solve([*registers, *lanes, *warps], mask)
    if found is None:
        return None
    register, rest = found & (1 << len(registers)) - 1, found >> len(registers)
    return ExchangeRoute(register, rest & (1 << len(lanes)) - 1, rest >> len(lanes))


@lru_cache(maxsize=1024)
def plan_gather(src: LinearLayout, indices: LinearLayout, axis: int) -> GatherRoute | None:
    """The route within warps, or None where some element is in another warp, or in too many registers."""
    warps = src.columns(WARP)

    def entries(name: str) -> list[Entry | None]:
        return [
            _find(src, _elsewhere(src, basis, axis), 1 << bit if name == LANE else 0, warps[bit] if name == WARP else 0)
            for bit, basis in enumerate(indices.of(name))
        ]

    units = (tuple(1 << bit if a == axis else 0 for a in range(len(src.shape))) for bit in range(log2(src.shape[axis])))
    along = [_find(src, src.flatten_basis(unit), 0, 0) for unit in units]
    found = [entries(REGISTER), entries(LANE), entries(WARP), along]
    if any(entry is None for part in found for entry in part):
        return None
    route = GatherRoute(*(tuple(part) for part in found))
    return route if 1 << len(route.choices) <= MAX_CANDIDATES else None


def _elsewhere(src: LinearLayout, basis: tuple[int, ...], axis: int) -> int:
    """What a basis vector of the index says of the source's place: nothing along the axis."""
    return src.flatten_basis(tuple(0 if a == axis else entry for a, entry in enumerate(basis)))


def _find(src: LinearLayout, column: int, own_lane: int, own_warp: int) -> Entry | None:
    """A (register, lane) of the source that, in the warp that contributes `own_warp`, holds `column`."""
    registers, lanes = src.columns(REGISTER), src.columns(LANE)
    column ^= own_warp
    here = f2.solve(registers, column ^ f2.apply(lanes, own_lane))
    if here is not None:
        return here, own_lane
    found = f2.solve([*registers, *lanes], column)
    return None if found is None else (found & (1 << len(registers)) - 1, found >> len(registers))

"""Where a warp finds the elements that tl.gather takes from a tile, if it has them all itself.

Along the axis the index names the element, otherwise its own place does. So the element for the index value `a` in
register r of lane l of warp w is in (register, lane) = XOR of an entry for each bit of r, l, w and a:

    source     lane i has element i of 32                     axis bit k: (0, 1 << k)
    index      any layout; r, l, w decide nothing             all other entries (0, 0)

    out[r] = shuffle(source, lane = a)

Where the index is known when compiling, so is which registers are asked, and whether of other lanes:

    lane i has elements 4 i to 4 i + 3                        out[0]: register 3 of another lane
    index j - 1 for each j, in the same layout                out[r]: the own register r - 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from deuteron.layout import f2
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, LinearLayout, log2

Entry = tuple[int, int]  # a register and a lane

# Registers of the source that one element may be in, on average: each is a shuffle. Not measured.
MAX_CANDIDATES = 4


class Source(NamedTuple):
    """A register of the source that an element may be in; `moves`: that of another lane."""

    register: int
    moves: bool


@dataclass(frozen=True)
class GatherRoute:
    """The (register, lane) of the source that each bit of the index's register, lane, warp and value contributes.

    `known` are the sources of each register of the index, where its numbers are known.
    """

    register_bits: tuple[Entry, ...]
    lane_bits: tuple[Entry, ...]
    warp_bits: tuple[Entry, ...]
    axis_bits: tuple[Entry, ...]
    known: tuple[tuple[Source, ...], ...] | None = None

    @property
    def choices(self) -> list[int]:
        """A basis of the source registers among which the thread and the value choose."""
        return f2.independent([register for register, _ in (*self.lane_bits, *self.warp_bits, *self.axis_bits)])

    def sources(self, register: int) -> Sequence[Source]:
        """Where the element for a register of the index may be."""
        if self.known is not None:
            return self.known[register]
        first = f2.apply([own for own, _ in self.register_bits], register)
        choices = self.choices
        return [Source(first ^ f2.apply(choices, number), True) for number in range(1 << len(choices))]

    @property
    def is_short(self) -> bool:
        """Whether few enough registers are asked for each element, on average."""
        if self.known is None:
            return 1 << len(self.choices) <= MAX_CANDIDATES
        return sum(source.moves for sources in self.known for source in sources) <= MAX_CANDIDATES * len(self.known)


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
def plan_gather(
    src: LinearLayout, indices: LinearLayout, axis: int, known: tuple[int, ...] | None = None
) -> GatherRoute | None:
    """The route within warps, or None where some element is in another warp, or in too many registers. `known` are the
    numbers of the index, row by row, if it is known.
    """
    route = _route(src, indices, axis)
    if route is not None and known is not None:
        route = replace(route, known=_known_sources(route, indices, known, src.shape[axis]))
    return route if route is not None and route.is_short else None


def _route(src: LinearLayout, indices: LinearLayout, axis: int) -> GatherRoute | None:
    """The route that any index takes, however many registers it asks."""
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
    return GatherRoute(*(tuple(part) for part in found))


def _known_sources(
    route: GatherRoute, indices: LinearLayout, known: Sequence[int], extent: int
) -> tuple[tuple[Source, ...], ...]:
    """For each register of the index, every register that some thread takes from, and whether one does from afar."""
    lane_bits, apart = indices.in_bits(LANE), [(0, 0)] * indices.in_bits(BLOCK)
    threads = _images(indices.columns(LANE, WARP, BLOCK))
    places = _images(_packed((*route.lane_bits, *route.warp_bits, *apart), lane_bits))
    along = _images(_packed(route.axis_bits, lane_bits))

    def sources(position: int, own: int) -> tuple[Source, ...]:
        moves: dict[int, bool] = {}
        for thread, (there, place) in enumerate(zip(threads, places, strict=True)):
            found = own ^ place ^ along[known[position ^ there] & extent - 1]
            register, distance = found >> lane_bits, (found ^ thread) & (1 << lane_bits) - 1
            moves[register] = moves.get(register, False) or distance != 0
        return tuple(Source(*one) for one in sorted(moves.items()))

    registers = _images(indices.columns(REGISTER)), _images(_packed(route.register_bits, lane_bits))
    return tuple(sources(position, own) for position, own in zip(*registers, strict=True))


def _packed(entries: Sequence[Entry], lane_bits: int) -> list[int]:
    """Registers above lanes, in one number."""
    return [register << lane_bits | lane for register, lane in entries]


def _images(columns: Sequence[int]) -> list[int]:
    """What a linear function gives for 0, 1, 2 ..."""
    images = [0]
    for column in columns:
        images += [image ^ column for image in images]
    return images


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

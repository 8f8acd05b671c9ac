"""The roots of a nest: what it computes at every index, the elements of a tile to keep, to store, to reduce.

    y = x * 2; store(p, y); sum(y)          StoreRoot(store), ReduceRoot(sum), Keep(y) if something else reads it

Everything else is computed where a root uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.ir.types import num_elements_of, shape_of


@dataclass(eq=False)
class Root:
    """A computation at every index of a nest over `shape`; `sources` are the tiles that it takes at that index."""

    op: Operation
    sources: tuple[SSAValue, ...]
    # Of an op whose region has more than arithmetic: its items, which run for one element at a time.
    body: Region | None = field(default=None, kw_only=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return max((shape_of(source.type) for source in self.sources), key=len)

    def produced(self) -> tuple[SSAValue, ...]:
        """The values that can be read once the nest has run."""
        return ()

    @property
    def computed(self) -> SSAValue | None:
        """The tile that is computed even though it has a place."""
        return None


@dataclass(eq=False)
class Keep(Root):
    """Writes a tile to a place. `value` is set where this is the tile's own place, so that others read it there."""

    place: Place
    value: SSAValue | None = None
    is_pinned: bool = False

    def produced(self) -> tuple[SSAValue, ...]:
        return () if self.value is None else (self.value,)

    @property
    def computed(self) -> SSAValue | None:
        return self.value


@dataclass(eq=False)
class LoopRoot(Root):
    """An scf.for that runs at every index by itself, with what it carries of tiles there in registers
    (`tiles/carry_in_registers.py`). The sources are the initial tiles, then those of the next iteration; `numbers`:
    which of the values that it carries these are. `loads`: its loads of scalars, in order.
    """

    numbers: tuple[int, ...]
    loads: tuple[Operation, ...]

    def produced(self) -> tuple[SSAValue, ...]:
        return tuple(self.op.results[number] for number in self.numbers)


@dataclass(eq=False)
class StoreRoot(Root):
    """A tt.store of a tile."""


@dataclass(eq=False)
class ReduceRoot(Root):
    """A tt.reduce; it reduces `axis` of the nest."""

    axis: int

    def produced(self) -> tuple[SSAValue, ...]:
        return tuple(self.op.results)


@dataclass(eq=False)
class RowRoot(ReduceRoot):
    """The only row of a product that is needed: `a` is where A is copied to. B, the source, is multiplied as it is
    computed, in a nest of its own.
    """

    a: Place

    def produced(self) -> tuple[SSAValue, ...]:
        return ()

    @property
    def computed(self) -> SSAValue | None:
        return self.sources[0]


@dataclass(eq=False)
class LaneRoot(Root):
    """An op that is done element by element, in row-major order, in a nest of its own: atomics (of neighbours several
    at once), prints, asserts.
    """

    def produced(self) -> tuple[SSAValue, ...]:
        return tuple(self.op.results)


@dataclass(eq=False)
class PrintRoot(LaneRoot):
    """One operand of a tt.print; values are printed one after the other."""

    number: int


@dataclass(eq=False)
class ScanRoot(LaneRoot):
    """A tt.scan, in a nest of its own that runs along `axis` innermost.

    `needed`: limits of each store of what is computed of its results, if only what is below one of each is seen.
    """

    axis: int
    needed: tuple[tuple[Limit, ...], ...] = ()


@dataclass(eq=False)
class GatherRoot(LaneRoot):
    """A tt.gather; the sources are the indices, whose shape the nest has, and the tile, which is in memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.op.indices.type)


@dataclass(eq=False)
class HistogramRoot(LaneRoot):
    """A tt.histogram, whose bins are its result's place."""


@dataclass(eq=False)
class UnsplatRoot(LaneRoot):
    """The scalar in a tile of one element."""


@dataclass(eq=False)
class MapRoot(LaneRoot):
    """A tt.map_elementwise; where it packs elements, the sources are in memory, and the nest runs over the packs."""

    @property
    def pack(self) -> int:
        return self.op.pack.value.data

    @property
    def shape(self) -> tuple[int, ...]:
        if self.pack == 1:
            return super().shape
        return (-(-num_elements_of(self.sources[0].type) // self.pack),)

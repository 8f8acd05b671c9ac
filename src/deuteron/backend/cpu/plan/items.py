"""What a kernel is made of once it is planned: buffers, loop nests with their roots, and what stands between them.

    Region([Nest((64, 64), [Keep(%p), ReduceRoot(%l)]), Dot(...), For(op, Region([...]))])

A *root* is what a loop computes at every index: the elements of a tile to keep, to store, to reduce. Everything else is
computed where a root uses it. A *slot* is a buffer in the scratch memory; a *place* is a view of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.backend.cpu.plan.mask_limits import FullMask, Limit
from deuteron.backend.cpu.plan.operand_layout import OperandLayout
from deuteron.backend.cpu.products import NativeProduct
from deuteron.ir.types import is_tile, num_elements_of, shape_of

Index = tuple  # an entry for each dimension: what runs along it, or None for extent 1


@dataclass(frozen=True)
class Exchanged:
    """An entry of an index: the places that differ from those of another entry in the bits of a mask."""

    entry: object
    mask: int


def exchanged(index: Index, shape: tuple[int, ...], mask: int) -> Index:
    """The index of the elements whose row-major positions differ in a mask."""
    entries = []
    for entry, extent in zip(reversed(index), reversed(shape), strict=True):
        entries.append(Exchanged(entry, mask % extent) if mask % extent else entry)
        mask //= extent
    return tuple(reversed(entries))


def running(index: Index) -> Index:
    """What runs along each dimension, whichever of its places are meant."""
    return tuple(running((entry.entry,))[0] if isinstance(entry, Exchanged) else entry for entry in index)


def identity_index(shape: tuple[int, ...]) -> Index:
    """The index, in a plan, of a tile in a nest over its own shape: the numbers of the dimensions."""
    return tuple(axis if extent > 1 else None for axis, extent in enumerate(shape))


def dense_strides(shape: tuple[int, ...], innermost: int | None = None) -> tuple[int, ...]:
    """The strides of a shape, in elements: row-major, but for the dimension whose neighbours are neighbours in memory.

    (64, 4)     (4, 1)      innermost=0     (1, 64)
    """
    axes = [axis for axis in range(len(shape)) if axis != innermost]
    strides, stride = [0] * len(shape), 1
    for axis in reversed(axes if innermost is None else [*axes, innermost]):
        strides[axis] = stride
        stride *= shape[axis]
    return tuple(strides)


@dataclass(eq=False)
class Slot:
    """A buffer: `count` elements of an LLVM type. Slots that were coalesced share `merged`; `offset` comes last.

    `innermost`: the dimension along which neighbours are neighbours in memory, of a tile that is not row-major.
    `layout`: of an operand of a product, which has the slot for itself; `reuse`: what programs find packed in it.
    """

    type: str
    count: int
    num_bytes: int
    innermost: int | None = None
    layout: OperandLayout | None = None
    reuse: Reuse | None = None
    offset: int = -1
    merged: Slot | None = None

    @property
    def representative(self) -> Slot:
        slot = self
        while slot.merged is not None:
            slot = slot.merged
        return slot


@dataclass(eq=False)
class Reuse:
    """What is found packed: while the scalars of the `key` are as they were. `groups` of `steps` steps each, of
    `group_bytes`, and one more; `word` is the first of the words that the kernel's function has for it.
    """

    slot: Slot
    key: tuple[SSAValue, ...]
    steps: int
    groups: int
    group_bytes: int
    word: int

    @property
    def num_words(self) -> int:
        """Whether the key before was met again, how many steps are packed, and the key."""
        return 2 + len(self.key)


@dataclass(frozen=True)
class Place:
    """Where a tile of `shape` is: its elements, in row-major order, are `offset`, `offset + step`, ... of a slot.

    A tile that is computed has a slot of its own, with a step of 1. What shows the memory of another tile keeps this
    form: of the halves that tt.split gives, each has every second element, and a reshape leaves the order as it is.
    Another order than row-major is for tiles that nothing else shows the memory of: see orders.py.
    """

    slot: Slot
    shape: tuple[int, ...]
    step: int = 1
    offset: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        """How far apart neighbours along each dimension are, in elements."""
        if self.slot.layout is not None:
            return self.slot.layout.strides
        return tuple(self.step * stride for stride in dense_strides(self.shape, self.slot.innermost))

    @property
    def is_whole(self) -> bool:
        """Whether the tile is all that its slot holds."""
        return self.slot.layout is None and self.step == 1 and prod(self.shape) == self.slot.count

    def reshaped(self, shape: tuple[int, ...]) -> Place:
        """The same elements in the same order, as another shape."""
        return replace(self, shape=shape)

    def half(self, number: int) -> Place:
        """The elements that have this number in the last dimension, whose extent is 2."""
        offset = self.offset + number * self.step
        return replace(self, shape=self.shape[:-1], step=2 * self.step, offset=offset)

    def part(self, number: int, shape: tuple[int, ...]) -> Place:
        """The part of this number, of parts of this shape that follow one another along the first dimension."""
        return replace(self, shape=shape, offset=self.offset + number * prod(shape) * self.step)


@dataclass(eq=False)
class Region:
    """The items of a block, in order."""

    items: list = field(default_factory=list)


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


@dataclass(eq=False)
class Keep(Root):
    """Writes a tile to a place. `value` is set where this is the tile's own place, so that others read it there."""

    place: Place
    value: SSAValue | None = None
    is_pinned: bool = False

    def produced(self) -> tuple[SSAValue, ...]:
        return () if self.value is None else (self.value,)


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
    """A tt.scan, in a nest of its own that runs along `axis` innermost."""

    axis: int


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


@dataclass(eq=False)
class Nest:
    """Loops over a shape, with roots that are computed together at every index.

    `copies_for`: the product which alone reads what they keep, and not where it can read it directly. `unless_runs`:
    the loop right after the nest, which itself writes what they keep if it runs at all.
    """

    shape: tuple[int, ...]
    roots: list[Root]
    copies_for: Dot | None = None
    unless_runs: For | None = None
    time: int = 0

    @property
    def reduced_axis(self) -> int | None:
        return next((root.axis for root in self.roots if isinstance(root, ReduceRoot | ScanRoot)), None)

    @property
    def is_scalar(self) -> bool:
        """Whether a root has a region of its own, which runs for one element at a time."""
        return any(root.body is not None for root in self.roots)

    @property
    def is_exclusive(self) -> bool:
        return any(isinstance(root, LaneRoot) for root in self.roots)


@dataclass(eq=False)
class Scalar:
    """An op on scalars that has an effect, done where it stands."""

    op: Operation
    time: int = 0


@dataclass(frozen=True)
class Direct:
    """The load of A, which a product reads where the arguments have it.

    `checks_rows`: only if rows are equally far apart; `mask`: only up to the iteration of the loop in which that is not
    full. Both are known before it; the mask depends on what is `carried`.
    """

    load: Operation
    checks_rows: bool = False
    mask: FullMask | None = None
    carried: tuple[SSAValue, ...] = ()

    @property
    def is_sure(self) -> bool:
        return not self.checks_rows and self.mask is None


@dataclass(eq=False)
class Dot:
    """A matrix product, added to what `result` holds; `from_zero`: to 0, whatever that is.

    A native `product` has operands in its own format. It packs B into `packed`, unless that is None: then B is packed
    already. Its `b` may be the transpose of B.
    Of a loop's product of `steps` above 1 operands are kept, and so many are computed together. `direct`: how A is
    read from the arguments, and is not in its place.
    `needed_rows`: limits of each store of what is computed of the result, if only rows below one of each are seen.
    `begins_sums`: the product of the loop's first steps is added to 0, which is not in memory.
    """

    op: Operation
    a: Place
    b: Place
    result: Place
    product: NativeProduct | None = None
    packed: Place | None = None
    b_is_transposed: bool = False
    steps: int = 1
    from_zero: bool = False
    direct: Direct | None = None
    needed_rows: tuple[tuple[Limit, ...], ...] = ()
    begins_sums: bool = False
    time: int = 0

    @property
    def copies_a(self) -> bool:
        """Whether A may be in its place."""
        return self.direct is None or not self.direct.is_sure

    @property
    def panels(self) -> OperandLayout | None:
        """How B is kept, if not row-major."""
        return (self.packed or self.b).slot.layout


@dataclass(eq=False)
class Transpose:
    """A copy of a matrix with rows and columns exchanged."""

    op: Operation
    source: Place
    result: Place
    time: int = 0


@dataclass(eq=False)
class For:
    """An scf.for. Tiles are carried in `homes`, by number; those in `increments` are an initial tile plus a scalar."""

    op: Operation
    body: Region
    homes: dict[int, Place]
    time: int = 0
    end: int = 0

    @property
    def steps(self) -> int:
        """Of how many iterations products are computed together: as many as all have room for, 1 if there are none."""
        return min((item.steps for item in self.body.items if isinstance(item, Dot) and item.steps > 1), default=1)


@dataclass(eq=False)
class If:
    """An scf.if; the tiles among its results are in `homes`."""

    op: Operation
    branches: list[Region]
    homes: dict[int, Place]
    time: int = 0
    end: int = 0


@dataclass(eq=False)
class While:
    """An scf.while; `homes` of the values before the condition, `result_homes` of those after it."""

    op: Operation
    before: Region
    after: Region
    homes: dict[int, Place]
    result_homes: dict[int, Place]
    time: int = 0
    end: int = 0


Item = Nest | Scalar | Dot | Transpose | For | If | While


def regions_of(item: Item) -> list[Region]:
    """The regions inside an item."""
    if isinstance(item, For):
        return [item.body]
    if isinstance(item, If):
        return item.branches
    return [item.before, item.after] if isinstance(item, While) else []


def dots_of(region: Region) -> Iterator[Dot]:
    """All products of a region and of those inside it."""
    for item in region.items:
        if isinstance(item, Dot):
            yield item
        for inner in regions_of(item):
            yield from dots_of(inner)


def tile_numbers(types: list[Attribute]) -> list[int]:
    """The positions of the tiles among some types."""
    return [number for number, type in enumerate(types) if is_tile(type)]

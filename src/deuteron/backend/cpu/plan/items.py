"""What a kernel is made of once it is planned: loop nests with their roots, and what stands between them.

    Region([Nest((64, 64), [Keep(%p), ReduceRoot(%l)]), Dot(...), For(op, Region([...]))])

What a nest computes are its roots (`roots.py`); where tiles are, `slots.py` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.backend.cpu.plan.products.operand_layout import OperandLayout
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import LaneRoot, LoopRoot, ReduceRoot, Root, ScanRoot
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.vectors.mask_limits import FullMask, Limit
from deuteron.backend.cpu.products.products import NativeProduct
from deuteron.ir.types import is_tile


@dataclass(eq=False)
class Nest:
    """Loops over a shape, with roots that are computed together at every index.

    `copies_for`: the product which alone reads what they keep, and not where it can read it directly. `unless_runs`:
    the loop right after the nest, which itself writes what they keep if it runs at all. `unless_computed`: the product
    which alone reads it, in iterations that have not been computed before the loop.
    """

    shape: tuple[int, ...]
    roots: list[Root]
    copies_for: Dot | None = None
    unless_runs: For | None = None
    unless_computed: Dot | None = None
    time: int = 0

    @property
    def reduced_axis(self) -> int | None:
        return next((root.axis for root in self.roots if isinstance(root, ReduceRoot | ScanRoot)), None)

    @property
    def is_scalar(self) -> bool:
        """Whether a root has a region of its own, which runs for one element at a time."""
        return any(root.body is not None for root in self.roots)

    @property
    def loops(self) -> list[LoopRoot]:
        """The loops that run at every index, before what reads their results there."""
        return [root for root in self.roots if isinstance(root, LoopRoot)]

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
    full. Both are known before it; the mask depends on what is `carried`. `knows_first`: where the rows of the first
    iteration are is known before the loop, too.
    """

    load: Operation
    checks_rows: bool = False
    mask: FullMask | None = None
    carried: tuple[SSAValue, ...] = ()
    knows_first: bool = False

    @property
    def is_sure(self) -> bool:
        return not self.checks_rows and self.mask is None


@dataclass(frozen=True)
class Operand:
    """The load of A or B, whose elements are neighbours along the dimension `unit_axis`, as is looked at if it
    `checks_neighbours`. Along the other one they are equally far apart, as is looked at if it `checks_distances`.
    """

    load: Operation
    unit_axis: int
    checks_neighbours: bool
    checks_distances: bool
    mask: FullMask | None

    def limits_along(self, axis: int) -> list[Limit]:
        return [limit for limit, own in self.mask.limits if own == axis] if self.mask else []


@dataclass(frozen=True)
class FewRows:
    """How a product is computed before its loop where at most `most_rows` of it are needed: of what is loaded, and of
    what the loop carries.
    """

    a: Operand
    b: Operand
    carried: tuple[SSAValue, ...]
    most_rows: int


@dataclass(eq=False)
class Dot:
    """A matrix product, added to what `result` holds; `from_zero`: to 0, whatever that is.

    A native `product` has operands in its own format. It packs B into `packed`, unless that is None: then B is packed
    already. Its `b` may be the transpose of B.
    Of a loop's product of `steps` above 1 operands are kept, and so many are computed together. `direct`: how A is
    read from the arguments, and is not in its place.
    `needed_rows`, `needed_columns`: limits of each store of what is computed of the result, if only what is below one
    of each is seen. `needed_depth`: limits of both operands, if they are 0 beyond one of each.
    `begins_sums`: the product of the loop's first steps is added to 0, which is not in memory. `awaited`: stores of
    rows of what is computed of the result, behind the loop, whose addresses are known in it. `few_rows`: how it is
    computed before the loop, of its first iterations, where few rows are needed. `row_nest`: how the only
    row that is needed is computed, of B as that is computed.
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
    needed_columns: tuple[tuple[Limit, ...], ...] = ()
    needed_depth: tuple[tuple[Limit, ...], ...] = ()
    begins_sums: bool = False
    awaited: tuple[Operation, ...] = ()
    few_rows: FewRows | None = None
    row_nest: Nest | None = None
    time: int = 0

    @property
    def copies_a(self) -> bool:
        """Whether A may be in its place."""
        return self.direct is None or not self.direct.is_sure or self.a.slot.reuse is not None

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

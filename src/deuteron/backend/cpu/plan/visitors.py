"""What the declaration of an op (`ops`) is given to say what it reads, and what becomes of it.

    read(op, storage)             storage.require(op.a, op): the dot needs its operand in memory
    schedule(op, scheduler)       scheduler.add(Dot(op, ...)): it is an item of its own

The visitors here hold what is entered and know no declarations: declarations stand on this file. Those that visit
the ops of a function with their declarations are built on both: `Storage` (storage.py), `Scheduler` (schedule.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.cpu.memory.elements import scratch_type
from deuteron.backend.cpu.plan.inductions import Induction
from deuteron.backend.cpu.plan.items import Item
from deuteron.backend.cpu.plan.products.marks import columns_of, operand_type, steps_of
from deuteron.backend.cpu.plan.products.operand_layout import OperandLayout, panel_layout, row_layout
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Root
from deuteron.backend.cpu.plan.slots import Place, Slot
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import is_integer, is_tile, shape_of


class ReadVisitor(ABC):
    """`kept`: the lazy tiles to keep. `required`: those of them that must be in memory.

    `transposed`: operands of products that are the transpose of a kept tile, made by a transposition of their own.
    `inductions`: see there. `uses`: who reads each tile. Ops come in reverse, so that all readers of a tile are known.
    """

    def __init__(self) -> None:
        self.kept: set[SSAValue] = set()
        self.required: set[SSAValue] = set()
        self.transposed: set[SSAValue] = set()
        self.inductions: dict[SSAValue, Induction] = {}
        self.uses: dict[SSAValue, Use] = {}

    def read(self, value: SSAValue, use: Use | None) -> None:
        """Enter who reads a tile, if anybody does."""
        if use is not None and is_tile(value.type):
            known = self.uses.get(value)
            self.uses[value] = use if known is None else known.merged(use)

    def require(self, value: SSAValue, op: Operation) -> None:
        """Enter that the tile has to be in memory for this op."""
        self.read(value, Use(op, op))
        if is_tile(value.type):
            self.required.add(value)

    @abstractmethod
    def use_through(self, result: SSAValue, op: Operation) -> Use | None:
        """Who reads the operands for this result's sake: the result's own root where it is kept, else its readers."""


class ScheduleVisitor(ABC):
    """Holds the items of a region, and the `places` of tiles in memory, by what `storage` says of them."""

    def __init__(self, storage: ReadVisitor) -> None:
        self.storage = storage
        self.places: dict[SSAValue, Place] = {}
        self._region = Region()

    @abstractmethod
    def region(self, block: Block) -> Region:
        """The items of a block."""

    @abstractmethod
    def root(self, root: Root) -> None:
        """Add a root to a nest."""

    def add(self, item: Item) -> None:
        """Add an item that is no nest."""
        self._region.items.append(item)

    @contextmanager
    def inside(self, region: Region) -> Iterator[None]:
        """Add to the end of this region for a while."""
        outer, self._region = self._region, region
        yield
        self._region = outer

    def new_place(self, value: SSAValue) -> Place:
        """A buffer for a tile: row-major, unless it is an operand of a product that is kept otherwise."""
        place = new_buffer(_slot_type(value), shape_of(value.type), _layout(value))
        self.places[value] = place
        return place


def new_buffer(type: str, shape: tuple[int, ...], layout: OperandLayout | None = None) -> Place:
    """A buffer for elements of an LLVM type, row-major where no layout is given."""
    count = layout.count if layout is not None else prod(shape)
    return Place(Slot(type, count, count * byte_width(type), layout=layout), shape)


def _layout(value: SSAValue) -> OperandLayout | None:
    """How an operand of the products of several steps is kept."""
    steps = steps_of(value.owner) if isinstance(value.owner, Operation) else 1
    if steps == 1 or isinstance(value.owner, DotOp):
        return None
    shape, columns = shape_of(value.type), columns_of(value.owner)
    if columns:
        return panel_layout(*shape, columns, steps)
    return row_layout(*shape, steps, byte_width(_slot_type(value)))


def _slot_type(value: SSAValue) -> str:
    """What a tile is kept as; integer operands of a plain product are widened for it."""
    if operand := operand_type(value):
        return operand
    in_product = any(isinstance(use.operation, DotOp) and use.index < 2 for use in value.uses)
    return "i32" if in_product and is_integer(value.type) else scratch_type(value.type)

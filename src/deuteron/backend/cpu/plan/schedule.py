"""Plans a kernel: from the ops of each block to the items that code is emitted for, in order.

    %x = tt.load ...                        Nest((1024,), [Keep(%x), ReduceRoot(%m)])
    %m = "tt.reduce"(%x) ...                Nest((1024,), [Keep(%e), ReduceRoot(%s)])
    %e = math.exp ...                       Nest((1024,), [StoreRoot])
    %s = "tt.reduce"(%e) ...
    tt.store %p, %y

Scalar ops without effects are not items: their code comes where something first needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.cpu.elements import scratch_type
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.fuse import Fuser
from deuteron.backend.cpu.plan.items import Item, Place, Region, Root, Slot
from deuteron.backend.cpu.plan.reads import Reader
from deuteron.backend.cpu.plan.storage import Storage
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import is_integer, num_elements_of, shape_of


@dataclass
class Plan:
    """A planned function: its items, and where its tiles are kept."""

    function: Operation
    body: Region
    places: dict[SSAValue, Place]
    storage: Storage
    reader: Reader


class Scheduler:
    """Turns the ops of a function, in order, into items, as the declaration of each says (`ops`)."""

    def __init__(self, function: FuncOp):
        self.storage = Storage(function)
        self.reader = Reader(self.storage)
        self.places: dict[SSAValue, Place] = {}
        self._fuser = Fuser(self.reader)
        self._region = Region()

    def region(self, block: Block) -> Region:
        """The items of a block."""
        region = Region()
        with self.inside(region):
            for op in block.ops:
                ops.declared(op).schedule(op, self)
        return region

    @contextmanager
    def inside(self, region: Region) -> Iterator[None]:
        """Add to the end of this region for a while."""
        outer, self._region = self._region, region
        yield
        self._region = outer

    def root(self, root: Root) -> None:
        """Add a root to a nest."""
        self._fuser.place(self._region, root)

    def add(self, item: Item) -> None:
        """Add an item that is no nest."""
        self._region.items.append(item)

    def new_place(self, value: SSAValue) -> Place:
        """A row-major buffer for a tile."""
        type = _slot_type(value)
        count = num_elements_of(value.type)
        place = Place(Slot(type, count, count * byte_width(type)), shape_of(value.type))
        self.places[value] = place
        return place


def _slot_type(value: SSAValue) -> str:
    """What a tile is kept as; integer operands of a dot are widened for its matrix product."""
    in_product = any(isinstance(use.operation, DotOp) and use.index < 2 for use in value.uses)
    return "i32" if in_product and is_integer(value.type) else scratch_type(value.type)

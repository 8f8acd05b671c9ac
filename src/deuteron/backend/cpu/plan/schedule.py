"""Plans a kernel: from the ops of each block to the items that code is emitted for, in order.

    %x = tt.load ...                        Nest((1024,), [Keep(%x), ReduceRoot(%m)])
    %m = "tt.reduce"(%x) ...                Nest((1024,), [Keep(%e), ReduceRoot(%s)])
    %e = math.exp ...                       Nest((1024,), [StoreRoot])
    %s = "tt.reduce"(%e) ...
    tt.store %p, %y

Scalar ops without effects are not items: their code comes where something first needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.written_arguments import written_arguments
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.fuse import Fuser
from deuteron.backend.cpu.plan.reads import Reader
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Root
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.tiles.storage import Storage
from deuteron.backend.cpu.plan.visitors import ScheduleVisitor
from deuteron.cached_property import cached_property
from deuteron.ir.tt.function import FuncOp


@dataclass
class Plan:
    """A planned function: its items, and where its tiles are kept. `steps`: what `Steps` has found out since then."""

    function: Operation
    body: Region
    places: dict[SSAValue, Place]
    storage: Storage
    reader: Reader
    steps: dict = field(default_factory=dict)

    @cached_property
    def written(self) -> Targets:
        """What the function writes."""
        return written_arguments(self.function)


class Scheduler(ScheduleVisitor):
    """Turns the ops of a function, in order, into items, as the declaration of each says (`ops`)."""

    def __init__(self, function: FuncOp):
        storage = Storage(function)
        super().__init__(storage)
        self.reader = Reader(storage)
        self._fuser = Fuser(self.reader)

    def region(self, block: Block) -> Region:
        region = Region()
        with self.inside(region):
            for op in block.ops:
                ops.declared(op).schedule(op, self)
        return region

    def root(self, root: Root) -> None:
        self._fuser.place(self._region, root)

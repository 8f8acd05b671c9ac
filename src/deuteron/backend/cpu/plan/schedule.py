"""Plans a kernel: from the ops of each block to the items that code is emitted for, in order.

    %x = tt.load ...                        Nest((1024,), [Keep(%x), ReduceRoot(%m)])
    %m = "tt.reduce"(%x) ...                Nest((1024,), [Keep(%e), ReduceRoot(%s)])
    %e = math.exp ...                       Nest((1024,), [StoreRoot])
    %s = "tt.reduce"(%e) ...
    tt.store %p, %y

Scalar ops without effects are not items: their code comes where something first needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.cpu.elements import scratch_type
from deuteron.backend.cpu.plan import effects
from deuteron.backend.cpu.plan.fuse import Fuser
from deuteron.backend.cpu.plan.items import (
    Dot,
    For,
    If,
    Keep,
    LaneRoot,
    Place,
    PrintRoot,
    ReduceRoot,
    Region,
    Root,
    Scalar,
    ScanRoot,
    Slot,
    StoreRoot,
    Transpose,
    UnsplatRoot,
    While,
    tile_numbers,
)
from deuteron.backend.cpu.plan.reads import Reader
from deuteron.backend.cpu.plan.storage import Storage
from deuteron.backend.cpu.plan.views import is_view
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.types import is_integer, is_tile, num_elements_of, shape_of


@dataclass
class Plan:
    """A planned function: its items, and where its tiles are kept."""

    function: Operation
    body: Region
    places: dict[SSAValue, Place]
    storage: Storage
    reader: Reader


class Scheduler:
    """Visits the ops of a function in order and turns them into items."""

    def __init__(self, function: Operation):
        self.storage = Storage(function)
        self.reader = Reader(self.storage)
        self.places: dict[SSAValue, Place] = {}
        self._fuser = Fuser(self.reader)
        self._region = Region()

    def region(self, block: Block) -> Region:
        outer, self._region = self._region, Region()
        for op in block.ops:
            self._visit(op)
        region, self._region = self._region, outer
        return region

    def _visit(self, op: Operation) -> None:
        visit = _VISITS.get(op.name)
        if visit is not None:
            visit(self, op)
        elif is_view(op):
            self._view(op)
        elif effects.is_lazy(op):
            self._visit_lazy(op)
        elif any(is_tile(value.type) for value in (*op.operands, *op.results)):
            self._visit_lanes(op)
        else:
            self._region.items.append(Scalar(op))

    def _visit_lazy(self, op: Operation) -> None:
        for result in op.results:
            if result in self.storage.transposed:
                self._region.items.append(Transpose(op, self.places[op.src], self._new_place(result)))
            elif result in self.storage.kept:
                self._root(Keep(op, (result,), self._new_place(result), result))

    def _root(self, root: Root) -> None:
        self._fuser.place(self._region, root)

    def _new_place(self, value: SSAValue) -> Place:
        """A row-major buffer for a tile."""
        type = _slot_type(value)
        count = num_elements_of(value.type)
        place = Place(Slot(type, count, count * byte_width(type)), shape_of(value.type))
        self.places[value] = place
        return place

    def _view(self, op: Operation) -> None:
        source = self.places[op.operands[0]]
        if op.name == "tt.reshape":
            self.places[op.result] = source.reshaped(shape_of(op.result.type))
            return
        for number, half in enumerate(op.results):
            self.places[half] = source.half(number)

    def _visit_lanes(self, op: Operation) -> None:
        """An op that is done element by element."""
        for result in op.results:
            if is_tile(result.type):
                self._new_place(result)
        self._root(LaneRoot(op, _tiles(op)))

    def _visit_print(self, op: Operation) -> None:
        for number, value in enumerate(op.operands):
            self._root(PrintRoot(op, (value,), number))
        if not op.operands:
            self._region.items.append(Scalar(op))

    def _visit_store(self, op: Operation) -> None:
        if is_tile(op.ptr.type):
            self._root(StoreRoot(op, _tiles(op)))
        else:
            self._region.items.append(Scalar(op))

    def _visit_reduce(self, op: Operation) -> None:
        for result in op.results:
            if is_tile(result.type):
                self._new_place(result)
        self._root(ReduceRoot(op, _tiles(op), op.axis.value.data))

    def _visit_scan(self, op: Operation) -> None:
        for result in op.results:
            self._new_place(result)
        self._root(ScanRoot(op, _tiles(op), op.axis.value.data))

    def _visit_unsplat(self, op: Operation) -> None:
        self._root(UnsplatRoot(op, _tiles(op)))

    def _visit_join(self, op: Operation) -> None:
        place = self._new_place(op.result)
        for number, source in enumerate(op.operands):
            self._root(Keep(op, (source,), place.half(number)))
        self._merge_last(op)

    def _visit_cat(self, op: Operation) -> None:
        place = self._new_place(op.result)
        for number, source in enumerate(op.operands):
            self._root(Keep(op, (source,), place.part(number, shape_of(source.type))))
        self._merge_last(op)

    def _merge_last(self, op: Operation) -> None:
        """Mark the end of what writes a tile in parts, so that readers come behind it."""
        self._region.items.append(Scalar(op))

    def _visit_dot(self, op: Operation) -> None:
        result = self._new_place(op.result)
        self._root(Keep(op, (op.c,), result))
        self._region.items.append(Dot(op, self.places[op.a], self.places[op.b], result))

    def _visit_for(self, op: scf.ForOp) -> None:
        homes = {}
        for number in tile_numbers(op.results.types):
            argument, result = op.body.block.args[number + 1], op.results[number]
            if argument not in self.storage.inductions:
                homes[number] = self._home(op, op.iter_args[number], argument, result)
        body = self.region(op.body.block)
        self._copy_out(body, op.body.block.last_op, op.body.block.last_op.operands, homes)
        self._region.items.append(For(op, body, homes))

    def _home(self, op: Operation, initial: SSAValue, *values: SSAValue) -> Place:
        """The place of a loop-carried tile, with its initial contents."""
        home = self._new_place(values[0])
        for value in values:
            self.places[value] = home
        self._root(Keep(op, (initial,), home))
        return home

    def _copy_out(self, region: Region, op: Operation, values: Sequence[SSAValue], homes: dict[int, Place]) -> None:
        """Copy what a region ends with to where it is expected; in a loop that may be read until then."""
        outer, self._region = self._region, region
        is_loop = op.parent_op().name != "scf.if"
        for number, home in homes.items():
            self._root(Keep(op, (values[number],), home, is_pinned=is_loop))
        self._region = outer

    def _visit_if(self, op: scf.IfOp) -> None:
        homes = {number: self._new_place(op.results[number]) for number in tile_numbers(op.results.types)}
        branches = []
        for region in op.regions:
            branches.append(self.region(region.block) if region.blocks else Region())
            if homes:
                terminator = region.block.last_op
                self._copy_out(branches[-1], terminator, terminator.operands, homes)
        self._region.items.append(If(op, branches, homes))

    def _visit_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        homes = {
            number: self._home(op, op.arguments[number], before.args[number])
            for number in tile_numbers(op.arguments.types)
        }
        result_homes = {number: self._new_place(op.results[number]) for number in tile_numbers(op.results.types)}
        for number, place in result_homes.items():
            self.places[after.args[number]] = place
        regions = self.region(before), self.region(after)
        self._copy_out(regions[0], before.last_op, before.last_op.operands[1:], result_homes)
        self._copy_out(regions[1], after.last_op, after.last_op.operands, homes)
        self._region.items.append(While(op, *regions, homes, result_homes))

    def _visit_nothing(self, op: Operation) -> None:
        """Terminators are part of the item of their parent."""


def _tiles(op: Operation) -> tuple[SSAValue, ...]:
    return tuple(operand for operand in op.operands if is_tile(operand.type))


def _slot_type(value: SSAValue) -> str:
    """What a tile is kept as; integer operands of a dot are widened for its matrix product."""
    in_product = any(use.operation.name == "tt.dot" and use.index < 2 for use in value.uses)
    return "i32" if in_product and is_integer(value.type) else scratch_type(value.type)


_VISITS = {
    "tt.store": Scheduler._visit_store,
    "tt.print": Scheduler._visit_print,
    "tt.reduce": Scheduler._visit_reduce,
    "tt.scan": Scheduler._visit_scan,
    "tt.unsplat": Scheduler._visit_unsplat,
    "tt.join": Scheduler._visit_join,
    "tt.cat": Scheduler._visit_cat,
    "tt.dot": Scheduler._visit_dot,
    "scf.for": Scheduler._visit_for,
    "scf.if": Scheduler._visit_if,
    "scf.while": Scheduler._visit_while,
    "scf.yield": Scheduler._visit_nothing,
    "scf.condition": Scheduler._visit_nothing,
    "tt.return": Scheduler._visit_nothing,
}

"""Decides which tiles are kept in memory and which are computed again wherever they are read.

    x = tl.load(p + i)          loaded again: the maximum and the exponential read it, in two loops
    z = tl.load(p + j // 2)     kept, if several loops read it; so is what is written before the last of them
    y = x * 2                   computed again, cheaper than a trip through memory
    p = tl.exp(y - m)           kept: costly, and read by the sum and by the division
    acc = tl.dot(p, v, acc)     kept: it is made by an algorithm, not element by element

Walks the ops backwards, so that all readers of a tile are known. What turns out to be read in a single loop only
is dropped again after fusion (`schedule.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, Region, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.distances import Distances, DistancesAnalysis
from deuteron.backend.cpu.plan import effects, ops
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.tiles import costs
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS, neighbours_of_one_quotient
from deuteron.backend.cpu.plan.visitors import ReadVisitor
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import is_tile, shape_of

_NEIGHBOURS = 8  # half a vector of 32 bits: fewer are not worth it (`vectors/quotients.py`)


class Storage(ReadVisitor):
    """Which tiles of a function are kept, as the declaration of each of its ops says (`ops`).

    `infos`: what is known of every value along its axes, found once for all that plan the function. `is_plain`: whether
    it does no more to memory than load and store.
    """

    def __init__(self, function: FuncOp):
        super().__init__()
        self._writes_between = effects.WritesBetween()
        self._places = effects.Places()
        self.is_plain = effects.only_loads_and_stores(function)
        self.infos = AxisInfoAnalysis(function)
        self._distances: dict[int, DistancesAnalysis] = {}
        self._costs = costs.Costs(self._loads_again, self._divides_once)
        for op in reversed(list(_planned_ops(function.body))):
            ops.declared(op).read(op, self)

    def use_through(self, result: SSAValue, op: Operation) -> Use | None:
        use = self.uses.get(result)
        if is_tile(result.type) and (result in self.required or self._is_worth_keeping(result, op, use)):
            self.kept.add(result)
            return Use(result, op)
        return use.through(ops.declared(op).repeats(op), _moves(op)) if use is not None else None

    def _is_worth_keeping(self, result: SSAValue, op: Operation, use: Use | None) -> bool:
        declared = ops.declared(op)
        if declared.forwards or use is None:
            return False
        crosses_region = any(reader.parent_block() is not op.parent_block() for reader in use.ops)
        is_read_again = use.is_shared or use.is_repeated or crosses_region
        is_costly = self._costs.of(result) >= costs.WORTH_KEEPING
        if not declared.reads_memory(op):
            return is_read_again and is_costly
        must_stay = is_costly or use.is_repeated or use.is_moved or crosses_region
        return (is_read_again and must_stay) or self._is_disturbed(op, use)

    def cost_of(self, value: SSAValue) -> float:
        """What it costs to compute an element again (`costs.py`)."""
        return self._costs.of(value)

    def distances(self, value: SSAValue, axis: int, count: int) -> Distances | None:
        """By how much `count` neighbours along a dimension differ, where that is known; of tiles that loops advance
        what is known of the first ones.
        """
        if count not in self._distances:
            advanced = {tile: induction.initial for tile, induction in self.inductions.items()}
            self._distances[count] = DistancesAnalysis(self.infos.of, count, advanced)
        return self._distances[count].of(value, axis)

    def _loads_again(self, load: Operation) -> bool:
        """Whether loading neighbours again is as good as keeping them, if nothing is written meanwhile. Where programs
        do more to memory than load and store, what one loads twice another may have changed.
        """
        if not self.is_plain or load.is_volatile.value.data or not is_tile(load.result.type):
            return False
        return self.infos.of(load.ptr).contiguity[-1] == shape_of(load.result.type)[-1]

    def _divides_once(self, op: Operation) -> bool:
        """Whether the neighbours in a vector have one quotient, or quotients that are known distances apart, so that
        what is loaded at it is not gathered.
        """
        if not isinstance(op, QUOTIENTS) or not is_tile(op.results[0].type):
            return False
        last, neighbours = len(shape_of(op.results[0].type)) - 1, neighbours_of_one_quotient(self.infos, op, -1)
        return neighbours >= _NEIGHBOURS or self.infos.distances(op.results[0], last, _NEIGHBOURS) is not None

    def _is_disturbed(self, load: Operation, use: Use) -> bool:
        """Whether, at the time of a use, the load would find other contents than where it stands. What orders programs
        is not passed.
        """
        writers = dict.fromkeys(op for reader in use.ops for op in self._writes_between(load, reader))
        if writers and not self.is_plain:
            return True
        if any(self._places.may_change(writer, load) for writer in writers):
            return True
        in_step = not use.is_moved
        return any(self._places.may_write(reader, load.ptr, in_step) for reader in use.ops)


def _moves(op: Operation) -> bool:
    """Whether an element of the result is computed from elements at other indices."""
    if not is_tile(op.results[0].type):
        return False
    operands = ops.declared(op).operands_at(op, identity_index(shape_of(op.results[0].type)))
    return any(is_tile(operand.type) and index != identity_index(shape_of(operand.type)) for operand, index in operands)


def _planned_ops(region: Region) -> Iterator[Operation]:
    """The ops of a region in order, each before those of its own regions."""
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in ops.declared(op).regions(op):
                yield from _planned_ops(inner)

"""Which ops of a block are computed together, slice after slice.

    %x = tt.load %p             a group begins with an op of many registers
    %k = arith.muli %i, %n      nothing of the group: stays where it is
    %y = math.exp %x            in the group, cut along the same dimension
    %w = tt.load %q             a tile of the same layout as one of the group's
    %s = tt.reduce %y           along another dimension
    tt.store %p, %y             stores where nothing of the group loads
    ttg.local_store %y, %m      into shared memory, a slice of it
    %z = tt.dot %y, %b, %c      ends it; in the group where threads have no registers for %z (cut along its rows or
                                columns) or for %y or %b (cut along K: the loop carries the sums)

The dimension is that with which the group does most. Ops from before its first join it if they give a tile to it alone.
Ops between that do not depend on the group stay before its loop. What is known by its place alone, and
changes of shape, are in no group: a slice of them is made where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from math import inf

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.aliasing.apart import can_be_apart, take_apart
from deuteron.analysis.aliasing.points_to import Targets, is_address
from deuteron.analysis.aliasing.written_arguments import read_by, written_by
from deuteron.cached_property import cached_property
from deuteron.ir.arith import constant_value
from deuteron.ir.effects import GLOBAL, MEMORY, READ, SHARED, WRITE, Effect, effects_of, is_pure, is_removable
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.private import PrivateAllocOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp, LocalStoreOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttg.views import viewed
from deuteron.ir.types import bit_width_of, i32, is_tile, shape_of
from deuteron.layout.linear import log2
from deuteron.layout.slices import sliceable_bits
from deuteron.passes.gpu.slices.costs import (
    bits_in_thread,
    cost_of,
    dot_slices,
    is_wider_than_threads,
    most_registers,
    registers_of,
)
from deuteron.passes.gpu.slices.slice_axes import SUMMED, Axis, axes_of, axes_to_cut, exchange_slices, main_value

# Registers of a thread from which on the tile of an op begins a group, and how many of it a slice has.
MANY, IN_SLICE = 64, 16
# Of a slice with a dot: two rows of instructions for matrices of a tile of 128 columns in one warp.
MOST_IN_SLICE = 128
# Instructions from which on an op does as well, and those of a slice, as of loops of dots: it may have fewer registers.
HEAVY, OF_SLICE, LEAST_IN_SLICE = 1024, 2048, 4
# Instructions for a register that is stored and loaded again: four in one, and what puts them side by side.
OF_MEMORY = 1
DOTS = (DotOp, SlicedDotOp)
SHAPES = (BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp)


@dataclass
class Group:
    """Ops, and the dimension along which each tile that they give is cut; at most into 2 ** bits slices.
    `most_held`: bits of a tile that registers hold. One of more is in memory in any case, and is not counted as moved.
    """

    ops: list[Operation] = field(default_factory=list)
    axes: dict[SSAValue, Axis] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)  # the same values by `id`: their own hash is slow
    store_axes: dict[Operation, int] = field(default_factory=dict)
    bits: int = bit_width_of(i32) - 1
    reads: Targets = field(default_factory=Targets)
    writes: Targets = field(default_factory=Targets)
    is_pure: bool = True
    known: dict[SSAValue, bool] = field(default_factory=dict)  # which tiles are indices
    needed: dict[SSAValue, set[Axis]] = field(default_factory=dict)  # how what its ops take is cut
    anew: set[SSAValue] = field(default_factory=set)  # what is computed in its slices besides
    most: int = 0  # registers of a tile
    cost: int = 0
    most_held: float = inf

    @property
    def slices_are_large(self) -> bool:
        """Whether its slices are to be cut again, along another dimension: this one is as long as there are slices."""
        return self.most // self.count() >= MANY

    @cached_property
    def slices(self) -> int:
        """Into how many a group is cut that is complete."""
        return self.count()

    @cached_property
    def saved(self) -> float:
        """How many instructions fewer a loop has, what goes through memory added; of a group that is complete."""
        return self.cost * (1 - 1 / self.slices) - OF_MEMORY * self._moved

    @property
    def _moved(self) -> int:
        """The registers of what the loop takes from before it, and leaves behind, but for what is in memory anyway."""
        ops = set(self.ops)
        taken = dict.fromkeys(operand for op in self.ops for operand in op.operands if operand not in self.axes)
        left = (value for value in self.axes if any(use.operation not in ops for use in value.uses))
        return sum(registers_of(value) for value in (*taken, *left) if self._is_moved(value))

    @property
    def has_dot(self) -> bool:
        return any(isinstance(op, DOTS) for op in self.ops)

    def _is_moved(self, value: SSAValue) -> bool:
        if not is_tile(value.type):
            return False
        if is_address(value.type):  # of one that is taken whole an access needs the first of each vector alone
            return not self._is_anew(value)
        is_wide = is_wider_than_threads(value) and _is_carried(value)
        is_in_memory = isinstance(value.owner, LocalLoadOp) or is_wide or bits_in_thread(value) > self.most_held
        return not is_in_memory and not self._is_anew(value)

    def _is_anew(self, value: SSAValue) -> bool:
        return is_made_anew(value, self.known)

    def count(self) -> int:
        """Into how many slices: a power of two, as all numbers of registers are."""
        by_cost = min(self.cost // OF_SLICE, self.most // LEAST_IN_SLICE)
        wanted = max(self.most // IN_SLICE, by_cost, 1)
        return min(1 << self.bits, 1 << (wanted.bit_length() - 1))

    def add(self, op: Operation, axis: int) -> bool:
        """Take an op in, cut along this dimension, if it may be."""
        axes = axes_of(op, axis)
        bits = 0 if axes is None else min(self.bits, _slice_bits(op, axis, axes))
        if bits == 0 or (self.ops and 1 << bits < self._least_slices(op)):
            return False
        read, written = read_by(op), written_by(op)
        if not self._may_be_cut(op, axis, axes) or not self._may_access(op, read, written):
            return False
        self.bits, self.most = bits, max(self.most, most_registers(op))
        self.cost += cost_of(op) + sum(map(self._cost_anew, op._operands))
        self.ops.append(op)
        self.is_pure &= is_pure(op)
        self.axes.update((result, axes[result]) for result in op.results)
        self.given.update(map(id, op.results))
        for operand in op._operands:
            self.needed.setdefault(operand, set()).add(axes.get(operand))
        self.reads, self.writes = self.reads | read, self.writes | written
        if written or isinstance(op, LocalStoreOp):
            self.store_axes[op] = axis
        return True

    def _cost_anew(self, value: SSAValue) -> int:
        """What an index costs that the group has not computed yet."""
        cost, pending = 0, [value]
        while pending:
            value = pending.pop()
            if value not in self.anew and value not in self.axes and is_tile(value.type) and self._is_anew(value):
                self.anew.add(value)
                cost += cost_of(value.owner)
                pending += value.owner.operands
        return cost

    def _may_be_cut(self, op: Operation, axis: int, axes: dict[SSAValue, Axis]) -> bool:
        """Whether an op's tiles are cut as the group's are that it takes."""
        if not _has_known_value(op) or (isinstance(op, DOTS) and not self._may_cut(op, axis)):
            return False
        # A scalar is cut along nothing: one that the group gives is a sum, which is whole after the loop alone.
        return all(self.axes[value] == axes.get(value) for value in op._operands if id(value) in self.given)

    def _may_cut(self, op: DotOp | SlicedDotOp, axis: int) -> bool:
        """Whether a dot is done in slices: of a batch, or of tiles that are in memory anyway. Sums are rounded once."""
        if 0 <= axis < len(shape_of(op.result.type)) - 2:
            return True
        if axis == SUMMED:
            is_exact = bit_width_of(op.c.type) >= bit_width_of(i32)
            return is_exact and any(map(self._is_in_memory, (op.a, op.b)))
        return self._is_in_memory(op.result)

    def _is_in_memory(self, value: SSAValue) -> bool:
        return is_wider_than_threads(value) or bits_in_thread(value) > self.most_held

    def _least_slices(self, op: Operation) -> int:
        """Into how few slices an op may be cut: instructions for matrices are not."""
        return self.most // MOST_IN_SLICE if isinstance(op, DOTS) else self.count()

    def take_in_before(self, op: Operation) -> None:
        """Take in an op from before the group that gives it something, which nobody else uses, of one tile."""
        value = op.results[0] if len(op.results) == 1 else None
        if value is None or value not in self.needed or not is_pure(op) or self._is_anew(value):
            return
        cuts, tiles = self.needed[value], [operand for operand in op.operands if is_tile(operand.type)]
        is_ours = all(use.operation in self.ops for use in value.uses) and len(tiles) == 1 and len(cuts) == 1
        axis = next(iter(cuts))
        if is_ours and axis is not None and not isinstance(op, DotOp) and self.add(op, axis):
            self.ops.insert(0, self.ops.pop())

    def grow(self, op: Operation) -> bool:
        """Take in an op that follows, or let it stay before the group; False: neither may be."""
        if self.is_used_by(op):
            return any(self.add(op, axis) for axis in axes_to_cut(op))
        return self._join(op) or self._may_precede(op)

    def _join(self, op: Operation) -> bool:
        """Take in an op whose tiles are cut like the group's."""
        main = main_value(op)
        if main is None:
            return False
        layout = layout_of(main.type)
        cuts = (axis for value, axis in self.axes.items() if axis != SUMMED and layout_of(value.type) == layout)
        cut = next(cuts, None)
        return cut is not None and _is_large(op) and not self._is_anew(main) and self.add(op, cut)

    def axis_of(self, op: Operation) -> int:
        """The dimension along which it is cut."""
        return self.axes[op.results[0]] if op.results else self.store_axes[op]

    def gives_sums(self, op: Operation) -> bool:
        return bool(op.results) and self.axes[op.results[0]] == SUMMED

    def is_used_by(self, op: Operation) -> bool:
        return any(id(operand) in self.given for inner in nested_ops(op) for operand in inner._operands)

    def lets_pass(self, op: Operation) -> bool:
        """Whether an op may stay before all of the group."""
        return self._may_precede(op) and not self.is_used_by(op)

    def _may_precede(self, op: Operation) -> bool:
        """The same of one that uses nothing of what the group gives."""
        is_free = is_pure(op) or self._only_reads_apart(op) or (self.is_pure and not op.regions)
        return is_free or _is_empty_memory(op)

    def _only_reads_apart(self, op: Operation) -> bool:
        """Whether it reads, but no kind of memory that the group writes."""
        written = {SHARED if isinstance(store, LocalStoreOp) else GLOBAL for store in self.store_axes}
        return is_removable(op) and not any(effect.resource in written for effect in effects_of(op))

    def _may_access(self, op: Operation, read: Targets, written: Targets) -> bool:
        """Whether it touches memory in such a way that slices of it may come before those of the others."""
        if any(effect.kind not in (READ, WRITE) or effect.resource not in MEMORY for effect in effects_of(op)):
            return False
        shared = _in_shared(op)
        if shared and any(_is_written_by_one(shared, _in_shared(other)) for other in self.ops):
            return False
        pairs = [(read, self.writes), (written, self.reads), (written, self.writes)]
        return all(can_be_apart(one, other) for one, other in pairs)

    def rely_on_apart(self) -> None:
        """Write down which arguments have to be apart for slices to change places."""
        for number, store in enumerate(self.store_axes):
            others = [self.reads, *(written_by(other) for other in list(self.store_axes)[:number])]
            for other in others:
                take_apart(written_by(store), other)


def _is_empty_memory(op: Operation) -> bool:
    return isinstance(op, PrivateAllocOp) or (isinstance(op, LocalAllocOp) and op.src is None)


def _is_written_by_one(one: list[Effect], other: list[Effect]) -> bool:
    """Whether one of two ops writes shared memory that the other one touches."""
    pairs = product(one, other)
    return any((a.value is b.value or None in (a.value, b.value)) and WRITE in (a.kind, b.kind) for a, b in pairs)


def _in_shared(op: Operation) -> list[Effect]:
    """On whole allocations."""
    return [replace(effect, value=viewed(effect.value)) for effect in effects_of(op) if effect.resource is SHARED]


def _is_carried(value: SSAValue) -> bool:
    """Whether a loop has a value of the iteration before, or gives it the next."""
    return isinstance(value, BlockArgument) or any(isinstance(use.operation, scf.YieldOp) for use in value.uses)


def _slice_bits(op: Operation, axis: int, axes: dict[SSAValue, Axis]) -> int:
    """Into how many slices an op may be cut, as a power of two."""
    cuts = [(value, cut) for value, cut in axes.items() if is_tile(value.type) and cut is not None and cut != SUMMED]
    bits = min(len(sliceable_bits(layout_of(value.type), cut)) for value, cut in cuts)
    if isinstance(op, GatherOp) and axis == op.axis.value.data:
        return min(bits, log2(exchange_slices(op)))
    if isinstance(op, SlicedDotOp):
        # Its sums need operands from shared memory: 4x8 take 12, and 2x8 take 10.
        return min(bits, max(log2(registers_of(op.result)) - log2(2 * IN_SLICE), 0))
    return min(bits, log2(dot_slices(op, axis))) if isinstance(op, DotOp) else bits


def _has_known_value(op: Operation) -> bool:
    return not isinstance(op, ConstantOp) or constant_value(op.results[0]) is not None


def axes_to_begin(op: Operation, known: dict[SSAValue, bool]) -> list[int]:
    """The dimensions along which a group may begin with an op."""
    is_anew = bool(op.results) and is_made_anew(op.results[0], known)
    return axes_to_cut(op) if _is_large(op) and not is_anew else []


def slices_of_one(op: Operation) -> int:
    """Into how many slices an op is cut by the registers of its largest tile."""
    return most_registers(op) // IN_SLICE


def _is_large(op: Operation) -> bool:
    return most_registers(op) >= MANY or cost_of(op) >= HEAVY


def is_made_anew(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    """Whether a slice of a tile is made where it is needed: it is an index, or another shape of something."""
    return type(value.owner) in SHAPES or is_index(value, known)


def is_index(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    """Whether a tile is computed of ranges, constants and scalars alone, so that a slice of it costs little."""
    if not is_tile(value.type):
        return True
    if value not in known:
        op = value.owner
        known[value] = isinstance(op, Operation) and _computes_index(op, known)
    return known[value]


def _computes_index(op: Operation, known: dict[SSAValue, bool]) -> bool:
    if any(known.get(operand) is False for operand in op._operands):  # most are, and all else takes long to ask
        return False
    is_plain = (is_flexible(op) or isinstance(op, ConstantOp)) and is_pure(op)
    is_cheap = is_plain and _has_known_value(op) and cost_of(op) <= 2 * registers_of(op.results[0])
    return is_cheap and all(is_index(operand, known) for operand in op.operands)

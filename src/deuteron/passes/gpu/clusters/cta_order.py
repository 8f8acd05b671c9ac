"""What the CTAs of a cluster have to wait for, where what one of them stores another may load, or store as well.

    for k in range(...):
        x = load(p + k * 64 + arange(0, 64))           nothing: each CTA stores what it has loaded itself
        store(p + k * 64 + arange(0, 64), x + 1)
    for k in range(...):
        store(p + k * n + arange(0, 64), x)            all before the next iteration: it may store what another CTA
                                                       has stored in this one
    store(p + arange(0, 64), x)
    load(p + 1 + arange(0, 64))                        refused: another CTA stores the last element of a part

Each CTA accesses its own part of a tile. It touches nothing of what others do where two tiles are split along one axis
and their addresses are the same, or have nothing in common (overlap.py); blocks of one descriptor, where they begin at
multiples of their size.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement, product

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.steps import injective_where
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.apart import take_apart, take_injective
from deuteron.analysis.aliasing.overlap import Overlap, Overlaps
from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.written_arguments import read_by, written_by
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.around import loops_around
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.atomic import AtomicKind, AtomicOp, AtomicRMWOp
from deuteron.ir.tt.debug import AssertOp
from deuteron.ir.tt.descriptor import (
    BlockAccess,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    descriptor_of,
)
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import shape_of

Split = int | None  # the axis, or None: whole
Demand = tuple[SSAValue, Split]

# Their order changes nothing but what they give, of which a program that does both at once knows no more.
_COMMUTING = {*AtomicKind} - {AtomicKind.XCHG}


class Unsplittable(Exception):
    """Why something cannot be shared out, with the op."""

    def __init__(self, op: Operation, reason: str):
        super().__init__(reason)
        self.op, self.reason = op, reason


def accessed_tile(op: Operation) -> SSAValue:
    """The tile, or the scalar, whose elements an access or an effect has to do with."""
    if isinstance(op, LoadOp | DescriptorLoadOp | DescriptorGatherOp):
        return op.result
    if isinstance(op, DescriptorStoreOp | DescriptorReduceOp):
        return op.src
    return op.condition if isinstance(op, AssertOp) else op.ptr


def loops_to_wait_in(func: FuncOp, effects: dict[Operation, Split], demands: Iterable[Demand]) -> list[scf.ForOp]:
    """The loops at the end of whose iterations all CTAs wait for each other; raises Unsplittable where that would not
    do. `demands`: what is needed of the tiles that are loaded.
    """
    order = _Order(func)
    stores = [_Access(op, written_by(op), [split]) for op, split in effects.items() if written_by(op)]
    shared = [store for store in stores if store.splits != [None]]
    alone = [store for store in stores if store.splits == [None]]  # what the first CTA does, in its order
    for earlier, later in [*combinations_with_replacement(shared, 2), *product(alone, shared)]:
        order.check(earlier, later, "the program stores to this elsewhere, and its CTAs do not wait for it")
    for op in nested_ops(func):
        if op.regions or not read_by(op) or written_by(op):
            continue
        splits = [effects[op]] if op in effects else [split for value, split in demands if value in op.results]
        for store in stores:
            read = _Access(op, read_by(op), splits)
            order.check(store, read, "the program stores to what is loaded here, and its CTAs do not wait for it")
    return list(order.waiting)


class _Access:
    """A load, store or atomic, with the ways in which the CTAs share its tile out."""

    def __init__(self, op: Operation, targets: Targets, splits: list[Split]):
        self.op, self.targets, self.splits = op, targets, splits
        self.shape = shape_of(accessed_tile(op).type)
        self.loops = list(loops_around(op))

    def is_shared_like(self, other: _Access) -> bool:
        """Whether each CTA does the same part of both; what is whole all CTAs load, and the first stores."""
        is_split = len(self.splits) == 1 and self.splits != [None]
        return is_split and self.splits == other.splits and self.shape == other.shape


class _Order:
    """Looks at two accesses at a time; `waiting` has the loops that are to wait, for what was looked at so far."""

    def __init__(self, func: FuncOp):
        self._known, self._info = TilePolynomials(), AxisInfoAnalysis(func)
        self._overlaps = Overlaps(self._known)
        self.waiting: dict[scf.ForOp, None] = {}

    def check(self, first: _Access, second: _Access, reason: str) -> None:
        """Raise Unsplittable with that reason if CTAs would have to wait within an iteration. On what different
        arguments are for it the kernel relies.
        """
        if _commutes(first.op) and _commutes(second.op):
            return
        if not first.targets.shares(second.targets):
            if not self._are_different(first, second):
                raise Unsplittable(second.op, reason)
            return
        common = [loop for loop in first.loops if loop in second.loops]
        others = {*first.loops, *second.loops} - {*common}
        if first is not second and not self._keep_apart(first, second, others):
            raise Unsplittable(second.op, reason)
        if common and not self._keep_apart(first, second, {*common, *others}):
            if not _are_plain(first, second):  # what TMA stores is not over when an iteration is
                raise Unsplittable(second.op, reason)
            self.waiting[common[0]] = None

    def _are_different(self, first: _Access, second: _Access) -> bool:
        if not (first.is_shared_like(second) and _are_plain(first, second)):
            return take_apart(first.targets, second.targets)
        found, equal = self._overlaps.in_one_array(first.op.ptr, second.op.ptr, {*first.loops, *second.loops})
        tiles = injective_where(self._known, second.op.ptr)
        is_same = found is Overlap.SAME and tiles is not None and first.op.ptr.type == second.op.ptr.type
        used = frozenset([tiles]) - {()} if is_same else frozenset()
        return take_apart(first.targets, second.targets, is_same or found is Overlap.APART, equal, used)

    def _keep_apart(self, first: _Access, second: _Access, past: set[Operation]) -> bool:
        """Whether no CTA touches what another one does, if these loops are in different iterations."""
        if _are_plain(first, second):
            found = self._overlaps(first.op.ptr, second.op.ptr, past)
            is_own = first.is_shared_like(second) and found is Overlap.SAME and self._is_injective(second)
            return is_own or found is Overlap.APART
        return first.is_shared_like(second) and self._are_aligned(first.op, second.op, first.splits[0], past)

    def _is_injective(self, access: _Access) -> bool:
        """Whether no two elements of the tile are in one place: parts of different CTAs."""
        tiles = injective_where(self._known, access.op.ptr)
        return tiles is not None and take_injective(access.targets, frozenset([tiles]) - {()})

    def _are_aligned(self, first: Operation, second: Operation, split: Split, past: set[Operation]) -> bool:
        """Whether blocks of one descriptor begin, along the axis of the CTAs, at one place or at multiples of their
        size.
        """
        if not (isinstance(first, BlockAccess) and isinstance(second, BlockAccess)):
            return False
        made = descriptor_of(first)
        if made.attributes != descriptor_of(second).attributes or made.operands != descriptor_of(second).operands:
            return False
        shape = shape_of(made.result.type.tile)
        place = split + len(shape) - len(shape_of(accessed_tile(first).type))
        indices = first.indices[place], second.indices[place]
        is_one = indices[0] is indices[1] and not any(loop.is_ancestor(indices[0].owner) for loop in past)
        return is_one or all(self._info.of(index).divisibility[0] % shape[place] == 0 for index in indices)


def _are_plain(*accesses: _Access) -> bool:
    return all(isinstance(access.op, LoadOp | StoreOp | AtomicOp) for access in accesses)


def _commutes(op: Operation) -> bool:
    return isinstance(op, DescriptorReduceOp) or (isinstance(op, AtomicRMWOp) and op.kind.value.data in _COMMUTING)

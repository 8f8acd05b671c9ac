"""Where threads have to wait before they touch global memory, because the program touched it before through others.

    tt.store %p, %x            a thread stores x[i] at p + i
                               all threads wait
    %y = tt.load %q            a thread loads p + 255 - i, which another one stored

What a program stores it loads again, and what it loaded stays what it was, as if its ops were done one after the other.
The analysis follows the accesses since the last barrier, as that of shared memory does (shared_hazards.py). An access
has to wait for an earlier one through the same argument, one of them a store, unless

    each thread touches what it touched      the same addresses, all different, in the same layout (overlap.py)
    the addresses are apart                  or columns of the same rows (row_tiles.py) that are, or quotients,
                                             remainders and masks say so (differences.py)
    both are copies by TMA                   which wait for each other where they are made (lower_descriptors.py)
    both are atomics of one kind             which come in any order

Scalars are loaded by all threads, and stored by one; so is an element that several threads hold. What other programs do
is the kernel's affair. Different arguments are other memory, on which the kernel then relies (apart_in_order.py), but
where it is compiled for arguments that overlap. A loop waits before its first iteration where any of its accesses
would have to. Each access is compared with those that are pending. Where these are many, threads wait without being
asked to: that takes them less than the accesses did, and the analysis time by their number, not by its square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from functools import cache, partial

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.steps import injective_where
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.apart import can_be_apart, take_injective
from deuteron.analysis.aliasing.apart_in_order import InOrder, Same
from deuteron.analysis.aliasing.differences import Differences
from deuteron.analysis.aliasing.overlap import Overlap, Overlaps
from deuteron.analysis.aliasing.points_to import Targets, points_to
from deuteron.analysis.aliasing.same_offsets import same_offsets
from deuteron.analysis.dataflow import Forward
from deuteron.analysis.shared_memory.shared_hazards import BY_ONE
from deuteron.analysis.stored_only import is_stored_only
from deuteron.ir.around import Loop, loops_around
from deuteron.ir.effects import GLOBAL, READ, WRITE, Effect, Kind, own_effects
from deuteron.ir.nested import nested_ops, of_kind
from deuteron.ir.tt.atomic import AtomicKind, AtomicOp, AtomicRMWOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.types import is_tile
from deuteron.layout.linear import WARP

# Accesses since the last barrier. 800 through one argument took 3 s to compare with each other.
MOST_PENDING = 128
REGIONS = (scf.ForOp, scf.WhileOp, scf.IfOp, WarpSpecializeOp)


@dataclass(frozen=True)
class Access:
    """What an op reads or writes. `past`: the loops of which it was in an earlier iteration, or that are over."""

    kind: Kind
    op: Operation
    pointer: SSAValue | None
    targets: Targets
    past: frozenset[Operation] = frozenset()


Pending = frozenset[Access]


class GlobalHazards(Forward[Access]):
    """`needs_barrier`: the ops before which all threads have to wait, besides those before and within which they do."""

    def __init__(self, func: FuncOp, waits_before: Set[Operation], waits_within: Set[Operation]):
        super().__init__()
        self.needs_barrier: set[Operation] = set()
        self._waits_before, self._waits_within = waits_before, waits_within
        self._known = TilePolynomials()
        self._injective_where = cache(partial(injective_where, self._known))
        self._overlaps, self._in_order = Overlaps(self._known), InOrder()
        self._differences = Differences(func)
        ops = nested_ops(func)
        self._accesses = {op: found for op in ops if (found := list(_accesses_of(op)))}
        self._changing = {*self._accesses, *waits_before, *waits_within, *of_kind(ops, (BarrierOp, *REGIONS))}
        self._settled: dict[tuple[Operation, int], Pending] = {}  # by loop, and how many barriers there are
        if self._may_conflict(_all_of(self._accesses.values())):
            self._block(func.body.block, frozenset())
            self._in_order.take_apart()

    def _may_conflict(self, accesses: list[Access]) -> bool:
        """Whether anything is written that is accessed otherwise, through whichever arguments."""
        written = [access for access in accesses if access.kind is WRITE]
        if len(written) == len(accesses) == 1:
            return any(loops_around(written[0].op))  # it may come after itself
        return bool(written)

    def _matters(self, op: Operation) -> bool:
        return op in self._changing

    def _op(self, op: Operation, pending: Pending) -> Pending:
        if isinstance(op, BarrierOp) or op in self._waits_before or op in self.needs_barrier:
            pending = frozenset()
        if isinstance(op, Loop):
            return self._loop(op, pending)
        if isinstance(op, REGIONS):
            return self._any_of(op.regions, frozenset() if isinstance(op, WarpSpecializeOp) else pending)
        return self._access(op, pending)

    def _loop(self, loop: Loop, pending: Pending) -> Pending:
        """With the barriers so far it begins with what it ended with: loops around it only add to what is pending, and
        would follow it as often as 2 to the power of their number.
        """
        inside = _all_of(self._accesses.get(op, ()) for op in nested_ops(loop))
        if len(pending) >= MOST_PENDING or self._any_conflict(inside, pending):
            self.needs_barrier.add(loop)
            pending = frozenset()
        count = len(self.needs_barrier)
        pending = self._stable(loop, pending | self._settled.get((loop, count), frozenset()))
        if len(self.needs_barrier) == count:
            self._settled[loop, count] = pending
        return self._carried(loop, self._at_end(loop, pending))

    def _stable(self, loop: Loop, facts: Pending) -> Pending:
        """All that is pending each time: barriers are placed on the way, also where there is too much of it."""
        while not (following := self._carried(loop, self._body(loop, facts))) <= facts:
            facts |= following
        return facts

    def _carried(self, loop: Loop, pending: Pending) -> Pending:
        """The accesses of a loop were in an earlier iteration now, or it is over."""
        return frozenset(
            replace(access, past=access.past | {loop}) if loop.is_ancestor(access.op) else access for access in pending
        )

    def _access(self, op: Operation, pending: Pending) -> Pending:
        accesses = self._accesses.get(op, ())
        if len(pending) >= MOST_PENDING or self._any_conflict(accesses, pending):
            self.needs_barrier.add(op)
            pending = frozenset()
        for one in accesses:
            for other in pending:
                self._rely(one, other)
        return frozenset() if op in self._waits_within else pending.union(accesses)

    def _any_conflict(self, later: Iterable[Access], earlier: Pending) -> bool:
        return any(self._conflict(one, other) for one in later for other in earlier)

    def _conflict(self, later: Access, earlier: Access) -> bool:
        if WRITE not in (later.kind, earlier.kind) or can_be_apart(later.targets, earlier.targets):
            return False
        if _are_alike(later.op, earlier.op):
            return False
        if not _is_plain(later) or not _is_plain(earlier):
            return not (isinstance(later.op, BY_ONE) and isinstance(earlier.op, BY_ONE))
        found = self._overlaps(earlier.pointer, later.pointer, earlier.past)
        if found is Overlap.MAY:
            return not (self._are_in_rows(later, earlier) or self._are_told_apart(later, earlier))
        return found is Overlap.SAME and not self._by_same_threads(later, earlier)

    def _are_in_rows(self, later: Access, earlier: Access) -> bool:
        """Whether they touch columns of the same rows, each by the same thread, or different ones."""
        if not all(
            isinstance(access.op, LoadOp | StoreOp) and is_tile(access.pointer.type) for access in (later, earlier)
        ):
            return False
        found, tiles = self._overlaps.in_rows(earlier.op, later.op, earlier.past)
        is_same = found is Overlap.SAME and _are_by_same_threads(later, earlier, _is_by_several)
        return (found is Overlap.APART or is_same) and take_injective(later.targets, tiles)

    def _are_told_apart(self, later: Access, earlier: Access) -> bool:
        """Whether quotients and remainders say that no element is touched but by the thread that touched it then."""
        if not all(isinstance(one.op, LoadOp | StoreOp) and is_tile(one.pointer.type) for one in (later, earlier)):
            return False
        found = self._differences.overlap(earlier.op, later.op, earlier.past)
        if found is not Overlap.SAME:
            return found is Overlap.APART
        is_injective = self._differences.overlap(later.op, later.op, ()) is Overlap.SAME
        return is_injective and _are_by_same_threads(later, earlier, _is_by_several)

    def _rely(self, later: Access, earlier: Access) -> None:
        """Rely on what two accesses through different arguments touch without anybody having to wait."""
        if WRITE not in (later.kind, earlier.kind) or not can_be_apart(later.targets, earlier.targets):
            return
        if _are_alike(later.op, earlier.op) or isinstance(later.op, BY_ONE) or isinstance(earlier.op, BY_ONE):
            return  # of copies by TMA `tma_accesses.py` knows
        self._in_order.note(later.targets, earlier.targets, lambda: self._if_same(later, earlier))

    def _if_same(self, later: Access, earlier: Access) -> Same | None:
        """What has to hold for threads not to wait for each other in one array; None: they wait."""
        if not _is_plain(later) or not _is_plain(earlier):
            return None
        found, equal = self._overlaps.in_one_array(earlier.pointer, later.pointer, earlier.past)
        if found is Overlap.APART:
            return Same(equal)
        if not is_tile(later.pointer.type):
            return Same(equal) if found is Overlap.SAME and _is_by_one(later) and _is_by_one(earlier) else None
        if not _are_by_same_threads(later, earlier, _is_used_by_several):
            return None
        if found is Overlap.SAME and self._injective_where(later.pointer) == ():
            return Same(equal)
        return None if earlier.past else self._if_injective(later, earlier)

    def _if_injective(self, later: Access, earlier: Access) -> Same | None:
        """What has to hold for two tiles to be one, each element of which is at a place of its own."""
        equal = same_offsets(earlier.pointer, later.pointer)
        steps = self._injective_where(later.pointer)
        return None if equal is None or steps is None else Same(equal, frozenset({steps} if steps else ()))

    def _by_same_threads(self, later: Access, earlier: Access) -> bool:
        """Whether each element is touched by the thread that touched it then, and each thread touches others."""
        if not is_tile(later.pointer.type):
            return _is_by_one(later) and _is_by_one(earlier)
        return _are_by_same_threads(later, earlier, _is_by_several) and self._injective_where(later.pointer) == ()


def _accesses_of(op: Operation) -> Iterable[Access]:
    for effect in own_effects(op):
        if effect.resource is GLOBAL and effect.kind in (READ, WRITE):
            yield _access_of(op, effect)


def _access_of(op: Operation, effect: Effect) -> Access:
    return Access(effect.kind, op, effect.value, points_to(effect.value))


def _all_of(found: Iterable[Iterable[Access]]) -> list[Access]:
    return [access for accesses in found for access in accesses]


def _is_plain(access: Access) -> bool:
    """Whether threads access what their registers say."""
    return isinstance(access.op, LoadOp | StoreOp | AtomicOp) and access.pointer is not None


def _are_by_same_threads(later: Access, earlier: Access, by_several: Callable[[Access], bool]) -> bool:
    """Whether the thread that touches an element of a tile touched the element at its place of the earlier one."""
    by_one = _is_by_one(later) and _is_by_one(earlier)
    is_alike = later.pointer.type == earlier.pointer.type
    return is_alike and (by_one or not (by_several(later) or by_several(earlier)))


def _is_by_one(access: Access) -> bool:
    """Whether one thread does for all what several hold."""
    return not isinstance(access.op, LoadOp)


def _is_by_several(access: Access) -> bool:
    """Whether threads of several warps load the same element."""
    if not isinstance(access.op, LoadOp):
        return False
    type = access.pointer.type
    return not is_tile(type) or layout_of(type).free_bits()[WARP] != 0


def _is_used_by_several(access: Access) -> bool:
    """Whether it makes a difference what each of them gets."""
    return _is_by_several(access) and not is_stored_only(access.op)


def _are_alike(later: Operation, earlier: Operation) -> bool:
    """Whether they are atomics of which nobody can tell which came first."""
    both = (later, earlier)
    if any(not isinstance(op, AtomicRMWOp) or op.result.first_use is not None for op in both):
        return False
    return later.kind == earlier.kind and later.kind.value.data != AtomicKind.XCHG

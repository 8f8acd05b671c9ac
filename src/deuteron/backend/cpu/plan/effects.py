"""What ops do to the user's memory, which decides their order. What each op does, `ir/effects.py` says.

tt.load(%p)            reads
tt.store(%q, %y)       writes
ttg.barrier, tt.print  count as writes: no load moves across them
scf.for ...            what its body does
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.addresses.steps import injective_where
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.apart import Tiles, take_apart, take_injective
from deuteron.analysis.aliasing.overlap import Overlap, Overlaps
from deuteron.analysis.aliasing.points_to import Targets, points_to
from deuteron.analysis.aliasing.same_offsets import Alike, same_offsets
from deuteron.analysis.aliasing.written_arguments import touched_arguments
from deuteron.ir.effects import GLOBAL, READ, WRITE, Effect, effects_inside, effects_of, own_effects
from deuteron.ir.tt.memory import LoadOp, StoreOp

NOT_ALIKE: tuple[Alike | None, Tiles] = (None, frozenset())


def writes(op: Operation) -> bool:
    """Whether the op, or one inside it, writes memory or orders memory accesses."""
    return any(effect.kind is not READ for effect in effects_of(op) if effect.resource is GLOBAL)


def reads(op: Operation) -> bool:
    """Whether the op, or one inside it, accesses memory."""
    return any(effect.resource is GLOBAL for effect in effects_of(op))


def only_loads_and_stores(function: Operation) -> bool:
    """Whether all that a function does to memory is to load and store, in no order with other programs."""
    return all(_is_plain(op, effect) for op, effect in effects_inside(function))


def _is_plain(op: Operation, effect: Effect) -> bool:
    """Whether an effect is none on memory, or that of a load or store which nothing is in order with."""
    return effect.resource is not GLOBAL or (isinstance(op, LoadOp | StoreOp) and effect.value is not None)


class Places:
    """Where pointers may point, remembered. What is taken to be apart, the kernel relies on (analysis/aliasing).

    Accesses at one index of a nest are `in_step`. Elements that are touched in step through pointers with the same
    offsets, none of which comes twice, are in no other order than the accesses: nothing stands against one nest.

        store(p + i, load(p + i) + 1)               in step
        store(p + i % 8, load(p + i % 8) + 1)       the first eight would be loaded again after they are stored
        store(p + 2 * i), store(p + 2 * i + 1)      never the same element, at whatever indices

    Where rows are a distance apart which is only known at run time the kernel relies on their not overlapping.
    """

    def __init__(self) -> None:
        self._known: dict[SSAValue, Targets] = {}
        self._polynomials = TilePolynomials()
        self._overlaps = Overlaps(self._polynomials)

    def may_overlap(self, first: SSAValue, second: SSAValue, in_step: bool) -> bool:
        """Whether an element of one may be an element of the other that is touched at another index."""
        alike, tiles = self._alike(first, second) if in_step else NOT_ALIKE
        targets = self._targets(first)
        if first is second and alike is not None and take_injective(targets, tiles):
            return False
        if self._overlaps(first, second, ()) is Overlap.APART:
            return False
        return not take_apart(targets, self._targets(second), alike is not None, alike or frozenset(), tiles)

    def may_write(self, op: Operation, pointer: SSAValue, in_step: bool) -> bool:
        """Whether the op itself may write where the pointer points, but for the element that is touched with it."""
        if isinstance(op, StoreOp):
            return self.may_overlap(op.ptr, pointer, in_step)
        return not take_apart(touched_arguments(own_effects(op), WRITE), self._targets(pointer))

    def may_change(self, writer: Operation, load: LoadOp) -> bool:
        """Whether what is loaded may be something else after the writer. Two arguments with the same offsets are not
        taken to be apart: a launch may give one array for both, to compute in place.
        """
        if not isinstance(writer, StoreOp) or same_offsets(writer.ptr, load.ptr) is not None:
            return True
        return self.may_overlap(writer.ptr, load.ptr, in_step=False)

    def _alike(self, first: SSAValue, second: SSAValue) -> tuple[Alike | None, Tiles]:
        """What has to be equal for both to be at the same elements, each of them once, for which tiles."""
        steps = injective_where(self._polynomials, first)
        return NOT_ALIKE if steps is None else (same_offsets(first, second), frozenset({steps} if steps else ()))

    def _targets(self, pointer: SSAValue) -> Targets:
        if pointer not in self._known:
            self._known[pointer] = points_to(pointer)
        return self._known[pointer]


class WritesBetween:
    """Finds what writes memory between two ops of a block."""

    def __init__(self) -> None:
        self._counts: dict[Operation, int] = {}
        self._writers: dict[Block, list[Operation]] = {}

    def __call__(self, first: Operation, second: Operation) -> list[Operation]:
        block = first.parent_block()
        if block not in self._writers:
            self._count(block)
        return self._writers[block][self._counts[first] : self._counts[second]]

    def _count(self, block: Block) -> None:
        """The writing ops, and for each op their number before it."""
        writers = self._writers[block] = []
        for op in block.ops:
            self._counts[op] = len(writers)
            if writes(op):
                writers.append(op)

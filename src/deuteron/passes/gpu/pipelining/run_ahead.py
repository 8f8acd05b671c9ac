"""What a loop does ahead of its iterations: it computes addresses and masks of loads, and fills rings.

    ^bb0(%k: i32, %p: tile of pointers):      Ahead(loop, [%p, %mask]): addptr, cmpi, the splats; carried %p
      %mask = arith.cmpi %k, ...
      %x = tt.load %p, %mask
      %q = tt.addptr %p, %step                iteration k + 2:  clone with %k -> %k + 2 * step, %p -> what it is then

Nothing in it may have an effect: it runs for iterations that never come, whose loads are masked off. What a load gives
is there if the loop carries it already as many iterations ahead (prefetch_loads.py).

    ^bb0(%k: i32, %row: i32, %row1: i32, %row2: i32):     Ahead(loop, [%p], 2): iteration k + 2:  clone with %row2
      %p = tt.addptr %x, %row
      "scf.yield"(%row1, %row2, %next)

    ^bb0(%k: i32, %last: i32):                          RingAhead(..., 3 slots, lag 0), which fills 2 iterations ahead
      %use = "ttg.ring_next"(%last) <{slots = 3}>       the slot that this iteration reads
      ... wait for it
      ... fill %last for iteration k + 2                that of the iteration before
      %m = "ttg.memdesc_index"(%buffers, %use)          in the place of the load
      "scf.yield"(%use)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.arith import AHEAD, CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_speculatable
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttng.mbarrier import WaitBarrierOp
from deuteron.ir.types import bit_width_of, i1, i32
from deuteron.passes.carried_values import has_iteration, new_argument
from deuteron.passes.gpu.rings.buffered_loads import BufferedLoad
from deuteron.passes.gpu.rings.ring import Position, Ring, read_from
from deuteron.passes.rewrite import Values


class Ahead:
    """The ops of a loop's body that some values need `distance` iterations ahead, and the values among those it carries
    that these need: what is carried by the loop that much earlier already is taken from there, the others are carried
    once more. Loads are where it ends; without a distance it is there to be looked at.
    """

    def __init__(self, loop: scf.ForOp, values: Iterable[SSAValue], distance: int | None = None):
        self._block, self._distance = loop.body.block, distance
        self._needed: set[Operation] = set()
        self._arguments: set[int] = set()
        self._waiting: set[int] = set()
        self._pending = list(values)
        while self._pending:
            self._visit(self._pending.pop())
        self.ops = [op for op in self._block.ops if op in self._needed]
        self.carried = sorted(self._arguments)

    @property
    def loads(self) -> list[LoadOp]:
        """Those of the body itself; a loop that is rewritten has none left."""
        return [op for op in self.ops if isinstance(op, LoadOp)]

    @property
    def obstacle(self) -> str | None:
        """What keeps it, but for its loads, from running before its iteration, in words."""
        others = (op for op in self.ops if not isinstance(op, LoadOp))
        return next((f"its address depends on {op.name}" for op in others if not is_speculatable(op)), None)

    def _visit(self, value: SSAValue) -> None:
        owner = value.owner
        if owner is self._block:
            if value.index:
                self._visit_carried(value.index - 1)
            return
        op = self._ancestor(owner)
        if op is not None and op not in self._needed:
            self._needed.add(op)
            if not isinstance(op, LoadOp):
                self._pending += [operand for inner in nested_ops(op) for operand in inner.operands]

    def _visit_carried(self, index: int) -> None:
        if self._distance is not None and self._later(index, self._distance) is not None:
            self._waiting.add(index)
        elif index not in self._arguments:
            self._arguments.add(index)
            self._pending.append(self._block.last_op.operands[index])

    def _later(self, index: int, iterations: int) -> int | None:
        """Which carried value is already what another one will be so many iterations later."""
        for _ in range(iterations):
            following = self._block.last_op.operands[index]
            if following.owner is not self._block or not following.index:
                return None
            index = following.index - 1
        return index

    def _ancestor(self, owner: Operation | Block) -> Operation | None:
        """The op of the loop's body that an op or a block is in; None outside of it."""
        return self._block.find_ancestor_op_in_block(owner.parent_op() if isinstance(owner, Block) else owner)

    def clone_before(
        self, b: Builder, loop: scf.ForOp, number: int, iteration: SSAValue, carried: Sequence[SSAValue]
    ) -> Values:
        """Compute it all before the loop, for the iteration of this number, which comes before the distance; `carried`
        are the values, of those in `self.carried`, that enter it.
        """
        waiting = [loop.iter_args[self._later(index, number)] for index in self._waiting]
        return self._clone(b, iteration, carried, waiting)

    def clone_inside(self, b: Builder, iteration: SSAValue, carried: Sequence[SSAValue]) -> Values:
        """Compute it all in the loop, for the iteration that is the distance later."""
        waiting = [self._block.args[1 + self._later(index, self._distance)] for index in self._waiting]
        return self._clone(b, iteration, carried, waiting)

    def _clone(
        self, b: Builder, iteration: SSAValue, carried: Sequence[SSAValue], waiting: Sequence[SSAValue]
    ) -> Values:
        values = Values({self._block.args[0]: iteration})
        arguments, given = [*self.carried, *self._waiting], [*carried, *waiting]
        values.update({self._block.args[index + 1]: value for index, value in zip(arguments, given, strict=True)})
        for op in self.ops:
            b.location = op.location
            b.insert(op.clone(values))
        return values

    def entering(self, loop: scf.ForOp) -> list[SSAValue]:
        """The carried values that enter the first iteration."""
        return [loop.iter_args[index] for index in self.carried]

    def new_arguments(self, loop: scf.ForOp) -> list[SSAValue]:
        """Arguments of the loop's body for what it carries ahead."""
        likes = [self._block.args[index + 1] for index in self.carried]
        return [new_argument(loop, like.type, like.name_hint) for like in likes]

    def following(self, values: Values) -> list[SSAValue]:
        """The carried values that enter the iteration after one that was cloned."""
        return [values.of(self._block.last_op.operands[index]) for index in self.carried]


@dataclass(frozen=True)
class Iteration:
    """One of a loop's first iterations, as is needed before the loop; `runs` is None where it certainly comes.

    The index is the sum of its terms also where that wraps: it is a multiple of what they are multiples of.
    """

    index: SSAValue
    runs: SSAValue | None

    @classmethod
    def of(cls, b: Builder, loop: scf.ForOp, number: int) -> Iteration:
        if not number:
            return cls(loop.lb, has_iteration(b, loop))
        lead = _lead(b, loop, number)
        index = b.value(arith.AddiOp(loop.lb, lead))
        first, step = constant_value(loop.lb), constant_value(loop.step)
        if first is None or step is None:
            return cls(index, b.value(CmpIOp(loop.lb, _before_end(b, loop, lead, number), "slt")))
        if first + number * step >= 1 << bit_width_of(index.type) - 1:
            return cls(index, b.constant(False, i1))
        index = b.constant(first + number * step, index.type)
        return cls(index, _comes(b, index, loop.ub))


def _comes(b: Builder, index: SSAValue, end: SSAValue) -> SSAValue | None:
    number, bound = constant_value(index), constant_value(end)
    if number is not None and bound is not None and number < bound:
        return None
    return b.value(CmpIOp(index, end, "slt"))


def lead_of(loop: scf.ForOp, b: Builder, inside: Builder, distance: int) -> tuple[SSAValue, SSAValue]:
    """The iteration that many later, and whether it comes; what does not change is computed before the loop."""
    iteration = loop.body.block.args[0]
    lead = _lead(b, loop, distance)
    runs = inside.value(CmpIOp(iteration, _before_end(b, loop, lead, distance), "slt"))
    later = arith.AddiOp(iteration, lead)
    later.attributes[AHEAD] = UnitAttr()
    return inside.value(later), runs


def _lead(b: Builder, loop: scf.ForOp, distance: int) -> SSAValue:
    """How far the iteration that many later is. A number where that is known and no overflow: `ranges` asks for it."""
    step, type = constant_value(loop.step), loop.step.type
    if step is not None and 0 <= step * distance < 1 << bit_width_of(type) - 1:
        return b.constant(step * distance, type)
    return b.value(arith.MuliOp(loop.step, b.constant(distance, type)))


def _before_end(b: Builder, loop: scf.ForOp, lead: SSAValue, distance: int) -> SSAValue:
    """The end less the lead; where that overflows the lowest number, below which is no iteration. In a loop that begins
    with no negative number, and has an iteration, it does not.
    """
    if not distance:
        return loop.ub
    first, step = constant_value(loop.lb), constant_value(loop.step)
    fits = step is not None and step * distance < 1 << bit_width_of(lead.type) - 1
    if fits and first is not None and first >= 0:
        return b.value(arith.SubiOp(loop.ub, lead))
    if fits:
        return _lowered(b, loop.ub, lead)
    # The step is known at run time, or the lead is beyond the type of the index.
    return reduce(lambda end, _: _lowered(b, end, loop.step), range(distance), loop.ub)


def _lowered(b: Builder, end: SSAValue, by: SSAValue) -> SSAValue:
    """The end less a number; the lowest number where that overflows, or where the number is not positive."""
    last = b.value(arith.SubiOp(end, by))
    lowest = b.constant(-(1 << bit_width_of(end.type) - 1), end.type)
    return b.value(SelectOp(b.value(CmpIOp(last, end, "slt")), last, lowest))


def without_first(b: Builder, loop: scf.ForOp) -> tuple[SSAValue, SSAValue]:
    """The bounds of a loop that begins with the second iteration. Where the index of that would wrap, the end is the
    lowest number, below which is no iteration.
    """
    begin = b.value(arith.AddiOp(loop.lb, loop.step))
    lowest, highest = -(1 << bit_width_of(begin.type) - 1), (1 << bit_width_of(begin.type) - 1) - 1
    first, step = constant_value(loop.lb), constant_value(loop.step)
    if first is not None and step is not None and first + step <= highest:
        return b.constant(first + step, begin.type), loop.ub
    fits = b.value(CmpIOp(loop.lb, begin, "slt"))
    return begin, b.value(SelectOp(fits, loop.ub, b.constant(lowest, begin.type)))


class RingAhead:
    """A ring that a loop fills ahead of the iterations that read it.

    `lag`: how many iterations after their own the loads are read. Their slots are kept that long, and filled so many
    iterations less ahead. What the loop carries is the position that an iteration fills anew: the one before that which
    it reads, or before those which iterations that lag read. `most`: how many iterations there are at most, if known.
    """

    def __init__(
        self, b: Builder, loop: scf.ForOp, loads: Sequence[BufferedLoad], num_slots: int, lag: int, most: int | None
    ):
        self._loop, self.lag, self._most = loop, lag, most
        self._loads = [one.load for one in loads]
        self._distance = num_slots - 1 - lag
        self._ahead = Ahead(loop, [value for load in self._loads for value in load.operands], self._distance)
        self.ring = Ring(b, loads, num_slots)
        self._entering = self._ahead.entering(loop)
        self.following: list[SSAValue] = []

    def fill(self, b: Builder, iterations: Sequence[Iteration]) -> list[SSAValue]:
        """Fill a slot for the last of the first iterations, or for the one before that where the ring lags."""
        index = len(iterations) - 1 - self.lag
        if index < 0 or self._never_comes(index):
            return []
        values = self._ahead.clone_before(b, self._loop, index, iterations[index].index, self._entering)
        self._entering = self._ahead.following(values)
        b.location = self._loop.location
        return self.ring.fill(b, self._loads, self.ring.position(b, index), values, iterations[index].runs)

    def _never_comes(self, index: int) -> bool:
        """Whether there certainly is no iteration of such a number."""
        return self._most is not None and index >= self._most

    def enter(self, b: Builder) -> list[SSAValue]:
        """What enters the loop: that which is carried ahead of its iteration, and the position to fill."""
        return [*self._entering, *self.ring.position(b, -1 - self.lag)]

    def find_positions(self, top: Builder) -> None:
        """The position to fill, and the one to read, at the top of an iteration.

        The second is steps from the first, also in a ring that lags: so the analysis of hazards tells them apart, and
        one barrier orders the copies of all rings.
        """
        self._carried = self._ahead.new_arguments(self._loop)
        names = ("freed", "phase") if self.ring.full is not None else ("freed",)
        self._freed: Position = tuple(new_argument(self._loop, i32, name) for name in names)
        self._next = self._read = self.ring.following(top, self._freed)
        for _ in range(self.lag):
            self._read = self.ring.following(top, self._read)
        self._slot = self.ring.slot(top, self._read)

    def wait(self, b: Builder) -> WaitBarrierOp:
        """Wait for the slot that is read, where it has an mbarrier."""
        return self.ring.wait(b, self._read, self._slot)

    def fill_ahead(self, before: Builder, b: Builder) -> list[SSAValue]:
        """Fill the slot that is not read any more; gives the tokens of the copies."""
        if self._never_comes(self._distance):
            self.following = [*self._carried, *self._next]
            return []
        iteration, runs = lead_of(self._loop, before, b, self._distance)
        values = self._ahead.clone_inside(b, iteration, self._carried)
        self.following = [*self._ahead.following(values), *self._next]
        b.location = self._loop.location
        return self.ring.fill(b, self._loads, self._freed, values, runs)

    def read(self) -> None:
        """Let the users of the loads read the slot that is full."""
        for load, buffer in zip(self._loads, self._slot, strict=True):
            read_from(buffer, load, Builder.before(load))

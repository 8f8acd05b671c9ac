"""Makes a loop of code that repeats itself, where it is long: what is left of `tl.static_range(64)`.

    %1 = f(%0, 3)                     %r = scf.for %i = 0 to 64 step 1 iter_args(%x = %0)
    %2 = f(%1, 5)             ->        %c = %i * 2 + 3
    ...                                 %y = f(%x, %c)
    %64 = f(%63, 129)                   scf.yield %y

Time to compile goes by the number of ops: 64 iterations that are unrolled take passes, LLVM and ptxas as long as 64
kernels. What is short stays as it was written: its constants fold, and its loads go out together; so do few iterations,
unless they are very long. If what follows needs of the last iteration what no later one would, that one stays behind
the loop. Inner loops come first.

Where an iteration differs in more than whole numbers that are a step apart (an `if` on the index, a range, a value of
two iterations before) it is in no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from deuteron.analysis.repeated_code import Iterations, Keys, Place, Run, Slot, find_repeats
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp, SIToFPOp, TruncIOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import bit_width_of, element_type_of, i32, is_integer, is_tile, num_elements_of, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase
from deuteron.passes.tile.unroll_loops import HINT

# Ops of a function, one on a tile as many as threads of four warps have elements. Below, compiles were seen to take a
# second or two; from there on they grow with the ops. What repeats itself becomes a loop if it is that share of it.
LEAST_COST, LEAST_SHARE = 4000, 1 / 8
ELEMENTS_OF_AN_OP = 128
LEAST_ITERATIONS = 8
# Fewer, if a loop saves so many ops: six tiles of 128x128 through loops, an exponential and atomics, twice, take eight
# seconds, and a third of that in loops. Not measured where they run.
FEWEST_ITERATIONS, LEAST_SAVED = 3, 16_000


def _cost(op: Operation) -> int:
    return sum(max([1, *(num_elements_of(v.type) // ELEMENTS_OF_AN_OP for v in one.results)]) for one in nested_ops(op))


@dataclass(frozen=True)
class RollLoops(Optimisation):
    """Rolls repeated code into loops."""

    name = "roll-loops"

    least_cost: int = LEAST_COST
    least_saved: int = LEAST_SAVED

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_in(op):
            if sum(map(_cost, function.regions[0].block.ops)) >= self.least_cost:
                self._block(function.regions[0].block)

    def _block(self, block: Block) -> None:
        for op in list(block.ops):
            for region in op.regions if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp) else ():
                for inner in region.blocks:
                    self._block(inner)
        while self._roll_first(block):
            pass

    def _roll_first(self, block: Block) -> bool:
        """Roll the shortest iterations that repeat themselves."""
        ops, keys = list(block.ops), Keys()
        costs = list(map(_cost, ops))
        fewest = FEWEST_ITERATIONS if sum(costs) > self.least_saved else LEAST_ITERATIONS
        if len(ops) < fewest:
            return False
        for repeat in find_repeats([keys.of(op) for op in ops], fewest):
            cost = sum(costs[repeat.begin : repeat.end])
            if cost < LEAST_SHARE * self.least_cost:
                continue
            iterations = Iterations(repeat, ops)
            for run in iterations.runs(self._least_iterations(cost / repeat.count)):
                if _is_local(iterations, run):
                    _Roll(iterations, run)
                    return True
        return False

    def _least_iterations(self, cost: float) -> float:
        """How many of this cost become a loop: so many that the loop saves much, if they are few."""
        return min(LEAST_ITERATIONS, max(FEWEST_ITERATIONS, 1 + self.least_saved / cost))


def _is_local(iterations: Iterations, run: Run) -> bool:
    """Whether of what all but the last iteration give only they and the one after them make use."""
    return all(
        iterations.of_op.get(use.operation) in (number, number + 1)
        for number in range(run.first, run.last)
        for op in iterations.outer[number]
        for result in op.results
        for use in result.uses
    )


class _Roll:
    """Makes a loop of a run. A value is carried for each place that the next iteration uses, once for each of the
    values that the first one has there.
    """

    def __init__(self, iterations: Iterations, run: Run):
        self._iterations, self._run = iterations, run
        first = iterations.ops[run.first]
        self._carried: dict[tuple[Place, SSAValue], list[Slot]] = {}
        for slot, place in run.carried.items():
            self._carried.setdefault((place, first[slot.op].operands[slot.index]), []).append(slot)
        stays = not self._is_done_at_end()
        loop = self._loop(run.last - run.first + (0 if stays else 1))
        self._after(loop, stays)
        for number in range(run.last if not stays else run.last - 1, run.first, -1):
            for op in reversed(iterations.outer[number]):
                erase(op)

    def _is_done_at_end(self) -> bool:
        """Whether of the last iteration what follows needs only what it would give to a next one."""
        places = {place for place, _ in self._carried}
        last = self._run.last
        return all(
            self._iterations.of_op.get(use.operation) == last or self._iterations.place_of(result)[1] in places
            for op in self._iterations.outer[last]
            for result in op.results
            for use in result.uses
        )

    def _loop(self, count: int) -> scf.ForOp:
        """The first iteration, in a loop."""
        number, ops = self._run.first, self._iterations.outer[self._run.first]
        b = Builder.before(ops[0])
        bounds = [b.constant(bound, i32) for bound in (0, count, 1)]
        block = Block(arg_types=[i32, *(init.type for _, init in self._carried)])
        loop = b.insert(scf.ForOp(*bounds, [init for _, init in self._carried], Region(block)))
        loop.attributes[HINT] = IntegerAttr(1, i32)  # or it would be unrolled again
        block.args[0].name_hint = "iteration"
        self._name(block.args[1:])
        for op in ops:
            op.detach()
            block.add_op(op)
        self._use(number, block.args[1:])
        yielded = [self._iterations.value(number, place) for place, _ in self._carried]
        Builder.at_end(block, loop.location).insert(scf.YieldOp(*yielded))
        for index, step in self._run.steps.items():  # last: what is yielded may be such a constant
            _count(self._iterations.ops[number][index], step, block.args[0])
        return loop

    def _name(self, arguments: Sequence[SSAValue]) -> None:
        for argument, (place, init) in zip(arguments, self._carried, strict=True):
            argument.name_hint = init.name_hint or self._iterations.value(self._run.first, place).name_hint

    def _use(self, number: int, values: Sequence[SSAValue]) -> None:
        """Give an iteration what the one before it gave."""
        ops = self._iterations.ops[number]
        for value, slots in zip(values, self._carried.values(), strict=True):
            for slot in slots:
                ops[slot.op].operands[slot.index] = value

    def _after(self, loop: scf.ForOp, stays: bool) -> None:
        if stays:
            self._use(self._run.last, loop.results)
            return
        for (place, _), result in zip(self._carried, loop.results, strict=True):
            given = self._iterations.value(self._run.last, place)
            for use in [use for use in given.uses if self._iterations.of_op.get(use.operation) != self._run.last]:
                use.operation.operands[use.index] = result


def _count(constant: arith.ConstantOp, step: int, iteration: SSAValue) -> None:
    """Replace a constant by one that is a step more in each iteration."""
    b, result = Builder.before(constant), constant.results[0]
    element = element_type_of(result.type)
    type = element if is_integer(element) else i32
    moved = b.value(arith.MuliOp(_as_integer(b, iteration, type), b.constant(step, type)))
    value = b.value(arith.AddiOp(moved, b.constant(int(constant_value(result)), type)))
    value = value if is_integer(element) else b.value(SIToFPOp(value, element))
    result.replace_all_uses_with(b.value(SplatOp(value, shape_of(result.type))) if is_tile(result.type) else value)
    erase(constant)


def _as_integer(b: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    width = bit_width_of(type)
    if type == i32:
        return value
    return b.value((ExtSIOp if width > bit_width_of(i32) else TruncIOp)(value, type))

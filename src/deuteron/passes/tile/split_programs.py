"""Splits programs by whether their tile ends before an array does: only the last one needs masks.

    i = pid * 1024 + arange(0, 1024)                  if pid * 1024 + 1023 < n:
    x = tl.load(x_ptr + i, i < n)                         x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, f(x), i < n)           ->         tl.store(y_ptr + i, f(x))
                                                      else:
                                                          x = tl.load(x_ptr + i, i < n)
                                                          tl.store(y_ptr + i, f(x), i < n)

Where n is no multiple of a vector, each element is loaded alone, under a mask of its own, and so are gathered ones: of
eight masks ptxas, which has seven predicates, puts some loads behind the first stores, and a thread waits twice. All
programs but one take the first branch, without masks, whose accesses are vectors if nothing else narrows them. In
kernels that load, store, and compute not too much for each element, without loops. The end of the tile is computed in
64 bits, in which it does not overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.effects import is_pure
from deuteron.ir.reached import reached
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.shape import MakeRangeOp, SplatOp
from deuteron.ir.types import byte_width_of, i32, i64, is_tile, num_elements_of, pointee_of, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.tile.unroll_short_loops import instructions_of

# Of a thread, which are there twice afterwards: a bound on the time to compile.
MOST_INSTRUCTIONS = 4000
# Where more is computed for each element that is loaded or stored, masks cost little. AdEMAMix of 16 elements in a
# thread has 1,298, 10 for each, and takes 73.5 us in the place of 145.6; ranks of a radix sort have 62 for each, and
# take 1.08 to 1.33 of the time if they are split.
MOST_FOR_EACH = 48
MOST_MASKS = 7  # the predicates that a thread has
_ACCESSES = (LoadOp, StoreOp)


@dataclass(frozen=True)
class SplitPrograms(Optimisation):
    """Splits programs by whether their tile ends before an array does, of so many threads."""

    threads: int = 128

    name = "split-programs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if self._is_short(func):
                self._split(func)

    def _is_short(self, func: FuncOp) -> bool:
        ops = list(func.body.block.ops)[:-1]
        instructions = sum(instructions_of(op, self.threads) for op in ops)
        accesses = sum(num_elements_of(op.operands[0].type) for op in ops if _is_of_tile(op)) / self.threads
        most = min(MOST_FOR_EACH * accesses, MOST_INSTRUCTIONS)
        return instructions <= most and all(map(_loads_computes_or_stores, ops))

    def _split(self, func: FuncOp) -> None:
        """By the first mask that costs something."""
        info = AxisInfoAnalysis(func)
        for op in func.body.block.ops:
            bound = _Bound.of(op)
            if bound is not None and any(self._costs(bound.mask, access, info) for access in _masked(func)):
                bound.split()
                return

    def _costs(self, mask: SSAValue, access: LoadOp | StoreOp, info: AxisInfoAnalysis) -> bool:
        """Whether an access would take more elements at once without a mask, which may be a part of its own, or has
        nothing but this one, more than there are predicates.
        """
        if not is_tile(access.ptr.type) or mask not in _parts(access.mask):
            return False
        of_pointer, size = info.of(access.ptr), byte_width_of(pointee_of(access.ptr.type))
        neighbours = min(of_pointer.contiguity[-1], max(of_pointer.divisibility[-1] // size, 1), MAX_BYTES // size)
        equal = info.of(mask).constancy[-1]
        masks = num_elements_of(mask.type) / self.threads / min(neighbours, equal)
        return equal < neighbours or (access.mask is mask and masks > MOST_MASKS)


def _loads_computes_or_stores(op: Operation) -> bool:
    if isinstance(op, _ACCESSES):
        return not (isinstance(op, LoadOp) and op.is_volatile.value.data)
    return is_pure(op) and not isinstance(op, (DotOp, scf.IfOp, scf.ForOp, scf.WhileOp))


def _is_of_tile(op: Operation) -> bool:
    return isinstance(op, _ACCESSES) and is_tile(op.ptr.type)


def _masked(func: FuncOp) -> Iterator[LoadOp | StoreOp]:
    return (op for op in func.body.block.ops if isinstance(op, _ACCESSES) and op.mask is not None)


def _parts(mask: SSAValue) -> set[SSAValue]:
    """What a mask is the conjunction of."""
    return set(reached([mask], lambda one: one.owner.operands if isinstance(one.owner, arith.AndIOp) else ()))


@dataclass(frozen=True)
class _Bound:
    """A mask: a scalar and the numbers from 0 on, added up, are less than another scalar."""

    mask: SSAValue
    start: SSAValue
    end: SSAValue

    @staticmethod
    def of(op: Operation) -> _Bound | None:
        if not isinstance(op, CmpIOp) or op.predicate_name != "slt" or not is_tile(op.result.type):
            return None
        index, end = op.lhs.owner, _scalar_of(op.rhs)
        if not isinstance(index, arith.AddiOp) or end is None or end.type != i32 or len(shape_of(op.result.type)) != 1:
            return None
        starts = [_scalar_of(operand) for operand in index.operands]
        ranges = [isinstance(o.owner, MakeRangeOp) and o.owner.start.value.data == 0 for o in index.operands]
        start = next((start for start in starts if start is not None), None)
        return _Bound(op.result, start, end) if start is not None and any(ranges) else None

    def split(self) -> None:
        """Put what follows the mask into both branches of an `if`, of which the first has none."""
        *following, last = _following(self.mask.owner)
        is_whole = self._is_whole(Builder.before(following[0]))
        regions = [Region(Block()), Region(Block())]
        whole, partial = (Builder.at_end(region.block, following[0].location) for region in regions)
        copies = {self.mask: whole.constant(True, self.mask.type)}
        for op in following:
            whole.insert(op.clone(copies))
            op.detach()
            partial.insert(op)
        for branch in (whole, partial):
            branch.insert(scf.YieldOp())
        Builder.before(last).insert(scf.IfOp(is_whole, [], *regions))

    def _is_whole(self, b: Builder) -> SSAValue:
        start, end = (b.value(ExtSIOp(value, i64)) for value in (self.start, self.end))
        last = b.value(arith.AddiOp(start, b.constant(num_elements_of(self.mask.type) - 1, i64)))
        return b.value(CmpIOp(last, end, "slt"))


def _scalar_of(tile: SSAValue) -> SSAValue | None:
    return tile.owner.src if isinstance(tile.owner, SplatOp) else None


def _following(op: Operation) -> list[Operation]:
    ops = list(op.parent.ops)
    return ops[ops.index(op) + 1 :]

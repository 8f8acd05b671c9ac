"""Axis info of every value of a function: forwards through its ops, to a fixed point in loops.

infos = AxisInfoAnalysis(func)
infos.of(op.ptr).contiguity          (1, 64)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from deuteron.analysis.axis.axis_info import (
    MAX_DIVISIBILITY,
    AxisInfo,
    power_of_two_divisor,
    uniform,
    unknown,
    unwrapped,
)
from deuteron.analysis.axis.axis_rules import RULES, Rule, rule_of
from deuteron.analysis.axis.distances import Distances, DistancesAnalysis
from deuteron.analysis.axis.likely_neighbours import LIKELY_RULES
from deuteron.cached_property import cached_property
from deuteron.ir.hints import CONSTANCY, CONTIGUITY, DIVISIBILITY, promised
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import shape_of

Taken = dict[Operation, list[AxisInfo]]


class AxisInfoAnalysis:
    """Axis info of every value of a function.

    `deferred`: the function is looked at when the first question is asked, and not at all where none is; for those who
    change nothing before.
    """

    def __init__(self, func: FuncOp, rules: Mapping[type[Operation], Rule] = RULES, deferred: bool = False):
        self._func, self._rules = func, rules
        self._distances: dict[int, DistancesAnalysis] = {}  # by the number of neighbours
        if not deferred:
            self._visit_function()

    @cached_property
    def _infos(self) -> dict[SSAValue, AxisInfo]:
        """What visits have found; the first that asks for it has the function visited."""
        self._visit_function()
        return self._infos

    def _visit_function(self) -> None:
        self._infos = {
            arg: uniform(arg, self._func.arg_divisibility(place)) for place, arg in enumerate(self._func.args)
        }
        self._visit_block(self._func.body.block)

    def of(self, value: SSAValue) -> AxisInfo:
        return self._infos.get(value) or unknown(value)

    def of_mask(self, mask: SSAValue | None) -> AxisInfo | None:
        """Of what an access may have."""
        return None if mask is None else self.of(mask)

    @cached_property
    def likely(self) -> AxisInfoAnalysis:
        """What is likely, and not known, of the function as it is."""
        return AxisInfoAnalysis(self._func, LIKELY_RULES)

    def distances(self, value: SSAValue, axis: int, count: int) -> Distances | None:
        """By how much `count` neighbours along a dimension differ, where that is known (distances.py)."""
        if count not in self._distances:
            self._distances[count] = DistancesAnalysis(self.of, count)
        return self._distances[count].of(value, axis)

    def _visit_block(self, block: Block, taken: Taken | None = None) -> None:
        for op in block.ops:
            self.visit(op, taken)

    def visit(self, op: Operation, taken: Taken | None = None) -> None:
        """Learn of an op, also of one that a pass has made since.

        `taken`: of the ops of a loop, what their operands held when it was visited before; with the same again,
        nothing is learned.
        """
        rule = rule_of(op, self._rules)
        if rule is not None:
            operands = self._operands(op)
            if taken is None or taken.get(op) != operands:
                info = unwrapped(op.results[0], rule(op, operands))
                self._infos[op.results[0]] = _with_hints(op, info) if op.attributes else info
            if taken is not None:
                taken[op] = operands
        elif op.regions:
            self._visit_regions(op, taken)
        elif op.attributes and len(op.results) == 1:
            self._infos[op.results[0]] = _with_hints(op, unknown(op.results[0]))

    def derived(self, op: Operation) -> AxisInfo:
        """What follows of an op from its operands alone, without what hints promise of its result."""
        rule = rule_of(op, self._rules)
        return unknown(op.results[0]) if rule is None else unwrapped(op.results[0], rule(op, self._operands(op)))

    def _operands(self, op: Operation) -> list[AxisInfo]:
        return [self.of(operand) for operand in op._operands]  # `operands` would make a view

    def _visit_regions(self, op: Operation, taken: Taken | None) -> None:
        if isinstance(op, scf.ForOp):
            return self._visit_for(op, {} if taken is None else taken)
        if isinstance(op, scf.WhileOp):
            return self._visit_while(op, {} if taken is None else taken)
        if isinstance(op, scf.IfOp):
            return self._visit_if(op, taken)
        for region in op.regions:
            for block in region.blocks:
                self._visit_block(block, taken)
        return None

    def _visit_for(self, op: scf.ForOp, taken: Taken) -> None:
        block = op.body.block
        induction, *carried = block.args
        bounds = self.of(op.lb).join(self.of(op.step))
        self._infos[induction] = uniform(induction, bounds.divisibility[0])
        self._fix_point(carried, op.iter_args, block.last_op.operands, lambda: self._visit_block(block, taken))
        self._bind(op.results, carried)

    def _visit_while(self, op: scf.WhileOp, taken: Taken) -> None:
        before, after = op.before_region.block, op.after_region.block
        passed_on = before.last_op.args

        def iteration() -> None:
            self._visit_block(before, taken)
            self._bind(after.args, passed_on)
            self._visit_block(after, taken)

        self._fix_point(before.args, op.arguments, after.last_op.operands, iteration)
        self._bind(op.results, passed_on)

    def _fix_point(
        self,
        carried: Sequence[BlockArgument],
        initial: Sequence[SSAValue],
        yielded: Sequence[SSAValue],
        iteration: Callable[[], None],
    ) -> None:
        """Visit a loop until what its arguments hold is true of what enters and of what each iteration yields."""
        self._bind(carried, initial)
        while True:
            iteration()
            joined = [self.of(a).join(self.of(y)) for a, y in zip(carried, yielded, strict=True)]
            if joined == [self.of(argument) for argument in carried]:
                return
            self._infos.update(zip(carried, joined, strict=True))

    def _visit_if(self, op: scf.IfOp, taken: Taken | None) -> None:
        branches = [region.block for region in op.regions if region.blocks]
        for block in branches:
            self._visit_block(block, taken)
        if op.results:
            yields = [block.last_op.operands for block in branches]
            for result, one, other in zip(op.results, *yields, strict=True):
                self._infos[result] = self.of(one).join(self.of(other))

    def _bind(self, results, values) -> None:
        for result, value in zip(results, values, strict=True):
            self._infos[result] = self.of(value)


def _with_hints(op: Operation, info: AxisInfo) -> AxisInfo:
    """What `tl.multiple_of`, `tl.max_contiguous` and `tl.max_constancy` promise, attached to the op."""
    extents = shape_of(op.results[0].type) or (1,)
    limits = (
        ("divisibility", DIVISIBILITY, (MAX_DIVISIBILITY,) * len(extents)),
        ("contiguity", CONTIGUITY, extents),
        ("constancy", CONSTANCY, extents),
    )
    for field, name, limit in limits:
        hint = promised(op, name)
        if hint is not None:
            powers = (power_of_two_divisor(value) if value > 0 else 1 for value in hint)
            known = zip(powers, limit, getattr(info, field), strict=True)
            info = info._replace(**{field: tuple(max(min(p, most), k) for p, most, k in known)})
    return info

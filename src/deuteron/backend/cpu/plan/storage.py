"""Decides which tiles are kept in memory and which are computed again wherever they are read.

    x = tl.load(...)            kept: the maximum and the exponential read it, in two loops
    y = x * 2                   computed again, cheaper than a trip through memory
    p = tl.exp(y - m)           kept: costly, and read by the sum and by the division
    acc = tl.dot(p, v, acc)     kept: it is made by an algorithm, not element by element

Walks the ops backwards, so that all readers of a tile are known. What turns out to be read in a single loop only
is dropped again after fusion (`schedule.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.cpu.plan import costs, effects, indices
from deuteron.backend.cpu.plan.inductions import Induction, find_inductions
from deuteron.backend.cpu.plan.views import is_view
from deuteron.ir.types import is_tile


@dataclass(frozen=True)
class Use:
    """The roots that read a tile: `key` identifies one of them, `op` is where it is.

    `is_shared`: there are others; which ones does not matter. `is_repeated`: one reads elements repeatedly.
    """

    key: object
    op: Operation
    is_shared: bool = False
    is_repeated: bool = False

    def merged(self, other: Use) -> Use:
        is_shared = self.is_shared or other.is_shared or self.key != other.key
        return replace(self, is_shared=is_shared, is_repeated=self.is_repeated or other.is_repeated)


class Storage:
    """`kept`: the lazy tiles to keep. `required`: those of them that must be in memory.

    `transposed`: operands of products that are the transpose of a kept tile, made by a transposition of their own.
    `inductions`: see there.
    """

    def __init__(self, function: Operation):
        self.kept: set[SSAValue] = set()
        self.required: set[SSAValue] = set()
        self.transposed: set[SSAValue] = set()
        self.inductions: dict[SSAValue, Induction] = {}
        self._uses: dict[SSAValue, Use] = {}
        self._writes_between = effects.WritesBetween()
        self._costs = costs.Costs()
        ops = [op for op in function.walk() if op is not function]
        skipped = {inner for op in ops if op.name in ("tt.reduce", "tt.scan") for inner in op.walk() if inner is not op}
        for op in reversed(ops):
            if op not in skipped:
                self._visit(op)

    def _visit(self, op: Operation) -> None:
        visit = _VISITS.get(op.name)
        if visit is not None:
            visit(self, op)
        elif effects.is_lazy(op):
            self._visit_lazy(op)
        else:
            for operand in op.operands:
                self._read(operand, Use(op, op))

    def _read(self, value: SSAValue, use: Use | None) -> None:
        if use is not None and is_tile(value.type):
            known = self._uses.get(value)
            self._uses[value] = use if known is None else known.merged(use)

    def _require(self, value: SSAValue, op: Operation) -> None:
        """The tile has to be in memory for this op."""
        self._read(value, Use(op, op))
        if is_tile(value.type):
            self.required.add(value)

    def _visit_lazy(self, op: Operation) -> None:
        if self.transposed.intersection(op.results):
            self.kept.add(op.result)
            self._require(op.src, op)
            return
        if is_view(op):
            self._require(op.operands[0], op)
            return
        for result in op.results:
            use = self._use_of_operands(result, op)
            for operand in op.operands:
                self._read(operand, use)

    def _use_of_operands(self, result: SSAValue, op: Operation) -> Use | None:
        """The roots that read the operands for this result's sake."""
        use = self._uses.get(result)
        if is_tile(result.type) and (result in self.required or self._is_worth_keeping(result, op, use)):
            self.kept.add(result)
            return Use(result, op)
        return replace(use, is_repeated=True) if use is not None and indices.repeats(op) else use

    def _is_worth_keeping(self, result: SSAValue, op: Operation, use: Use | None) -> bool:
        if indices.forwards(op) or use is None:
            return False
        crosses_region = use.op.parent_block() is not op.parent_block()
        is_read_again = use.is_shared or use.is_repeated or crosses_region
        if op.name == "tt.load":
            return is_read_again or self._is_disturbed(op, use)
        return is_read_again and self._costs.of(result) >= costs.WORTH_KEEPING

    def _is_disturbed(self, load: Operation, use: Use) -> bool:
        """Whether, at the time of the use, the load would find other contents than where it stands."""
        if self._writes_between(load, use.op):
            return True
        if use.op.name != "tt.store" or use.op.ptr is load.ptr:
            return False
        return effects.base_of(use.op.ptr) is effects.base_of(load.ptr)

    def _visit_dot(self, op: Operation) -> None:
        for operand in (op.a, op.b):
            self._require(operand, op)
            if indices.is_transpose(operand):
                self.transposed.add(operand)
        self._read(op.c, Use((op, "c"), op))

    def _visit_for(self, op: scf.ForOp) -> None:
        inductions = find_inductions(op)
        for number, initial in enumerate(op.iter_args):
            argument, result = op.body.block.args[number + 1], op.results[number]
            if number not in inductions:
                self._read(initial, Use((op, number), op))
                continue
            self.inductions[argument] = self.inductions[result] = inductions[number]
            for value in (argument, result):
                self._read(initial, self._uses.get(value))

    def _visit_while(self, op: scf.WhileOp) -> None:
        for number, initial in enumerate(op.arguments):
            self._read(initial, Use((op, number), op))

    def _visit_yield(self, op: Operation) -> None:
        parent = op.parent_op()
        inductions = find_inductions(parent) if isinstance(parent, scf.ForOp) else {}
        for number, value in enumerate(op.operands):
            if number in inductions:
                for step in inductions[number].steps:
                    self._read(step, Use((op, number), op))
            elif isinstance(parent, scf.ForOp | scf.WhileOp) and _is_defined_in(value, op.parent_block()):
                self._require(value, op)
            else:
                self._read(value, Use((op, number), op))

    def _visit_pair(self, op: Operation) -> None:
        """The operands of join and cat are written into the result one after the other."""
        for number, operand in enumerate(op.operands):
            self._read(operand, Use((op, number), op))


def _is_defined_in(value: SSAValue, block: Block) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent_block() is block


_VISITS = {
    "tt.dot": Storage._visit_dot,
    "scf.for": Storage._visit_for,
    "scf.while": Storage._visit_while,
    "scf.yield": Storage._visit_yield,
    "scf.condition": Storage._visit_yield,
    "tt.join": Storage._visit_pair,
    "tt.cat": Storage._visit_pair,
}

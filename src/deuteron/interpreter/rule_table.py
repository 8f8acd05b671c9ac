"""A table of interpreter rules, one for each op.

    RULES = RuleTable()

    @RULES.on(SplatOp)
    def splat(ctx, op, src):
        return np.broadcast_to(src, shape_of(op.result.type))

A rule takes the executor, the op and the values of its operands. It returns the value of the op's only result, a tuple
of values where there are several, or None. It never changes a value in place, and it takes shapes from the values
rather than from the op's types wherever it may stand in the region of a reduction, which runs on whole tiles at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

Rule = Callable[..., Any]


class RuleTable(dict[str, Rule]):
    """Rules by the name of the op."""

    def on(self, *op_classes: type[Operation]) -> Callable[[Rule], Rule]:
        """Register the decorated rule for these ops."""

        def register(rule: Rule) -> Rule:
            for op_class in op_classes:
                self[op_class.name] = rule
            return rule

        return register

    def add(self, rules: dict[type[Operation], Rule]) -> None:
        """Register a rule for each op class."""
        self.update({op_class.name: rule for op_class, rule in rules.items()})

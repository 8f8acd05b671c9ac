"""A table of rules, one for each op: what the interpreter computes for it, what it folds to.

    RULES = RuleTable()

    @RULES.on(SplatOp)
    def splat(ctx, op, src):
        return np.broadcast_to(src, shape_of(op.result.type))

What a rule takes and gives is said where its table is read (interpreter/rules.py, passes/tile/folding).
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

"""A table of folding rules, by op.

    FOLDS = FoldTable()

    @FOLDS.on(AddPtrOp)
    def fold_addptr(op):
        return [op.ptr] if constant_value(op.offset) == 0 else None

A rule gives the values that stand for the results, inserting new ops before the op where it needs any, or None where
there is nothing to fold. It never erases the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

FoldRule = Callable[[Operation], Sequence[SSAValue] | None]


class FoldTable(dict[str, FoldRule]):
    """Folding rules by the name of the op."""

    def on(self, *op_classes: type[Operation]) -> Callable[[FoldRule], FoldRule]:
        """Register the decorated rule for these ops."""

        def register(rule: FoldRule) -> FoldRule:
            for op_class in op_classes:
                self[op_class.name] = rule
            return rule

        return register

"""Leaves out what a kernel asserts that is not compiled for debugging.

    "tt.assert"(%fits) <{message = "index out of bounds"}>               ->

Nothing checks it then, and it would hold up the loads around it, and give a layout to what its condition is made of.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.debug import AssertOp
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase


class LeaveOutAssertions(Optimisation):
    """Erases assertions that do not count."""

    name = "leave-out-assertions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for assertion in nested_ops(op, AssertOp):
            if not assertion.counts(debug=False):
                erase(assertion)

"""Scalars that a loop steps: where they begin, and by what an iteration moves them.

    for k in range(pid * 64, n, 64 * programs)      k:  begins at 64 * pid, steps of 64 * programs
    while s < n: ...; s += 64                       s:  begins as before the loop, steps of 64
    while s < n: ...; s = 2 * s                     None

In any two iterations such a scalar is multiples of the step's content apart, whatever the numbers in it are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, changes_in


@dataclass(frozen=True)
class Stepped:
    """It is `begin` plus a multiple of `step`, which is the same in all iterations of the loop."""

    loop: Operation
    begin: Polynomial
    step: Polynomial


def stepped_by_loop(known: TilePolynomials, value: SSAValue | None) -> Stepped | None:
    """None of what no loop steps, or not by polynomials."""
    if not isinstance(value, BlockArgument):
        return None
    loop = value.block.parent_op()
    if isinstance(loop, scf.ForOp):
        return _stepped(known, loop, loop.lb, known.of(loop.step)) if value.index == 0 else None
    return _carried_by_while(known, loop, value) if isinstance(loop, scf.WhileOp) else None


def _carried_by_while(known: TilePolynomials, loop: scf.WhileOp, value: BlockArgument) -> Stepped | None:
    """In the body, of what the condition passes on as it was."""
    before, body = (region.block for region in loop.regions)
    if value.block is not body:
        return None
    passed = before.last_op.operands[1 + value.index]
    if not isinstance(passed, BlockArgument) or passed.block is not before:
        return None
    following = known.of(body.last_op.operands[passed.index])
    step = following - Polynomial.of(known.atom(value)) if following is not None else None
    return _stepped(known, loop, loop.arguments[passed.index], step)


def _stepped(known: TilePolynomials, loop: Operation, begin: SSAValue, step: Polynomial | None) -> Stepped | None:
    first = known.of(begin)
    is_known = first is not None and step is not None and not changes_in(step, loop)
    return Stepped(loop, first, step) if is_known else None

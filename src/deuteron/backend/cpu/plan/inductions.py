"""Loop-carried tiles that only advance: pointers and offsets that a loop adds a scalar to.

    for ...:                                    total = 0
        x = tl.load(ptrs)           becomes     for ...:
        ptrs += step                                x = tl.load(initial_ptrs + total)
                                                    total += step

The tile is then never in memory, and its accesses are as contiguous as those through the initial tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.ir.arith import Arith, constant_value
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import is_integer, is_pointer, is_tile

_ARITHMETIC = frozenset(Arith.operations)


@dataclass(frozen=True)
class Induction:
    """A tile that is `initial` plus a scalar, of which each iteration adds all `steps`, uniform tiles or scalars."""

    initial: SSAValue
    steps: tuple[SSAValue, ...]


def find_inductions(op: scf.ForOp) -> dict[int, Induction]:
    """The inductions of a loop, by the number of the loop-carried value."""
    found = {}
    for number, initial in enumerate(op.iter_args):
        argument = op.body.block.args[number + 1]
        steps = _steps(op.body.block.last_op.operands[number], argument)
        if is_tile(initial.type) and steps is not None:
            found[number] = Induction(initial, tuple(steps))
    return found


def _steps(value: SSAValue, argument: SSAValue) -> list[SSAValue] | None:
    """What is added to `argument` on the way to `value`, or None where something else happens to it."""
    steps: list[SSAValue] = []
    while value is not argument:
        op = value.owner
        if not isinstance(op, Operation) or not isinstance(op, AddPtrOp | AddiOp):
            return None
        base, step = op.operands
        if not (is_pointer(value.type) or _is_uniform(step)):
            base, step = step, base
        if not _is_uniform(step):
            return None
        steps.append(step)
        value = base
    return steps


def _is_uniform(tile: SSAValue) -> bool:
    """Whether all elements are the same by construction: splats, constants, and arithmetic on such."""
    known: dict[SSAValue, bool] = {}

    def compute(value: SSAValue) -> bool:
        operands = _operands_of_arithmetic(value)
        return all(known[operand] for operand in operands) if operands else _is_uniform_leaf(value)

    return evaluate(tile, known, _operands_of_arithmetic, compute)


def _is_uniform_leaf(value: SSAValue) -> bool:
    op = value.owner
    if not is_tile(value.type) or isinstance(op, SplatOp):
        return True
    return isinstance(op, ConstantOp) and constant_value(value) is not None


def _operands_of_arithmetic(value: SSAValue) -> Sequence[SSAValue]:
    """The operands of elementwise arithmetic on tiles of integers; of all else none."""
    op = value.owner
    if type(op) not in _ARITHMETIC or not is_tile(value.type):
        return ()
    return op.operands if is_integer(value.type) else ()

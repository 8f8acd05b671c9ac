"""What the plan knows of ops: one declaration for each class of the dialects of tile IR, and none missing.

    declared(op).is_lazy(op)                 whether it is computed wherever a root uses it, or an item of its own
    declared(op).operands_at(op, index)      what its result at an index is made of
    declared(op).read(op, storage)           what it reads, for whether tiles are kept           (storage.py)
    declared(op).schedule(op, scheduler)     what becomes of it                                  (schedule.py)
    declared(op).weight(op), .step(op, ...)  what it costs again; how its result grows along an axis
    forwarded(value)                         what a tile repeats and reshapes

    declaration.py      Declaration, Lazy, Scalar, Uncompiled
    elementwise.py shape.py memory.py algorithms.py control_flow.py        the tables, one file for each family

An op class without a declaration is an error as soon as this is imported: an op that were taken for another kind could
be computed at the wrong time or twice.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.ops import algorithms, control_flow, elementwise, memory, shape
from deuteron.backend.cpu.plan.ops.declaration import Declaration
from deuteron.backend.rule_errors import unsupported
from deuteron.errors import InternalError
from deuteron.ir.arith import Arith, Math
from deuteron.ir.tt import TT

_DIALECTS = (Arith, Math, scf.Scf, TT)
DECLARATIONS: dict[type[Operation], Declaration] = {
    **elementwise.DECLARATIONS,
    **shape.DECLARATIONS,
    **memory.DECLARATIONS,
    **algorithms.DECLARATIONS,
    **control_flow.DECLARATIONS,
}


def check_complete(declarations: dict[type[Operation], Declaration]) -> None:
    """Raise InternalError, naming the op classes of the dialects that have no declaration."""
    missing = [op.name for dialect in _DIALECTS for op in dialect.operations if op not in declarations]
    if missing:
        raise InternalError(f"backend/cpu/plan/ops says nothing of {', '.join(missing)}: declare how they are planned")


def declared(op: Operation) -> Declaration:
    """The declaration of an op's class. Raises CompilationError for an op of a dialect that is no tile IR."""
    declaration = DECLARATIONS.get(type(op))
    if declaration is None:
        raise unsupported(op, "CPU")
    return declaration


def forwarded(value: SSAValue) -> SSAValue:
    """What a tile repeats and reshapes."""
    while isinstance(value.owner, Operation) and declared(value.owner).forwards:
        value = value.owner.operands[0]
    return value


check_complete(DECLARATIONS)

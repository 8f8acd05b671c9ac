"""Tiles that show the memory of another tile: the halves that tt.split gives, and what tt.reshape makes of a tile.

%r = tt.reshape %x        viewed_source(%r) is %x; %r is wherever %x is (`Place.reshaped`)
%a, %b = tt.split %r      viewed_source(%a) is %x; each has every second element (`Place.half`)
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.ir.tt.shape import SplitOp


def is_view(op: Operation) -> bool:
    return ops.declared(op).is_view(op)


def views_of(value: SSAValue) -> Iterator[Operation]:
    """The ops that show one tile's memory as `value`, the last one first."""
    while isinstance(value.owner, Operation) and is_view(value.owner):
        yield value.owner
        value = value.owner.operands[0]


def viewed_source(value: SSAValue) -> SSAValue:
    """The tile whose memory a value shows: itself where it is no view."""
    for op in views_of(value):
        value = op.operands[0]
    return value


def is_strided(value: SSAValue) -> bool:
    """Whether neighbours in the tile are not neighbours in the memory that it shows."""
    return any(isinstance(op, SplitOp) for op in views_of(value))

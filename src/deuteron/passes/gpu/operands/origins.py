"""What the operands of dots are made of, element by element: through flexible ops, branches and what loops carry.

is_from_dot(%p)      True: softmax of what another dot gave
load_of(%x)          the load of %w, of the same shape, where %x = arith.sitofp %w
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, OpResult, SSAValue

from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.types import is_tile, shape_of
from deuteron.passes.gpu.layouts.anchors import AnyDot


def is_from_dot(value: SSAValue) -> bool:
    """Whether a dot's result becomes this value, element by element: it is in registers then."""
    return any(isinstance(op, AnyDot) for op in _made_by(value))


def load_of(value: SSAValue) -> LoadOp | DescriptorLoadOp | None:
    """A load that a value of that shape is made of, element by element."""
    shape = shape_of(value.type)
    loads = (
        op for op in _made_by(value) if isinstance(op, LoadOp | DescriptorLoadOp) and shape_of(op.result.type) == shape
    )
    return next(loads, None)


def _made_by(value: SSAValue) -> Iterator[Operation]:
    """The ops that give a value, through flexible ops, branches and what loops carry, the nearest first; each once."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop(0)
        if isinstance(value, OpResult):
            yield value.op
        sources = [source for source in _sources(value) if source not in seen and is_tile(source.type)]
        pending += sources
        seen.update(sources)


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    """What a value is made of, element by element; not what a loop gives in the end."""
    if isinstance(value, OpResult) and is_flexible(value.op):
        return value.op.operands
    return () if isinstance(value.owner, scf.ForOp) else forwarded_from(value)

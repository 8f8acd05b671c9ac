"""What an op's result at an index is made of: its operands, each at an index.

    %b = tt.broadcast(%e) : tensor<64x1xf32> -> tensor<64x32xf32>
    operands_at(%b, (i, j))          [(%e, (i, None))]
    %t = tt.trans(%x) {order = [1, 0]}
    operands_at(%t, (i, j))          [(%x, (j, i))]

The entries of an index are opaque here: dimension numbers in a plan, loop variables in the code. None stands for a
dimension of extent 1. A scalar's index is ().
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.items import Index
from deuteron.ir.types import is_tile, num_elements_of, shape_of

Operands = list[tuple[SSAValue, Index]]


def _expand_dims(op: Operation, index: Index) -> Operands:
    axis = op.axis.value.data
    return [(op.src, index[:axis] + index[axis + 1 :])]


def _broadcast(op: Operation, index: Index) -> Operands:
    extents = shape_of(op.src.type)
    return [(op.src, tuple(None if extent == 1 else entry for entry, extent in zip(index, extents, strict=True)))]


def _trans(op: Operation, index: Index) -> Operands:
    source: list = [None] * len(index)
    for dimension, axis in enumerate(op.permutation):
        source[axis] = index[dimension]
    return [(op.src, tuple(source))]


def _reshape(op: Operation, index: Index) -> Operands:
    """Only where dimensions of extent 1 come and go: any other reshape is a view of a kept tile."""
    entries = iter([e for e, extent in zip(index, shape_of(op.result.type), strict=True) if extent > 1])
    return [(op.src, tuple(next(entries) if extent > 1 else None for extent in shape_of(op.src.type)))]


def _splat(op: Operation, index: Index) -> Operands:
    return [(op.src, ())]


_SHAPE_OPS: dict[str, Callable[[Operation, Index], Operands]] = {
    "tt.expand_dims": _expand_dims,
    "tt.broadcast": _broadcast,
    "tt.trans": _trans,
    "tt.reshape": _reshape,
    "tt.splat": _splat,
}


def forwards(op: Operation) -> bool:
    """Whether the op's result is its operand at another index, and nothing is computed."""
    return op.name in _SHAPE_OPS


def operands_at(op: Operation, index: Index) -> Operands:
    """What the op's result at an index is computed from."""
    if op.name in _SHAPE_OPS:
        return _SHAPE_OPS[op.name](op, index)
    return [(operand, index if is_tile(operand.type) else ()) for operand in op.operands]


def is_plain_reshape(op: Operation) -> bool:
    """Whether a reshape only adds and removes dimensions of extent 1."""
    source, result = ([e for e in shape_of(value.type) if e > 1] for value in (op.src, op.result))
    return source == result


def repeats(op: Operation) -> bool:
    """Whether the op takes an element of its operand several times."""
    if op.name != "tt.broadcast":
        return False
    return num_elements_of(op.result.type) > num_elements_of(op.src.type)


def is_transpose(value: SSAValue) -> bool:
    """Whether a tile is the transpose of a matrix, not of a vector."""
    shape = shape_of(value.type)
    op = value.owner
    if len(shape) != 2 or min(shape) == 1 or not isinstance(op, Operation) or op.name != "tt.trans":
        return False
    return op.permutation == (1, 0)

"""Whether two pointers are the same one but for the arguments that they begin with.

    a + i * n + j,  b + i * n + j       True: where a and b are one array, they point to the same elements
    a + i,          b + i + 1           False
    a + i,          b + k               False, unless i and k are one value: what is computed twice is not compared

Through both everything is moved, repeated and carried around loops alike.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, OpResult, SSAValue

from deuteron.analysis.points_to import is_address, is_argument
from deuteron.ir.effects import is_pure
from deuteron.ir.types import byte_width_of, is_pointer, pointee_of


def same_offsets(first: SSAValue, second: SSAValue) -> bool:
    pending, seen = [(first, second)], set()
    while pending:
        pair = pending.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        sources = _sources(*pair)
        if sources is None:
            return False
        pending += sources
    return True


def _sources(first: SSAValue, second: SSAValue) -> list[tuple[SSAValue, SSAValue]] | None:
    """The pairs that have to be alike for these two to be; None where they are not."""
    if _size(first) != _size(second):
        return None
    if is_argument(first) and is_argument(second):
        return []
    if isinstance(first, BlockArgument) and isinstance(second, BlockArgument):
        return _carried(first, second)
    if isinstance(first, OpResult) and isinstance(second, OpResult):
        return _computed(first, second)
    return None


def _size(pointer: SSAValue) -> int | None:
    """Of an element, in bytes."""
    return byte_width_of(pointee_of(pointer.type)) if is_pointer(pointer.type) else None


def _carried(first: BlockArgument, second: BlockArgument) -> list[tuple[SSAValue, SSAValue]] | None:
    loop = first.block.parent_op()
    if first.block is not second.block or not isinstance(loop, scf.ForOp):
        return None
    indices = [value.index - 1 for value in (first, second)]
    return [tuple(values[index] for index in indices) for values in (loop.iter_args, loop.body.block.last_op.operands)]


def _computed(first: OpResult, second: OpResult) -> list[tuple[SSAValue, SSAValue]] | None:
    one, other = first.op, second.op
    if type(one) is not type(other) or one.properties != other.properties or one.regions or not is_pure(one):
        return None
    if first.index != second.index or len(one.operands) != len(other.operands):
        return None
    pairs = list(zip(one.operands, other.operands, strict=True))
    if any(a is not b and not (is_address(a.type) and is_address(b.type)) for a, b in pairs):
        return None
    return pairs

"""Whether two pointers are the same one but for the arguments that they begin with.

    a + i * n + j,  b + i * n + j       Alike(): where a and b are one array, they point to the same elements
    a + i * n,      b + i * m           Alike({(n, m)}): and where the numbers n and m are equal
    a + i,          b + i + 1           None

Through both everything is computed, moved, repeated and carried around loops alike.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from deuteron.analysis.aliasing.points_to import is_address, is_argument
from deuteron.ir.effects import is_pure
from deuteron.ir.types import byte_width_of, is_pointer, pointee_of, shape_of

Alike = frozenset[tuple[BlockArgument, BlockArgument]]  # numbers that are given to the kernel and have to be equal
_Values = tuple[SSAValue, SSAValue]
_MOST_EQUAL = 4  # a bound on what a launch compares, not measured


def same_offsets(first: SSAValue, second: SSAValue) -> Alike | None:
    """The numbers that have to be equal for it; None where that is not enough, or where they begin with one of several
    arguments.
    """
    pending, seen, equal, bases = [(first, second)], set(), set(), set()
    while pending:
        pair = pending.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        if not _may_be_alike(pair[0].type, pair[1].type):
            return None
        if all(map(is_argument, pair)):
            (bases if is_address(pair[0].type) else equal).add(pair)
            continue
        sources = _sources(*pair)
        if sources is None:
            return None
        pending += sources
    return frozenset(equal) if len(bases) <= 1 and len(equal) <= _MOST_EQUAL else None


def _may_be_alike(first: Attribute, second: Attribute) -> bool:
    """Pointers may be to other elements of the same size."""
    if not (is_pointer(first) and is_pointer(second)):
        return first == second
    sizes = [byte_width_of(pointee_of(type)) for type in (first, second)]
    return sizes[0] == sizes[1] and shape_of(first) == shape_of(second)


def _sources(first: SSAValue, second: SSAValue) -> list[_Values] | None:
    """The pairs that have to be alike for these two to be; None where they are not."""
    if isinstance(first, BlockArgument) and isinstance(second, BlockArgument):
        return _carried(first, second)
    if isinstance(first, OpResult) and isinstance(second, OpResult):
        return _computed(first, second)
    return None


def _carried(first: BlockArgument, second: BlockArgument) -> list[_Values] | None:
    loop = first.block.parent_op()
    if first.block is not second.block or not isinstance(loop, scf.ForOp) or not (first.index and second.index):
        return None
    indices = [value.index - 1 for value in (first, second)]
    return [tuple(values[index] for index in indices) for values in (loop.iter_args, loop.body.block.last_op.operands)]


def _computed(first: OpResult, second: OpResult) -> list[_Values] | None:
    one, other = first.op, second.op
    if type(one) is not type(other) or one.properties != other.properties or one.regions or not is_pure(one):
        return None
    if first.index != second.index or len(one.operands) != len(other.operands):
        return None
    return list(zip(one.operands, other.operands, strict=True))

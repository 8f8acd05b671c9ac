"""The ops in an op.

for load in nested_ops(func, LoadOp):
    ...
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.ir import Operation

Kind = type | UnionType | tuple[type, ...]


def nested_ops(op: Operation, kind: Kind | None = None) -> list[Any]:
    """An op and all that is in it, in the order of `walk`, or those that are of a class.

    It is a list, so ops may be replaced on the way, and takes a third of the time that `walk` does.
    """
    found = [op]
    _collect(op, found)
    return found if kind is None else of_kind(found, kind)


def nested_ops_inside_out(op: Operation, kind: Kind | None = None) -> list[Any]:
    """The same, each after what is in it."""
    found: list[Operation] = []
    _collect_inside_out(op, found)
    return found if kind is None else of_kind(found, kind)


def of_kind(ops: Sequence[Operation], kind: Kind) -> list[Any]:
    """Those ops that are of a class: which classes are, is asked once, for `isinstance` is slow
    on classes with abstract bases, as those of ops are.
    """
    classes = {cls for cls in set(map(type, ops)) if _is_of(cls, kind)}
    return [op for op in ops if type(op) in classes] if classes else []


@cache
def _is_of(cls: type, kind: Kind) -> bool:
    return issubclass(cls, kind)


def _collect(op: Operation, found: list[Operation]) -> None:
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                found.append(inner)
                if inner.regions:
                    _collect(inner, found)
                inner = inner._next_op  # `next_op` would call


def _collect_inside_out(op: Operation, found: list[Operation]) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                _collect_inside_out(inner, found)
    found.append(op)

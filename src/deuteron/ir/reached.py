"""What is reached from some values, or anything else, step by step: each once, however many ways lead there.

    any(isinstance(value.owner, GetProgramIdOp) for value in reached([pointer], operands_of))   stops at the first one

A tile that is used twice at each of forty steps has a trillion ways to the first one, and forty values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from xdsl.ir import Operation, SSAValue

Node = TypeVar("Node", bound=Hashable)


def reached(first: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """The first ones, and what is following them; what follows one is asked after it has been handed out."""
    pending = list(dict.fromkeys(first))
    seen = set(pending)
    while pending:
        node = pending.pop()
        yield node
        fresh = [one for one in dict.fromkeys(following(node)) if one not in seen]
        seen.update(fresh)
        pending += fresh


def operands_of(value: SSAValue) -> Sequence[SSAValue]:
    """What the op that gives a value takes; of arguments nothing."""
    return value.owner.operands if isinstance(value.owner, Operation) else ()

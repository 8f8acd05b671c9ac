"""What `tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy` promise of a tile: attributes of the op that makes it.

    tl.multiple_of(x, 16)                   tt.divisibility = dense<16> : tensor<1xi32>
    promised(op, DIVISIBILITY)              (16,): one for each dimension
    hints_of_part(op, 0, 4)                 of 4 neighbours of x: the first is divisible by 4
    hints_of_every(op, 0, 8)                of every eighth element of x: each is divisible by 8

Divisibility is that of the first of neighbours that count up by one, so that a part of them begins with less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import TypeVar

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import i32, shape_of, tile

OpT = TypeVar("OpT", bound=Operation)
DIVISIBILITY, CONTIGUITY, CONSTANCY = "tt.divisibility", "tt.contiguity", "tt.constancy"
HINTS = (DIVISIBILITY, CONTIGUITY, CONSTANCY)


def promised(op: Operation, name: str) -> tuple[int, ...] | None:
    """The numbers of a promise; None where there is none."""
    hint = op.attributes.get(name)
    return tuple(hint.get_values()) if isinstance(hint, DenseIntOrFPElementsAttr) else None


def check_promises(op: Operation) -> None:
    """Raise VerifyException where a promise is not a positive integer for each dimension, or one for a scalar."""
    for name in op.attributes.keys() & set(HINTS):
        numbers, wanted = promised(op, name), max(len(shape_of(op.results[0].type)), 1) if op.results else 0
        if numbers is None or len(numbers) != wanted or any(not isinstance(n, int) or n < 1 for n in numbers):
            raise VerifyException(f"{op.name}: {name} is {wanted} positive integers, got {op.attributes[name]}")


def promise(op: Operation, name: str, numbers: Sequence[int]) -> None:
    op.attributes[name] = _attribute(numbers)


def has_promises(op: Operation) -> bool:
    return any(name in op.attributes for name in HINTS)


def promising_as(op: Operation, other: OpT) -> OpT:
    """An op that makes the same value in another way, with what is promised of that."""
    other.attributes |= {name: op.attributes[name] for name in HINTS if name in op.attributes}
    return other


def hints_of_part(op: Operation, axis: int, extent: int) -> dict[str, Attribute]:
    """The attributes of an op, of which one makes `extent` neighbours along a dimension, from any multiple on."""
    return _changed(op, axis, lambda name, number: gcd(number, extent))


def hints_of_every(op: Operation, axis: int, count: int) -> dict[str, Attribute]:
    """The attributes of an op, for one that makes of each `count` neighbours along a dimension the first."""
    rules = {DIVISIBILITY: gcd, CONTIGUITY: lambda number, count: 1, CONSTANCY: _groups}
    return _changed(op, axis, lambda name, number: rules[name](number, count))


def _groups(number: int, count: int) -> int:
    return 1 if number % count else number // count


def _changed(op: Operation, axis: int, change: Callable[[str, int], int]) -> dict[str, Attribute]:
    attributes = dict(op.attributes)
    for name in HINTS:
        numbers = promised(op, name)
        if numbers is not None:
            attributes[name] = _attribute([change(name, n) if a == axis else n for a, n in enumerate(numbers)])
    return attributes


def _attribute(numbers: Sequence[int]) -> Attribute:
    return DenseIntOrFPElementsAttr.from_list(tile(i32, [len(numbers)]), list(numbers))

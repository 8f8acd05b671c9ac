"""What a parsed grid comes to: in Python, and as an expression of C. Both give the same for every input.

    grid_value(grid, {"M": 1000, "heads": 8})     (8, 8, 1)
    node_code(grid[0], {"M": Variable("M", "i32")})
        deuteron_grid_cdiv((int64_t)M, INT64_C(128), &deuteron_bad)

The arithmetic is of 64 bits. A division by zero and an overflow are errors: UsageError in Python, a status in C. A part
that is not positive makes the grid empty, (0, 0, 0). The functions that the code calls are in runtime/grid.c.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deuteron.aot.grid import INT64_MAX, Grid, Name, Node, Number, Scope, parse_grid
from deuteron.aot.option_text import OptionText
from deuteron.errors import UsageError

MAX_PARTS = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True)
class Variable:
    """An argument in C: what it is called there, and its type in the signature."""

    c_name: str
    type: str


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_PYTHON: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "//": operator.floordiv,
    "%": operator.mod,
    "cdiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}

_C_FUNCTIONS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod"}


def node_value(node: Node, values: Mapping[str, int]) -> int:
    """The value of a part; raises UsageError on a division by zero or where it leaves 64 bits."""
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        return _checked(int(values[node.name]))
    left, right = node_value(node.left, values), node_value(node.right, values)
    try:
        return _checked(_PYTHON[node.kind](left, right))
    except ZeroDivisionError:
        raise UsageError(f"the grid divides {left} by zero") from None


def _checked(value: int) -> int:
    if not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise UsageError(f"the grid comes to {value}, which does not fit into 64 bits")
    return value


def grid_value(grid: Grid, values: Mapping[str, int]) -> tuple[int, int, int]:
    """The grid for the values of its arguments; (0, 0, 0) where it is empty."""
    parts = tuple(node_value(node, values) for node in grid)
    if min(parts) <= 0:
        return (0, 0, 0)
    for axis, part in enumerate(parts):
        _check_part(axis, part)
    return parts


def _check_part(axis: int, value: int) -> None:
    if value > MAX_PARTS[axis]:
        raise UsageError(f"the grid's {'xyz'[axis]} is {value}, and the most is {MAX_PARTS[axis]}")


def launchable_grid(text: str, scope: Scope) -> Grid:
    """The grid that a text means; raises UsageError also for a part that no arguments can make right: without any it is
    evaluated now.
    """
    grid = parse_grid(text, scope)
    try:
        for axis, part in enumerate(grid):
            if not _has_name(part):
                _check_part(axis, node_value(part, {}))
    except UsageError as error:
        raise OptionText("--grid", text).error(error.message, 0, len(text)) from None
    return grid


def _has_name(node: Node) -> bool:
    if isinstance(node, Number):
        return False
    return isinstance(node, Name) or _has_name(node.left) or _has_name(node.right)


def node_code(node: Node, variables: Mapping[str, Variable]) -> str:
    """A part as an expression of type int64_t, which sets `deuteron_bad` where `node_value` raises."""
    if isinstance(node, Number):
        return f"INT64_C({node.value})" if node.value >= 0 else f"(-INT64_C({-node.value}))"
    if isinstance(node, Name):
        return _variable_code(variables[node.name])
    operands = f"{node_code(node.left, variables)}, {node_code(node.right, variables)}"
    if node.kind in ("min", "max"):
        return f"deuteron_grid_{node.kind}({operands})"
    return f"deuteron_grid_{_C_FUNCTIONS.get(node.kind, node.kind)}({operands}, &deuteron_bad)"


def _variable_code(variable: Variable) -> str:
    if variable.type == "u64":
        return f"deuteron_grid_u64({variable.c_name}, &deuteron_bad)"
    return f"(int64_t){variable.c_name}"

"""How a block of statements ends: at its end, or by a `break`, `continue` or `return`, on some paths or on all.

    x = 1                     Completion()                                      no path leaves
    return x                  Completion(left=True, {Return: when True})        all do
    if c: break               Completion(left=%c, {Break: when %c})             those on which %c is true
    if c: break               Completion(left=%t, {Break: when %b, Return: when %r})
    if d: return x            what follows is compiled for the paths on which %t is false

A path that has left goes on to the end of the block, past what is guarded by `left`. So a variable that has no value on
it, or one of another type, has some value there, which nobody reads: a placeholder.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deuteron.frontend.values import Tensor, Value

Kind = type[ast.stmt]
Flag = bool | Tensor

NOTHING = type("Nothing", (), {"__repr__": lambda self: "nothing"})()
"""What a function returns on a path that comes to its end: nobody may read it, whatever other paths return."""

LOOP_EXITS: tuple[Kind, ...] = (ast.Break, ast.While, ast.Return)
"""What ends a loop: a `break`, a `while` whose condition is false, where that is told from a `break`, a `return`."""


@dataclass(frozen=True)
class Exit:
    """Paths that leave in one way.

    `when`: which ones, of those that come to the end of the block; of a `continue`, which is what all others of those
    that have left do, it says nothing. `lost`: variables that have no value on them, with the reason.
    """

    when: Flag = True
    lost: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Completion:
    """The ways in which a block ends. `left` says on which paths it is not at its end; `value` is what is returned."""

    left: Flag = False
    exits: Mapping[Kind, Exit] = field(default_factory=dict)
    value: Value = NOTHING

    @property
    def falls_through(self) -> bool:
        """Whether a path may come to the end."""
        return self.left is not True

    @property
    def leaves_loop(self) -> bool:
        """Whether a path may end the loop around the block."""
        return any(kind in self.exits for kind in LOOP_EXITS)

    @property
    def is_alive(self) -> bool:
        """Whether anybody may read a variable after it: all but a `return` go on in the function."""
        return self.falls_through or any(kind is not ast.Return for kind in self.exits)

    def when(self, kind: Kind) -> Flag:
        return self.exits[kind].when if kind in self.exits else False


FALLS_THROUGH = Completion()


class EndOfFunction(ast.Return):
    """The `return` at the end of a function that Python lets one leave out."""


def leave(kind: Kind, value: Value = NOTHING) -> Completion:
    """All paths leave in this way."""
    return Completion(True, {kind: Exit()}, value)


def may_leave(statements: Sequence[ast.stmt]) -> bool:
    """Whether there is a `return` in these statements, or a `break` or `continue` of a loop around them."""
    return any(_may_leave(statement) for statement in statements)


def _may_leave(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Break, ast.Continue)):
        return True
    if isinstance(statement, (ast.For, ast.While)):
        return may_leave(statement.orelse) or contains_return(statement.body)
    if isinstance(statement, ast.If):
        return may_leave(statement.body) or may_leave(statement.orelse)
    return isinstance(statement, ast.Return)


def contains_return(statements: Sequence[ast.stmt]) -> bool:
    """Whether there is a `return` in these statements, at any depth."""
    return any(isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement))


def may_end_loop(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop with this body may end by a `break` or `return`."""
    return any(_may_end_loop(statement) for statement in body)


def _may_end_loop(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.For, ast.While)):
        return may_end_loop(statement.orelse) or contains_return(statement.body)
    if isinstance(statement, ast.If):
        return may_end_loop(statement.body) or may_end_loop(statement.orelse)
    return isinstance(statement, (ast.Break, ast.Return))


def ended_by(end: ast.Continue | EndOfFunction, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements with what Python lets one leave out at their end.

    Variables of paths that all leave need not become one for what follows.
    """
    return [*body, ast.copy_location(end, body[-1])]

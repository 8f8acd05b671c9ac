"""A kernel that edits change: its syntax, its arguments, its grid, its options, and what can be pointed at in it.

    @edit_of("masks")
    def without_mask(mutant): ...                 changes the mutant in place, or raises Unfit

    place = mutant.place(lambda place: place.num_loops > 0)     a statement in a loop, and what is in scope there
    mutant.replace(node, f"({text(node)}).to(tl.int64)")        an expression by another, wherever it is

Edits know the syntax and not the types: what the frontend refuses is taken back.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.fuzz.case import Argument, Case

EDITS: dict[str, list[Callable[[Mutant], None]]] = {}


def edit_of(family: str) -> Callable:
    """Registers an edit."""

    def register(edit: Callable[[Mutant], None]) -> Callable[[Mutant], None]:
        EDITS.setdefault(family, []).append(edit)
        return edit

    return register


class Unfit(Exception):
    """There is nothing in the kernel that the edit could change."""


@dataclass(frozen=True)
class Place:
    """A statement, `body[index]`; the names that are assigned before it; the loops around it."""

    body: list[ast.stmt]
    index: int
    scope: tuple[str, ...]
    num_loops: int
    function: ast.FunctionDef

    @property
    def statement(self) -> ast.stmt:
        return self.body[self.index]

    @property
    def is_in_kernel(self) -> bool:
        return self.function.name == "kernel"

    def insert(self, source: str, after: bool = False) -> None:
        self.body[self.index + after : self.index + after] = statements(source)

    def become(self, source: str) -> None:
        self.body[self.index : self.index + 1] = statements(source)


class Mutant:
    """What an edit changes; `case` is the program that it is by now."""

    def __init__(self, case: Case, rng: random.Random):
        self.rng, self._case = rng, case
        self.tree = ast.parse(case.source)
        self.arguments = list(case.arguments)
        self.grid, self.options = case.grid, dict(case.options)

    def case(self) -> Case:
        source = ast.unparse(ast.fix_missing_locations(self.tree)) + "\n"
        return self._case.with_(
            source=source, arguments=tuple(self.arguments), grid=self.grid, options=dict(self.options)
        )

    # -- what there is

    @property
    def kernel(self) -> ast.FunctionDef:
        return next(f for f in self.functions if f.name == "kernel")

    @property
    def functions(self) -> list[ast.FunctionDef]:
        return [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]

    def places(self) -> Iterator[Place]:
        """None in functions that are passed on: what a scan combines by has to stay associative."""
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        passed = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and id(n) not in called}
        for function in (function for function in self.functions if function.name not in passed):
            yield from _places(function.body, [arg.arg for arg in function.args.args], 0, function)

    def place(self, fits: Callable[[Place], bool] = lambda place: True) -> Place:
        return self.choose([place for place in self.places() if fits(place)])

    def expression(self, fits: Callable[[ast.expr], bool]) -> tuple[Place, ast.expr]:
        """One that fits, in the statement of a place."""
        return self.choose([(p, e) for p in self.places() for e in expressions_of(p.statement) if fits(e)])

    def numbers(self) -> list[Argument]:
        return [argument for argument in self.arguments if argument.size is None]

    def arrays(self) -> list[Argument]:
        return [argument for argument in self.arguments if argument.size is not None]

    def choose(self, among: Any) -> Any:
        """The same of a set in any process."""
        among = sorted(among) if isinstance(among, set) else list(among)
        if not among:
            raise Unfit
        return self.rng.choice(among)

    # -- changes

    def replace(self, node: ast.expr, source: str) -> None:
        self.tree = _Replace(node, expression(source)).visit(self.tree)

    def argue(self, argument: Argument, **changes: Any) -> None:
        self.arguments[self.arguments.index(argument)] = replace(argument, **changes)

    def argument(self, prefix: str, dtype: str, size: int | None, fill: Any) -> str:
        """A new one, and the parameter for it."""
        argument = Argument(self.name(prefix), dtype, size, fill, self.rng.randrange(1 << 20))
        self.arguments.append(argument)
        self.kernel.args.args.append(ast.arg(argument.name))
        return argument.name

    def name(self, prefix: str) -> str:
        """One that is not used."""
        used = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        used |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        used |= {function.name for function in self.functions}
        return next(name for n in range(1, 1000) if (name := f"{prefix}{n}") not in used)


def text(node: ast.AST) -> str:
    return ast.unparse(node)


def statements(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


def expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def is_call_of(node: ast.AST, *names: str) -> bool:
    """Whether it is `tl.name(...)`."""
    return isinstance(node, ast.Call) and text(node.func) in [f"tl.{name}" for name in names]


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((k for k in call.keywords if k.arg == name), None)


def is_constant(statement: ast.stmt) -> bool:
    """Whether it is `NAME: tl.constexpr = ...`."""
    return isinstance(statement, ast.AnnAssign)


def names_in(node: ast.AST) -> set[str]:
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}


def assigned_by(statement: ast.stmt) -> list[str]:
    """The names that it and what is in it assign."""
    stored = (n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return list(dict.fromkeys(stored))


def expressions_of(statement: ast.stmt) -> list[ast.expr]:
    """What it computes itself, without the statements in it: no names of functions, modules or types."""
    roots = [getattr(statement, name, None) for name in ("value", "test", "iter")]
    nodes = [node for root in roots if root is not None for node in ast.walk(root) if isinstance(node, ast.expr)]
    unnamed = {
        id(node.func) for node in nodes if isinstance(node, ast.Call) and not isinstance(node.func, ast.expr_context)
    }
    return [n for n in nodes if id(n) not in unnamed and not (isinstance(n, ast.Name) and n.id in ("tl", "triton"))]


def _places(body: list[ast.stmt], scope: list[str], num_loops: int, function: ast.FunctionDef) -> Iterator[Place]:
    scope = list(scope)
    for index, statement in enumerate(body):
        yield Place(body, index, tuple(scope), num_loops, function)
        is_loop = isinstance(statement, ast.For | ast.While)
        inner = [*scope, *(assigned_by_target(statement))]
        for name in ("body", "orelse"):
            yield from _places(getattr(statement, name, None) or [], inner, num_loops + is_loop, function)
        scope += [name for name in assigned_by(statement) if name not in scope]


def assigned_by_target(statement: ast.AST) -> list[str]:
    """What a loop assigns before each round."""
    return sorted(names_in(statement.target)) if isinstance(statement, ast.For) else []


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.expr, by: ast.expr):
        self._target, self._by = target, by

    def visit(self, node: ast.AST) -> ast.AST:
        return self._by if node is self._target else self.generic_visit(node)

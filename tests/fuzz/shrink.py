"""A smaller program with the same failure.

    small = shrink(case, lambda candidate: fails(candidate))

Works on the Python syntax of the source, knowing nothing of types: what the frontend refuses does not fail alike.

    slices            what one store needs
    statements        in chunks, from the half of all down to single ones
    loops, branches   replaced by their bodies
    expressions       replaced by one of their operands, or by a number
    numbers           halved everywhere, then one by one
    options, grid     to the simplest
    arguments         unused ones dropped, simpler contents
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.case import Case

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, seconds: float = 90.0) -> Case:
    """Passes over the program until none makes it smaller, or time is up."""
    deadline = time.monotonic() + seconds
    passes = (_slices, _statements, _options, _unwrapped, _operands, _slices, _statements, _halved, _numbers, _contents)
    while True:
        before = case
        for candidates in passes:
            case = _reduce(case, candidates, fails, deadline)
        if case == before or time.monotonic() > deadline:
            return case


def _reduce(case: Case, candidates: Callable[[Case], Iterator[Case]], fails: Fails, deadline: float) -> Case:
    """Takes each candidate that still fails, and goes on from there at the same place."""
    position = 0
    while time.monotonic() < deadline:
        for index, candidate in enumerate(candidates(case)):
            if index < position:
                continue
            position = index
            if time.monotonic() > deadline:
                return case
            if not _is_python(candidate.source):
                continue
            tidied = tidy(candidate)
            if size(tidied) < size(case) and fails(tidied):
                case = tidied
                break
        else:
            return case
    return case


def _is_python(source: str) -> bool:
    """Whether a text parses: a number in the place of a name that is assigned to does not."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def size(case: Case) -> tuple:
    """What is to become smaller: the text, then what the numbers in it are, then how plain options and contents are."""
    numbers = [node.value for node in ast.walk(ast.parse(case.source)) if isinstance(node, ast.Constant)]
    plain = sum(argument.fill not in ("arange", "ones", "zeros", "poison", 0) for argument in case.arguments)
    whole = sum(abs(n) for n in numbers if isinstance(n, (int, float)) and not isinstance(n, bool) and abs(n) < 1e300)
    options = (sum(case.grid), len(case.options), sum(map(int, case.options.values())))
    nodes = sum(1 for _ in ast.walk(ast.parse(case.source)))
    return (nodes, len(case.arguments), sum(options), options, whole, plain)


def tidy(case: Case) -> Case:
    """Without functions and parameters that nothing uses."""
    tree = ast.parse(case.source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    tree.body = [f for f in tree.body if not isinstance(f, ast.FunctionDef) or f.name in names | {"kernel"}]
    kernel = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "kernel")
    used = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
    kernel.args.args = [arg for arg in kernel.args.args if arg.arg in used]
    kept = {arg.arg for arg in kernel.args.args}
    return case.with_(source=ast.unparse(tree) + "\n", arguments=tuple(a for a in case.arguments if a.name in kept))


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list) and not isinstance(node, ast.Module):
                yield body


def _statements(case: Case) -> Iterator[Case]:
    """Without a run of statements; from long runs to single ones, from the end to the begin."""
    count = sum(len(body) for body in _bodies(ast.parse(case.source)))
    length = max(count // 2, 1)
    while length:
        for begin in range(count - length, -length, -length):
            yield case.with_(source=_without(case.source, range(max(begin, 0), begin + length)))
        length //= 2


def _swept(tree: ast.Module) -> str:
    """Without assignments that no effect, condition or range needs."""
    assignments = [s for s in ast.walk(tree) if isinstance(s, ast.Assign | ast.AugAssign)]
    inside = {id(node) for assignment in assignments for node in ast.walk(assignment)}
    live = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in inside}
    before = -1
    while len(live) != before:
        before = len(live)
        for assignment in assignments:
            if _assigned(assignment) & live:
                live |= _names(assignment.value)
    for body in _bodies(tree):
        body[:] = [s for s in body if not isinstance(s, ast.Assign | ast.AugAssign) or _assigned(s) & live]
    return _filled(tree)


def _assigned(statement: ast.Assign | ast.AugAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return set().union(*map(_names, targets))


def _names(node: ast.AST) -> set[str]:
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name)}


def _slices(case: Case) -> Iterator[Case]:
    """What one effect needs: one store or atomic alone; the rest of the effects gone."""
    yield case.with_(source=_swept(ast.parse(case.source)))
    effects = [s for body in _bodies(ast.parse(case.source)) for s in body if isinstance(s, ast.Expr)]
    places = {(s.lineno, s.col_offset) for s in effects}
    for kept in sorted(places, reverse=True):
        tree = ast.parse(case.source)
        for body in _bodies(tree):
            body[:] = [s for s in body if not isinstance(s, ast.Expr) or (s.lineno, s.col_offset) == kept]
        yield case.with_(source=_swept(ast.parse(_filled(tree))))


def _filled(tree: ast.Module) -> str:
    """The text; an empty body gets a `pass`."""
    for node in ast.walk(tree):
        if getattr(node, "body", None) == [] and isinstance(node, ast.stmt):
            node.body = [ast.Pass()]
    return ast.unparse(tree)


def _without(source: str, dropped: range) -> str:
    tree = ast.parse(source)
    numbered = sorted((s for body in _bodies(tree) for s in body), key=lambda s: (s.lineno, s.col_offset))
    gone = {id(statement) for index, statement in enumerate(numbered) if index in dropped}
    for body in list(_bodies(tree)):
        body[:] = [statement for statement in body if id(statement) not in gone]
    return _filled(tree)


def _unwrapped(case: Case) -> Iterator[Case]:
    """A loop or a branch replaced by what is in it."""
    tree = ast.parse(case.source)
    places = [
        (body, i) for body in _bodies(tree) for i, s in enumerate(body) if isinstance(s, ast.For | ast.While | ast.If)
    ]
    for body, index in places:
        statement = body[index]
        for inner in (statement.body, statement.orelse):
            if inner:
                body[index : index + 1] = inner
                yield case.with_(source=ast.unparse(tree))
                body[index : index + len(inner)] = [statement]


def _replaced(case: Case, alternatives: Callable[[ast.expr], list[ast.expr]]) -> Iterator[Case]:
    """With one expression replaced by an alternative."""
    for index, node in enumerate(_expressions(ast.parse(case.source))):
        for alternative in alternatives(node):
            tree = ast.parse(case.source)
            target = list(_expressions(tree))[index]
            _Replace(target, copy.deepcopy(alternative)).visit(tree)
            yield case.with_(source=ast.unparse(tree))


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.expr, by: ast.expr):
        self._target, self._by = target, by

    def visit(self, node: ast.AST) -> ast.AST:
        return self._by if node is self._target else self.generic_visit(node)


def _expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """Those that compute something; no names of functions."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return | ast.If | ast.While | ast.For):
            for field in ("value", "test", "iter"):
                root = getattr(node, field, None)
                if root is not None:
                    yield from (e for e in ast.walk(root) if isinstance(e, ast.expr) and id(e) not in called)


def _operands(case: Case) -> Iterator[Case]:
    def alternatives(node: ast.expr) -> list[ast.expr]:
        match node:
            case ast.BinOp(left, _, right):
                return [left, right]
            case ast.UnaryOp(_, operand):
                return [operand]
            case ast.Compare(left, _, comparators):
                return [left, *comparators]
            case ast.Call(ast.Attribute(value), arguments, keywords):
                fewer = [ast.Call(node.func, arguments, keywords[:i] + keywords[i + 1 :]) for i in range(len(keywords))]
                is_method = not (isinstance(value, ast.Name) and value.id == "tl")
                return [*fewer, *([value] if is_method else []), *arguments, *(k.value for k in keywords)]
            case ast.Call(_, arguments, _):
                return list(arguments)
            case ast.Subscript(value):
                return [value]
            case ast.Name(name) if name != "tl":
                return [ast.Constant(1), ast.Constant(0)]
        return []

    return _replaced(case, alternatives)


def _halved(case: Case) -> Iterator[Case]:
    """Every occurrence of a number replaced by its half."""
    numbers = {
        n.value for n in ast.walk(ast.parse(case.source)) if isinstance(n, ast.Constant) and type(n.value) is int
    }
    for number in sorted(numbers, reverse=True):
        if number > 1:
            tree = ast.parse(case.source)
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and type(node.value) is int and node.value == number:
                    node.value = number // 2
            yield case.with_(source=ast.unparse(tree))


def _numbers(case: Case) -> Iterator[Case]:
    def alternatives(node: ast.expr) -> list[ast.expr]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1):
            return [ast.Constant(value) for value in (0, 1, node.value // 2)]
        return []

    return _replaced(case, alternatives)


def _options(case: Case) -> Iterator[Case]:
    for name in list(case.options):
        yield case.with_(options={k: v for k, v in case.options.items() if k != name})
    for name, plain in (("num_warps", 1), ("num_stages", 1), ("num_ctas", 2)):
        if name in case.options and case.options[name] != plain:
            yield case.with_(options={**case.options, name: plain})
    if case.grid != (1,):
        yield case.with_(grid=(1,))
        yield case.with_(grid=(2,))


def _contents(case: Case) -> Iterator[Case]:
    for index, argument in enumerate(case.arguments):
        plain = ("zeros", "ones", "arange") if argument.size is not None else (0,)
        for fill in plain:
            if argument.fill not in (*plain[: plain.index(fill) + 1], "poison", "index", "unique"):
                changed = replace(argument, fill=fill)
                yield case.with_(arguments=(*case.arguments[:index], changed, *case.arguments[index + 1 :]))

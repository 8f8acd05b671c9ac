"""The source of a lambda, as the `def` that it stands for, with the places of its nodes in the file.

    run[(1,)](x, lambda n: 2 * n, lambda n: n + 1)      two of one line: Python knows where the code of each is

        def <lambda>(n): return 2 * n

Only a file, or a text that is registered with linecache, says which of the lambdas of a line it is.
`syntax_tree` parses, also what is no lambda.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType

Span = tuple[int, int, int, int]  # lines and columns of the first and the last character, as `co_positions` counts
_MOST_PARSES = 20


def syntax_tree(text: str | bytes) -> ast.Module:
    """The tree of a module; whoever parses Python asks for it here.

    CPython 3.11 counts how deep it is in trees for all threads together. Where a collection of garbage in the middle of
    `ast.parse` runs Python, which lets another thread parse, the count is wrong at the end of both, a SystemError. That
    says nothing of the text, so it is parsed again.
    """
    for _ in range(_MOST_PARSES):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def definition_of_lambda(fn: FunctionType, file_lines: Sequence[str] = ()) -> tuple[list[str], int, ast.FunctionDef]:
    """Its lines, the number of the first one, and its tree, in which that line is line 1. `file_lines` are those of its
    file, where they were taken before.

    Raises OSError where the source is not there, or does not say which lambda it is.
    """
    lines = list(file_lines) or _lines(fn)
    code = list(_spans(fn.__code__))
    lambdas = (node for node in ast.walk(syntax_tree("".join(lines))) if isinstance(node, ast.Lambda))
    found = [node for node in lambdas if node.lineno == fn.__code__.co_firstlineno and _has(node, code)]
    if not (found and code):
        raise OSError("which lambda of its line it is, is not known")
    node = max(found, key=lambda each: (each.body.lineno, each.body.col_offset))  # the others are around it
    first, last = node.lineno, node.end_lineno
    return lines[first - 1 : last], first, ast.increment_lineno(_as_def(node), 1 - first)


def _lines(fn: FunctionType) -> list[str]:
    file = inspect.getsourcefile(fn) or fn.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    if not lines:
        raise OSError("could not get source code")
    return lines


def _spans(code: CodeType) -> Iterator[Span]:
    """Where in the file its instructions come from, without those that are of no place."""
    for first, last, column, end in code.co_positions():
        if None not in (first, last, column, end) and column != end:
            yield first, last, column, end


def _has(node: ast.Lambda, code: Sequence[Span]) -> bool:
    """Whether all of the code comes from the body of a lambda. One around it has more: it makes a function of that."""
    body = node.body
    return all(_within((body.lineno, body.end_lineno, body.col_offset, body.end_col_offset), span) for span in code)


def _within(outer: Span, inner: Span) -> bool:
    return (outer[0], outer[2]) <= (inner[0], inner[2]) and (inner[1], inner[3]) <= (outer[1], outer[3])


def _as_def(node: ast.Lambda) -> ast.FunctionDef:
    result = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(ast.FunctionDef("<lambda>", node.args, [result], decorator_list=[]), node)

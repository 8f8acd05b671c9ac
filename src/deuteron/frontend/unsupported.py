"""Python that the tile language does not have, and what to write instead.

    k.py:7:5: error: 'match' is not supported in a kernel. Use `if` and `elif`.

Whatever is not in the table here and not in the tables of handlers is shown by its name in Python's grammar.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

from deuteron.errors import CompilationError, UnsupportedLanguageConstruct

if TYPE_CHECKING:
    from deuteron.frontend.context import Context

_EXCEPTIONS = "a kernel has no exceptions. Use `tl.static_assert` or `tl.device_assert`"
_COMPREHENSION = "Write the items out, or use a `tl.static_range` loop"
_SETS = "a kernel has tuples, but no sets or dictionaries. Use a tuple, or parameters of their own"

WAY_OUT: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lambda: ("'lambda'", "Define a function with @jit"),
    ast.FunctionDef: ("a nested function", "Define it outside, with @jit"),
    ast.AsyncFunctionDef: ("a nested function", "Define it outside, with @jit"),
    ast.ClassDef: ("a class", "Define it outside"),
    ast.With: ("'with'", "Call what the block needs directly"),
    ast.Try: ("'try'", _EXCEPTIONS),
    ast.Raise: ("'raise'", _EXCEPTIONS),
    ast.Import: ("'import'", "Import at the top of the file"),
    ast.ImportFrom: ("'import'", "Import at the top of the file"),
    ast.Global: ("'global'", "A kernel cannot change a variable outside of it. Store to a pointer"),
    ast.Nonlocal: ("'nonlocal'", "A kernel cannot change a variable outside of it. Store to a pointer"),
    ast.Delete: ("'del'", "Leave it out: values take no room once they are unused"),
    ast.Match: ("'match'", "Use `if` and `elif`"),
    ast.SetComp: ("a set comprehension", _COMPREHENSION),
    ast.DictComp: ("a dictionary comprehension", _COMPREHENSION),
    ast.Yield: ("'yield'", "Return a tuple"),
    ast.YieldFrom: ("'yield'", "Return a tuple"),
    ast.Dict: ("a dictionary", _SETS),
    ast.Set: ("a set", _SETS),
    ast.Starred: (
        "a starred expression here",
        "Arguments of a call, items of a tuple and one target of an assignment can be starred",
    ),
}


def unsupported(ctx: Context) -> CompilationError:
    """The error for the node at hand, of which nothing handles the class."""
    node = ctx.frame.node
    what, way_out = WAY_OUT.get(type(node), (f"Python's {type(node).__name__}", "Write it in another way"))
    message = f"{_capitalised(what)} is not supported in a kernel. {_capitalised(way_out)}.{_said(ctx, node)}"
    return ctx.error(message, UnsupportedLanguageConstruct)


def _said(ctx: Context, node: ast.AST) -> str:
    """What a `raise` says, as far as it is known: where one is compiled, constexprs have led to it."""
    error = node.exc if isinstance(node, ast.Raise) else None
    if not isinstance(error, ast.Call) or not error.args:
        return ""
    with suppress(CompilationError):
        said = ctx.evaluate(error.args[0])
        return f" This one says: {said}" if isinstance(said, str) else ""
    return ""


def _capitalised(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"

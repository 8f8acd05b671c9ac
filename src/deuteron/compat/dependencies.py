"""`triton.runtime.jit.DependenciesFinder`: a key of a function's text and of what it uses, for caches of programs.

    finder = DependenciesFinder(name=fn.__name__, globals=fn.__globals__, src=fn.src)
    finder.visit(fn.parse())
    finder.ret, finder.used_global_vals         "5d41...", {("SCALE", id(globals)): (2, globals)}

Deuteron's own keys are `fn.cache_key`. Names that are in neither of the dictionaries count by their text alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from deuteron.language.builtin import Builtin
from deuteron.language.functions.references import is_value
from deuteron.language.functions.source_functions import SourceFunction
from deuteron.language.functions.stable_text import stable_repr


class DependenciesFinder(ast.NodeVisitor):
    """Visits the tree of a function. `nonlocals` are the variables of the functions that it is defined in."""

    def __init__(
        self, name: str, globals: dict[str, Any], nonlocals: Mapping[str, Any] | None = None, src: str = ""
    ) -> None:
        self.name = name
        self.globals, self.nonlocals = globals, nonlocals or {}
        self.used_global_vals: dict[tuple[str, int], tuple[Any, Mapping[str, Any]]] = {}
        self._digest = hashlib.sha256(src.encode())
        self._own: set[str] = set()

    @property
    def ret(self) -> str:
        return self._digest.hexdigest()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        inside = list(ast.walk(node))
        self._own |= {each.arg for each in inside if isinstance(each, ast.arg)}
        self._own |= {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        for namespace in (self.nonlocals, self.globals):
            if node.id in namespace and node.id not in self._own:
                self._note(node.id, namespace[node.id], namespace)
                return

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Of a module that is a variable: what is used of it."""
        owner = self.globals.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(owner, ModuleType) and hasattr(owner, node.attr):
            self._note(f"{node.value.id}.{node.attr}", getattr(owner, node.attr), vars(owner))
        else:
            self.generic_visit(node)

    def _note(self, name: str, value: Any, namespace: Mapping[str, Any]) -> None:
        if isinstance(value, SourceFunction):
            self._digest.update(f"{name} {value.cache_key}\n".encode())
        elif is_value(value) and not isinstance(value, Builtin):
            self.used_global_vals[name, id(namespace)] = value, namespace
            self._digest.update(f"{name} = {stable_repr(value)}\n".encode())

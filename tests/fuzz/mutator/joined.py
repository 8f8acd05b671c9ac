"""Two kernels in one: another one after a kernel, before it, or in some of its programs.

def kernel(x_ptr, out_ptr, n):          def kernel(x_ptr, out_ptr, n, x_ptr_2, w_ptr_2):
    ...                                     ...
                                            if tl.program_id(0) == 0:
                                                ...
"""

from __future__ import annotations

import ast
from dataclasses import replace

from tests.fuzz.case import Case
from tests.fuzz.mutator.mutant import Mutant, Unfit, edit_of, names_in, statements
from tests.fuzz.mutator.originals import original

LIBRARY = {"tl", "triton", "range", "float", "min", "max", "_"}


@edit_of("joined")
def another_kernel(mutant: Mutant) -> None:
    other = original(mutant.rng)
    functions = _renamed(mutant, other)
    kernel = functions.pop()
    if any(isinstance(node, ast.Return) for node in ast.walk(kernel)):
        raise Unfit
    mutant.tree.body[:0] = functions
    mutant.kernel.args.args += kernel.args.args
    body = mutant.kernel.body
    constants = [s for s in kernel.body if isinstance(s, ast.AnnAssign)]
    rest = [s for s in kernel.body if not isinstance(s, ast.AnnAssign)]
    if mutant.rng.random() < 0.4:
        [branch] = statements(f"if tl.program_id(0) {mutant.choose(('==', '!=', '>'))} 0:\n    pass")
        branch.body, rest = rest, [branch]
    where = mutant.choose((0, len(body)))
    body[where:where] = [*constants, *rest]


def _renamed(mutant: Mutant, other: Case) -> list[ast.FunctionDef]:
    """The functions of the other one, with names of their own; its arguments are added."""
    tree = ast.parse(other.source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = (names_in(tree) | parameters | {function.name for function in functions}) - LIBRARY
    renamed = {name: mutant.name(f"{name}_") for name in sorted(names)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = renamed.get(node.arg, node.arg)
        elif isinstance(node, ast.FunctionDef):
            node.name = renamed.get(node.name, node.name)
    mutant.arguments += [replace(a, name=renamed.get(a.name, a.name)) for a in other.arguments]
    return functions

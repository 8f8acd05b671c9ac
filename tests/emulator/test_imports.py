"""Imports of the emulator, those for annotations too, go one way: no more than three files name each other."""

from __future__ import annotations

import ast
from pathlib import Path

import deuteron.emulator

ROOT = Path(deuteron.emulator.__file__).parent


def imported(path: Path) -> set[str]:
    """The modules of the emulator that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deuteron.emulator"):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def test_no_circle_is_large():
    files = {".".join(path.relative_to(ROOT.parents[1]).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    edges = {name: imported(path) & files.keys() - {name} for name, path in files.items()}
    reached = {name: set(targets) for name, targets in edges.items()}
    changed = True
    while changed:
        before = sum(len(targets) for targets in reached.values())
        for targets in reached.values():
            targets |= set().union(*(reached[target] for target in targets))
        changed = sum(len(targets) for targets in reached.values()) != before
    circles = [{other for other in targets if name in reached[other]} for name, targets in reached.items()]
    assert max(map(len, circles)) == 3, max(circles, key=len)

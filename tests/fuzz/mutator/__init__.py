"""Mutants of real kernels: those of tests/kernels and of the examples, changed by random edits that leave them valid.

    case = mutate(7)                a program of the fuzzer, of some kernel

originals.py    a launch as a program of the fuzzer
mutant.py       what an edit changes, and where it can
validity.py     which mutants have one meaning: accesses in bounds, no races, an end
sizes.py, types.py, masks.py, loops.py, shifted.py, expressions.py, accesses.py, joined.py    the edits

An edit knows the syntax alone. One that the frontend refuses, or that leaves no valid program, is taken back; what the
definition does after the others is what every executor has to do.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Collection
from dataclasses import replace

from tests.fuzz.case import Case
from tests.fuzz.mutator import accesses, expressions, joined, loops, masks, shifted, sizes, types  # noqa: F401 (add edits)
from tests.fuzz.mutator.mutant import EDITS, Mutant, Unfit
from tests.fuzz.mutator.originals import original
from tests.fuzz.mutator.validity import Failed, lowered, valid, written

EDITS_OF_A_MUTANT = (1, 2, 3, 4, 6, 8, 12)
FREQUENCY = {"joined": 0.1}
TRIES = 6
"""Edits of one family until one is taken."""


def mutate(seed: int, families: Collection[str] = ()) -> Case:
    """`families`: of edits, that there are much of."""
    rng = random.Random(seed)
    weights = [FREQUENCY.get(f, 1) * (8 if f in families else rng.choice((0.3, 1, 1, 3))) for f in EDITS]
    try:
        case = _valid_original(seed, rng)
        for _ in range(rng.choice(EDITS_OF_A_MUTANT)):
            case = _edited(case, EDITS[rng.choices(list(EDITS), weights)[0]], rng)
        return _named(case, written(case, lowered(case)))
    except Failed as failed:
        return failed.case


def _valid_original(seed: int, rng: random.Random) -> Case:
    """With the floats that it got it may not end, or a place may be out of bounds."""
    while True:
        case = original(rng).with_(seed=seed)
        found = valid(case, lowered(case))
        if found is not None:
            return found


def _edited(case: Case, edits: list[Callable[[Mutant], None]], rng: random.Random) -> Case:
    """With one of the edits, unless none of some is one that leaves it valid."""
    for _ in range(TRIES):
        mutant = Mutant(case, rng)
        try:
            rng.choice(edits)(mutant)
        except Unfit:
            continue
        candidate = mutant.case()
        module = lowered(candidate) if candidate != case else None
        found = valid(candidate, module) if module is not None else None
        if found is not None:
            return found
    return case


def _named(case: Case, outputs: set[str]) -> Case:
    """Arrays named by whether they are written: `in_...`, `io_...`. None is read-only (`x...`): a store that no program
    gets to is one for a launch."""
    names = {a.name: f"{'io' if a.name in outputs else 'in'}_{a.name}" for a in case.arguments if a.size is not None}
    tree = ast.parse(case.source)
    kernel = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "kernel")
    for node in ast.walk(kernel):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
    arguments = tuple(replace(a, name=names.get(a.name, a.name)) for a in case.arguments)
    return case.with_(source=ast.unparse(tree) + "\n", arguments=arguments)

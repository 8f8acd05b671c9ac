"""Mutants of real kernels (tests/kernels, the examples, the GPU's benchmark): changed by edits that leave them valid.

    case = mutate(7)                a program of the fuzzer, of some kernel

launches.py     kernels with their arguments
originals.py    a launch as a program of the fuzzer
mutant.py       what an edit changes, and where it can
sizes.py, types.py, masks.py, loops.py, shifted.py, expressions.py, accesses.py, joined.py    the edits

An edit knows the syntax alone. One that the frontend refuses, or that leaves no valid program, is taken back; what the
definition does after the others is what every executor has to do.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from tests.fuzz.case import Case
from tests.fuzz.mutator import accesses, expressions, joined, loops, masks, shifted, sizes, types  # noqa: F401 (add edits)
from tests.fuzz.mutator.mutant import EDITS, Mutant, Unfit
from tests.fuzz.mutator.originals import original
from tests.fuzz.validity import Failed, lowered, valid, written

SERIES = 8
"""Mutants of one kernel, each of the one before it: most of the time goes into finding edits that leave it valid."""
EDITS_OF_A_STEP = (1, 2, 3)
FREQUENCY = {"joined": 0.1}
TRIES = 6
"""Edits of one family until one is taken."""


def mutate(seed: int, families: Collection[str] = ()) -> Case:
    """`families`: of edits, that there are much of."""
    steps = _series(seed // SERIES, tuple(families))
    while len(steps.mutants) <= seed % SERIES:
        steps.next()
    case = steps.mutants[seed % SERIES].with_(seed=seed)
    try:
        return _named(case, written(case, lowered(case)))
    except Failed:
        return case


@dataclass
class _Series:
    """An original, and edits until one makes a case that the frontend or the interpreter fails at."""

    rng: random.Random
    weights: list[float]
    mutants: list[Case]

    def next(self) -> None:
        case = self.mutants[-1]
        try:
            for _ in range(self.rng.choice(EDITS_OF_A_STEP)):
                case = _edited(case, EDITS[self.rng.choices(list(EDITS), self.weights)[0]], self.rng)
        except Failed as failed:
            case = failed.case
        self.mutants.append(case)


@lru_cache(maxsize=4)
def _series(number: int, families: tuple[str, ...]) -> _Series:
    rng = random.Random(number)
    weights = [FREQUENCY.get(f, 1) * (8 if f in families else rng.choice((0.3, 1, 1, 3))) for f in EDITS]
    return _Series(rng, weights, [_valid_original(rng)])


def _valid_original(rng: random.Random) -> Case:
    """With the floats that it got it may not end, or a place may be out of bounds."""
    while True:
        case = original(rng)
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

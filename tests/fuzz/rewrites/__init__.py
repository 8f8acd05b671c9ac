"""Programs that are written another way and mean the same: what they store must not change.

    case = rewrite(7)               a program of the generator, rewritten; `case.original` is the program
    written_anew(case, rng)         any case

same_values.py    functions that give back what they are given, put around values and addresses
accesses.py       functions that load and store by halves, in loops, in branches
statements.py     the rewrites: these, loops as other loops, statements in functions, numbers that are known

The interpreter says what the rewritten program stores, as of every case; that it stores what the original does is the
outcome `original`, which finds what the frontend and the interpreter, whose tile IR all others compile, have in common.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from tests.fuzz.case import Case
from tests.fuzz.generator import generate
from tests.fuzz.mutator import mutate
from tests.fuzz.mutator.mutant import Mutant, Unfit
from tests.fuzz.rewrites.statements import REWRITES
from tests.fuzz.validity import Failed, lowered

MOST_REWRITES, TRIES = 8, 3
LENGTHS = (1, 2, 3, 5, 8)
SHARE_OF_MUTANTS = 0.25


def rewrite(seed: int, families: Collection[str] = ()) -> Case:
    """A fourth of them mutants of real kernels."""
    rng = random.Random(seed)
    if not families and rng.random() < SHARE_OF_MUTANTS:
        return written_anew(mutate(seed), rng)
    return written_anew(generate(seed, families, lengths=LENGTHS), rng)


def written_anew(case: Case, rng: random.Random) -> Case:
    """By some rewrites; as it is where the frontend takes none."""
    try:
        if lowered(case) is None:
            return case
        new = case
        for _ in range(rng.randint(1, MOST_REWRITES)):
            new = _further(new, rng)
        return new if new is case else new.with_(original=case)
    except Failed as failed:
        return failed.case


def _further(case: Case, rng: random.Random) -> Case:
    names, weights = list(REWRITES), [weight for weight, _ in REWRITES.values()]
    for _ in range(TRIES):
        mutant = Mutant(case, rng)
        _, change = REWRITES[rng.choices(names, weights)[0]]
        try:
            change(mutant)
        except Unfit:
            continue
        candidate = mutant.case()
        if lowered(candidate) is not None:
            return candidate
    return case

"""The fuzzer's programs with tile IR that is changed by edits which leave them one meaning.

case = edit(7)
case.edits              (2893741, 58120): what `ir_edits.edited` makes of its tile IR
"""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.case import Case
from tests.fuzz.generator import generate
from tests.fuzz.ir_edits import edited_once, without_hints
from tests.fuzz.validity import Failed, lowered, valid

WITHOUT = ("promise", "watched")  # what an edit would make a lie
MOST_EDITS, TRIES = 8, 4
LENGTHS = (1, 1, 2, 3, 5)


def edit(seed: int) -> Case:
    """As it is where no edits leave one meaning."""
    case = generate(seed, without=WITHOUT, lengths=LENGTHS)
    rng = random.Random(seed)
    try:
        module = lowered(case)
        if module is None or valid(case, module) is None:
            return case
        module = without_hints(module)
        for _ in range(rng.randint(1, MOST_EDITS)):
            case, module = _further(case, module, rng)
    except Failed:
        pass
    return case


def _further(case: Case, module: Any, rng: random.Random) -> tuple[Case, Any]:
    for _ in range(TRIES):
        number = rng.getrandbits(32)
        other = edited_once(module, random.Random(number))
        candidate = valid(case.with_(edits=(*case.edits, number)), other)
        if candidate is not None:
            return candidate, other
    return case, module

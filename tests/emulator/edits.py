"""Cases by name, with an edit of their PTX, which makes a fault.

run(CASES["vectors"], edit(CASES["vectors"].ptx, "bar.sync 0;"), rng)
"""

from __future__ import annotations

import numpy as np
from emulator.case import Case
from emulator.cases import ALL_CASES

from deuteron.emulator import EmulatorOptions, launch

CASES = {case.name: case for case in ALL_CASES}


def edit(ptx: str, old: str, new: str = "", which: int = 0) -> str:
    """Replace one occurrence, which has to be there."""
    position = -1
    for _ in range(which + 1):
        position = ptx.index(old, position + 1)
    return ptx[:position] + new + ptx[position + len(old) :]


def run(case: Case, ptx: str, rng: np.random.Generator, **options) -> None:
    made = case.make(rng)
    launch(ptx, "k", case.grid, case.block, case.shared, made.args, case.cluster, EmulatorOptions(**options))

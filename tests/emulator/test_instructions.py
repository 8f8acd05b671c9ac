"""Every instruction family, one hand-written PTX program each, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.case import Case, check
from emulator.cases import ALL_CASES
from emulator.cases.floating import LATER_CASES

from deuteron.emulator import EmulatorOptions, launch


@pytest.mark.parametrize("case", [*ALL_CASES, *LATER_CASES], ids=lambda case: case.name)
def test_matches_numpy(case: Case, rng: np.random.Generator):
    run = case.make(rng)
    launch(case.ptx, "k", case.grid, case.block, case.shared, run.args, case.cluster, EmulatorOptions())
    check(case, run)

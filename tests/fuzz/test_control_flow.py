"""Programs of Python's control flow, which CPython runs too."""

import numpy as np
import pytest

from tests.fuzz.campaign import Campaign, run
from tests.fuzz.case import Argument, Case
from tests.fuzz.control_flow import control_flow, run_by_python


def test_as_cpython_does(tmp_path):
    campaign = Campaign(
        0, 8, ("python", "cpu", "cuda:90"), folder=tmp_path, timeout=120, shrink_seconds=20, make=control_flow
    )
    report = run(campaign)
    assert not report.signatures, report.table()
    assert report.tally["python", "ok"] == report.tally["cpu", "ok"] == 8, report.table()


def test_a_seed_gives_one_program():
    assert control_flow(5) == control_flow(5)
    assert control_flow(5).source != control_flow(6).source


def test_loops_end():
    source = "@triton.jit\ndef kernel(out):\n    for i in range(1000000):\n        tl.store(out, i)\n"
    case = Case(0, source, (Argument("out", "int32", 1, "poison"),), (1,))
    [out] = values = case.values()
    with pytest.raises(TimeoutError):
        run_by_python(case, values)
    assert np.all(out < 1000)

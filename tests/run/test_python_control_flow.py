"""Random control flow gives what CPython gives for the same text."""

import numpy as np
import pytest

from tests.fuzz.control_flow import control_flow, run_by_python


def check_program(seed: int) -> None:
    case = control_flow(seed)
    expected, got = case.values(), case.values()
    run_by_python(case, expected)
    case.function()[case.grid](*got, **case.options)
    for ours, theirs in zip(got, expected, strict=True):
        if isinstance(ours, np.ndarray):  # of floats the bits: zeros have signs
            np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32), f"seed {seed}\n{case.source}")


@pytest.mark.parametrize("seed", range(3))
def test_as_python_does(seed):
    check_program(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 200))
def test_as_python_does_in_many_programs(seed):
    check_program(seed)

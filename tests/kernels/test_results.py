"""Each kernel gives what NumPy gives in float64, on every executor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.families import CASES


@pytest.mark.parametrize("name", CASES)
def test_results(rng: np.random.Generator, executor: str, name: str):
    case = CASES[name](rng)
    for step in case.steps:
        step()
    for number, (got, expected, tolerance) in enumerate(case.expected):
        check(f"output {number}", got, np.asarray(expected), tolerance)


def check(what: str, got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert got.shape == expected.shape, what
    if tolerance == 0:
        np.testing.assert_array_equal(got, expected, what)
        return
    error = np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()
    assert error <= tolerance, f"{what}: relative error {error:.2e}, allowed {tolerance:.0e}"


def test_there_are_sixty_kernels():
    kernels = {launch.kernel.__name__ for make in CASES.values() for launch in make(np.random.default_rng(0)).launches}
    assert len(kernels) >= 60

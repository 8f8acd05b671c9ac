"""log and log2 by pieces on AVX-512: near the true value at the seams of pieces, the same bits in any width."""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.backend.cpu.math.log_pieces import log, log2
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from tests.backend.cpu.math.test_math import SPECIAL, worst_error

TARGET = cpu_target(*resolve_cpu("native"))
FUNCTIONS = {"log": (log, np.log), "log2": (log2, np.log2)}


def near_seams() -> np.ndarray:
    """Floats around the points where a piece or an octave ends, and around the smallest normal one."""
    seams = np.array([(k + 0.5) / 32 for k in range(23, 48)] + [0.75, 1.0, 1.5, 2.0**-126], np.float32)
    bits = seams.view(np.int32)[:, None] + np.arange(-50, 51, dtype=np.int32)
    return np.concatenate([bits.view(np.float32).ravel() * np.float32(2.0**e) for e in (0, -1, 1, 90)])


@pytest.mark.parametrize("width", [1, 4, 16, 64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors(elementwise, rng, name, width):
    function, reference = FUNCTIONS[name]
    anything = rng.integers(0, 0x7F800000, 20000, np.int32).view(np.float32)
    powers = 2.0 ** np.arange(-149, 128)
    x = np.concatenate([near_seams(), anything, rng.random(20000) + 0.5, powers, SPECIAL, -powers]).astype(np.float32)
    got = elementwise(lambda b, value: function(b, value, TARGET), x, result=np.float32, width=width)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.longdouble))
    assert worst_error(got, expected) <= (1 if TARGET.vector_bits < 512 else 0.81)
    if name == "log2":
        np.testing.assert_array_equal(got[-2 * powers.size - len(SPECIAL) :][: powers.size], np.arange(-149, 128))
    whole = elementwise(lambda b, value: function(b, value, TARGET), x, result=np.float32, width=16)
    np.testing.assert_array_equal(got.view(np.int32), whole.view(np.int32))


def test_special_numbers(elementwise):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -1e-45, 1.0], np.float32)
    for function, _ in FUNCTIONS.values():
        got = elementwise(lambda b, value, f=function: f(b, value, TARGET), x, result=np.float32, width=4)
        np.testing.assert_array_equal(got, [-np.inf, -np.inf, np.inf, *[np.nan] * 4, 0.0])

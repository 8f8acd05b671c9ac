"""cdiv and next_power_of_2."""

import numpy as np
import pytest

from deuteron import cdiv, next_power_of_2
from deuteron.language import constexpr


@pytest.mark.parametrize(
    ("x", "y", "expected"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2), (2**60 + 1, 2, 2**59 + 1)]
)
def test_cdiv(x, y, expected):
    assert cdiv(x, y) == expected
    assert cdiv(constexpr(x), y) == expected


@pytest.mark.parametrize(
    ("n", "expected"), [(0, 0), (1, 1), (2, 2), (3, 4), (1023, 1024), (1025, 2048), (2**40 + 1, 2**41)]
)
def test_next_power_of_2(n, expected):
    assert next_power_of_2(n) == expected
    assert next_power_of_2(np.int64(n)) == expected
    assert type(next_power_of_2(np.int64(n))) is int


@pytest.mark.parametrize("n", [5.0, "5", None])
def test_next_power_of_2_of_what_is_no_whole_number(n):
    with pytest.raises(TypeError, match=f"takes a whole number, got {n!r}: divide with //"):
        next_power_of_2(n)

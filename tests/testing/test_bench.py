"""do_bench: times, quantiles, summaries."""

import time

import numpy as np
import pytest

from deuteron.errors import UsageError
from deuteron.testing import do_bench
from deuteron.testing.bench import shortest, summarise

TIMES = [4.0, 1.0, 3.0, 2.0, 5.0]


def test_times_are_milliseconds():
    assert 3 <= do_bench(lambda: time.sleep(0.003), warmup=1, rep=20, return_mode="min") < 30


def test_a_slow_function_is_called_at_least_once_when_timed():
    calls = []
    do_bench(lambda: calls.append(time.sleep(0.002)), warmup=0, rep=0)
    assert len(calls) == 3  # first call, warm-up, timing


@pytest.mark.parametrize(
    ("mode", "expected"), [("mean", 3.0), ("median", 3.0), ("min", 1.0), ("max", 5.0), ("all", TIMES)]
)
def test_summaries(mode, expected):
    assert summarise(TIMES, None, mode) == expected


@pytest.mark.parametrize(
    ("quantiles", "expected"), [([0.5, 0.0, 1.0], [3.0, 1.0, 5.0]), ([0.25], 2.0), ((0.1, 0.9), [1.4, 4.6])]
)
def test_quantiles(quantiles, expected):
    assert summarise(TIMES, quantiles) == pytest.approx(expected)


def test_the_gradient_of_one_array_is_dropped():
    class Tensor(np.ndarray):
        grad = 1

    tensor = np.zeros(3).view(Tensor)
    do_bench(lambda: None, warmup=0, rep=0, grad_to_none=tensor)
    assert tensor.grad is None


def test_gradients_are_dropped_before_each_call():
    class Tensor:
        grad = 1

    tensor, seen = Tensor(), []

    def function():
        seen.append(tensor.grad)
        tensor.grad = 2

    do_bench(function, warmup=0, rep=1, grad_to_none=[tensor])
    assert seen[1:] == [None] * (len(seen) - 1)


def test_an_unknown_mode():
    with pytest.raises(UsageError, match="return_mode must be one of mean, median, min, max, all, got 'avg'"):
        do_bench(lambda: None, return_mode="avg")


def test_a_quantile_out_of_range():
    with pytest.raises(UsageError, match="quantiles go from 0 to 1, got 50"):
        do_bench(lambda: None, warmup=0, rep=0, quantiles=[50])


def test_a_first_look_ends_with_what_is_short_enough():
    calls = []
    assert shortest(lambda: calls.append(1), enough=1e6) < 1e6 and len(calls) == 2
    assert shortest(lambda: calls.append(1), enough=0.0) > 0 and len(calls) > 4

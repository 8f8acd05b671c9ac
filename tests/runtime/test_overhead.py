"""What a launch costs in Python when its kernel is there: about 9 us for 5 arguments, 19 us for 32 (2 GHz Xeon).

The bounds are four times that, of the processor's time; the backend launches nothing.
"""

import time
import timeit

import numpy as np
import pytest

import deuteron
import deuteron.language as tl


@deuteron.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass


@deuteron.jit
def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F):  # noqa: E741
    pass


X = np.zeros(1000, np.float32)
LAUNCHES = {
    "5 arguments": (lambda: add[(8,)](X, X, X, 1000, BLOCK=128), 40e-6),
    "32 arguments": (lambda: many[(8,)](*[X] * 6, *[1000] * 26), 80e-6),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_launch_is_cheap(recorder, name):
    launch, bound = LAUNCHES[name]
    launch()
    assert min(timeit.repeat(launch, timer=time.process_time, number=500, repeat=10)) / 500 < bound
    assert len(recorder.compiled) <= 1

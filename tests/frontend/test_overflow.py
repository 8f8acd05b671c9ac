"""With `debug` it is asserted that integers do not overflow; what the library computes, and 64 bits, may wrap."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import AssertionFailure


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    if KIND == "+":
        out = x + y
    elif KIND == "-":
        out = x - y
    elif KIND == "*":
        out = x * y
    else:
        out = tl.add(x, y, sanitize_overflow=False)
    tl.store(out_ptr + i, out)


def run(dtype: str, kind: str, x: int, y: int, **options: object) -> int:
    xs, ys, out = np.full(8, 1, dtype), np.full(8, 1, dtype), np.zeros(8, dtype)
    xs[5], ys[5] = x, y
    kernel[(1,)](xs, ys, out, kind, 8, **options)
    return int(out[5])


OVERFLOWS = [
    ("int32", "+", 2**31 - 1, 1),
    ("int32", "-", -(2**31), 1),
    ("int32", "*", 2**16, 2**15),
    ("uint32", "*", 2**31, 2**32 - 1),
    ("uint8", "-", 1, 2),
    ("int16", "+", -(2**15), -1),
]


@pytest.mark.parametrize(("dtype", "kind", "x", "y"), OVERFLOWS)
def test_an_overflow_is_an_error_in_debugging(monkeypatch, dtype, kind, x, y):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    with pytest.raises(AssertionFailure, match=rf"{dtype} overflow in \{kind}"):
        run(dtype, kind, x, y, debug=True)
    run(dtype, kind, x, y)
    run(dtype, kind, x, y, debug=True, sanitize_overflow=False)


@pytest.mark.parametrize(
    ("dtype", "kind", "x", "y"),
    [
        ("int32", "+", 2**31 - 2, 1),
        ("uint32", "*", 2**16, 2**15),
        ("int64", "+", 2**63 - 1, 1),
        ("int32", "no", 2**31 - 1, 1),
    ],
)
def test_what_fits_and_what_may_wrap(monkeypatch, dtype, kind, x, y):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    run(dtype, kind, x, y, debug=True)


def test_the_compiled_kernel_asserts_it(capfd):
    """On the CPU, where an assertion that fails is an error of the launch."""
    assert run("int32", "+", 5, 6, debug=True) == 11
    with pytest.raises(triton.DeuteronError, match="overflow"):
        run("int32", "+", 2**31 - 1, 1, debug=True)

"""Control flow computes what Python computes: integer functions, run by Python and, as kernels, by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.language.functions.function import Function as jit

NUMBERS = range(-3, 12)


def counts_down(n):
    total = 0
    for i in range(n, -2, -3):
        total = total * 7 + i
    return total


def counts_from_a_constant(n):
    total = 0
    for i in range(10, n, -4):
        total = total * 7 + i
    return total


def triangle(n):
    total = 0
    for i in range(n):
        for j in range(i, 2 * i):
            if (i + j) % 3 == 0:
                total += j
            elif j > i + 2:
                total -= i
    return total


def collatz(n):
    steps = 0
    while n > 1 and steps < 50:
        n = 3 * n + 1 if n % 2 == 1 else n // 2
        steps += 1
    return steps


def early_returns(n):
    if n < 0:
        return -1
    x = n * 2
    if n > 3:
        if n > 7:
            return x
        x += 100
    else:
        x -= 5
    if n == 5:
        return 0
    return x + 1


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def unrolled(n):
    total = n
    for i in tl.static_range(4) if False else (0, 1, 2, 3):
        if n > i:
            total = total * 3 - i
    return total


def chained(n):
    return (0 < n < 5) + 2 * (n == 3 or n >= 9) + 4 * (n != 2 and not n > 6)


PROGRAMS = [counts_down, counts_from_a_constant, triangle, collatz, early_returns, fibonacci, unrolled, chained]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_computes_what_python_computes(program):
    function = jit(program)

    @jit
    def kernel(out, n):
        tl.store(out, function(n))

    module = lower_function(kernel, {"out": "*i32", "n": "i32"}, {}, {})
    for n in NUMBERS:
        out = np.full(1, 77, np.int32)
        run_module(module, [out, n], (1, 1, 1))
        assert out[0] == program(n), n

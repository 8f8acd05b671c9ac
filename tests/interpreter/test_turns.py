"""Programs that wait for one another end in the interpreter; those that never would are an error."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.errors import LaunchError
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.language.functions.function import Function


def run(kernel, arrays, grid):
    names = list(Function(kernel).signature.parameters)
    module = lower_function(Function(kernel), dict.fromkeys(names, "*i32"), {}, {})
    run_module(module, arrays, grid)
    return arrays


def from_last_to_first(flags, out):
    """Each program waits for the one after it."""
    p = tl.program_id(0)
    if p < tl.num_programs(0) - 1:
        while tl.load(flags + p + 1, volatile=True) == 0:
            pass
        tl.store(out + p, tl.load(out + p + 1) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(flags + p, 1)


def test_programs_wait_for_later_ones():
    _, out = run(from_last_to_first, [np.zeros(8, np.int32), np.zeros(8, np.int32)], (8, 1, 1))
    assert out.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def barrier_of_all(count, out):
    """All arrive, then all go on, three times."""
    n = tl.num_programs(0)
    for turn in range(3):
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < (turn + 1) * n:
            pass
        tl.atomic_add(out + turn, tl.load(count))
        tl.debug_barrier()
        tl.atomic_add(count + 1, 1)
        while tl.atomic_add(count + 1, 0) < (turn + 1) * n:
            pass


def test_a_barrier_of_all_programs():
    _, out = run(barrier_of_all, [np.zeros(2, np.int32), np.zeros(3, np.int32)], (5, 1, 1))
    assert out.tolist() == [25, 50, 75]


def spin_with_a_counter(flag, out):
    rounds = 0
    if tl.program_id(0) == 0:
        while (tl.load(flag, volatile=True) == 0) & (rounds < 100):
            rounds += 1
        tl.store(out, rounds)
    else:
        tl.store(flag, 1)


def test_a_wait_that_counts():
    _, out = run(spin_with_a_counter, [np.zeros(1, np.int32), np.zeros(1, np.int32)], (2, 1, 1))
    assert out[0] == 1


def nobody_stores(flag, out):
    if tl.program_id(0) != 1:
        while tl.atomic_cas(flag, 1, 0) == 0:
            pass


def test_a_wait_for_what_nobody_writes_is_an_error():
    with pytest.raises(LaunchError, match=r"program \(0, 0, 0\) waits .* the 1 others") as caught:
        run(nobody_stores, [np.zeros(1, np.int32), np.zeros(1, np.int32)], (3, 1, 1))
    assert caught.value.location.file == __file__


def fails(flag, out):
    if tl.program_id(0) == 0:
        while tl.load(flag, volatile=True) == 0:
            pass
    else:
        tl.store(out + (1 << 20), 1)


def test_what_a_program_raises_ends_the_others():
    with pytest.raises(Exception, match="Out-of-bounds"):
        run(fails, [np.zeros(1, np.int32), np.zeros(1, np.int32)], (2, 1, 1))

"""Which loops wait for what others write."""

from __future__ import annotations

import pytest

import deuteron.language as tl
from deuteron.analysis.waiting_loops import waiting_loops
from deuteron.frontend import lower_function
from deuteron.language.functions.function import Function


def lock(x, n):
    while tl.atomic_cas(x, 0, 1) != 0:
        pass


def tickets(x, n):
    ticket = tl.atomic_add(x, 1)
    while ticket < n:
        ticket = tl.atomic_add(x, 1)


def flag(x, n):
    while tl.load(x, volatile=True) == 0:
        pass


def carried_flag(x, n):
    value = tl.load(x)
    while value == 0:
        tl.debug_barrier()
        value = tl.load(x)


def flag_of_some(x, n):
    done = 0
    while done < n:
        if n > 3:
            done += tl.atomic_add(x, 0)
        else:
            done += 1


def search(x, n):
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if tl.load(x + middle) < n:
            low = middle + 1
        else:
            high = middle


def count(x, n):
    i = 0
    while i < n:
        tl.atomic_add(x + i, 1)
        i += 1


def bounded(x, n):
    for _ in range(n):
        tl.atomic_cas(x, 0, 1)


@pytest.mark.parametrize(
    "kernel, waits",
    [(k, True) for k in (lock, tickets, flag, carried_flag, flag_of_some)]
    + [(k, False) for k in (search, count, bounded)],
)
def test_a_loop_waits_if_others_decide_when_it_ends(kernel, waits):
    module = lower_function(Function(kernel), {"x": "*i32", "n": "i32"}, {}, {})
    assert bool(waiting_loops(module)) == waits

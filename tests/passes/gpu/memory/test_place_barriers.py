"""Barriers stand where threads may meet data of others, and nowhere else."""

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.passes.gpu.memory import allocate_shared

X = np.zeros(1 << 16, np.float32)


def ops_of(kernel):
    """The names of the ops that touch shared memory, in order, with `{` and `}` around the bodies of loops."""
    names = {"ttg.barrier": "barrier", "ttg.convert_layout": "convert", "tt.reduce": "reduce", "tt.scan": "scan"}
    found = []
    for line in generic_asm(kernel, "ttgir").splitlines():
        match = re.search(r'"((?:ttg?|scf)\.[\w.]+)"', line)
        name = match.group(1) if match else ""
        if name == "scf.for":
            found.append("{")
        elif name == "scf.yield":
            found.append("}")
        elif name == "ttg.barrier" or (name in names and ("allocation.offset" in line or name == "tt.reduce")):
            found.append(names[name])
    return found


@deuteron.jit
def one_sum(x, out, N: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N)), 0))


def test_a_single_use_needs_none():
    assert ops_of(compile_for("cuda:90", one_sum, X, X, N=1024)) == ["reduce"]


@deuteron.jit
def two_sums(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(v, 0))
    tl.store(out + 1, tl.max(v, 0))


@pytest.fixture
def one_place(monkeypatch):
    """No op has a place of its own."""
    monkeypatch.setattr(allocate_shared, "OWN_BYTES", 0)


def test_the_second_use_of_a_place_waits(one_place):
    kernel = compile_for("cuda:90", two_sums, X, X, N=512)
    assert ops_of(kernel) == ["reduce", "barrier", "reduce"]
    # two of the reductions themselves, one between them
    assert len(instructions_with(kernel, "bar.sync")) == 3


def test_places_of_their_own_need_none():
    kernel = compile_for("cuda:90", two_sums, X, X, N=1024)
    assert ops_of(kernel) == ["reduce", "reduce"] and len(instructions_with(kernel, "bar.sync")) == 2


@deuteron.jit
def dependent_sums_in_a_loop(x, out, n, N: tl.constexpr):
    for i in range(n):
        v = tl.load(x + i * N + tl.arange(0, N))
        tl.store(out + i, tl.sum(tl.exp(v - tl.max(v, 0)), 0))


def test_places_of_their_own_in_a_loop_need_none():
    """Each reduction waits for its own parts; by then all threads have read those of the other."""
    kernel = compile_for("cuda:90", dependent_sums_in_a_loop, X, X, 100, N=1024)
    assert ops_of(kernel) == ["{", "reduce", "reduce", "}"]


def test_warps_that_use_no_shared_memory_do_not_wait():
    assert ops_of(compile_for("cuda:90", two_sums, X, X, N=1024, num_warps=1)) == ["reduce", "reduce"]


@deuteron.jit
def sums_in_a_loop(x, out, n, N: tl.constexpr):
    total = 0.0
    for i in range(n):
        total += tl.max(tl.load(x + i * N + tl.arange(0, N)), 0)
    tl.store(out, total)


def test_the_next_iteration_waits():
    assert ops_of(compile_for("cuda:90", sums_in_a_loop, X, X, 100, N=1024)) == ["{", "barrier", "reduce", "}"]


@deuteron.jit
def with_barrier(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(v, 0))
    tl.debug_barrier()
    tl.store(out + 1, tl.max(v, 0))


def test_a_barrier_of_the_kernel_counts():
    assert ops_of(compile_for("cuda:90", with_barrier, X, X, N=1024)) == ["reduce", "barrier", "reduce"]


@deuteron.jit
def in_a_branch(x, out, flag, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    total = 0.0
    if flag:
        total = tl.sum(v, 0)
    tl.store(out, total + tl.max(v, 0))


def test_what_a_branch_may_have_done_counts(one_place):
    names = [name for name in ops_of(compile_for("cuda:90", in_a_branch, X, X, True, N=1024)) if name != "}"]
    assert names == ["reduce", "barrier", "reduce"]

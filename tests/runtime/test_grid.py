"""Grids: tuples and functions, and what is not one."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import LaunchError
from deuteron.runtime.grid import evaluate_grid


def grid_of(grid):
    return evaluate_grid(grid, "add", lambda: {"n": 1000, "BLOCK": 128})


@pytest.mark.parametrize(
    ("grid", "extents"),
    [
        ((8,), (8, 1, 1)),
        ((8, 2), (8, 2, 1)),
        ([3, 2, 5], (3, 2, 5)),
        (7, (7, 1, 1)),
        ((np.int64(4), np.int32(2)), (4, 2, 1)),
        ((0,), (0, 1, 1)),
        (lambda meta: (-(-meta["n"] // meta["BLOCK"]),), (8, 1, 1)),
    ],
)
def test_extents(grid, extents):
    assert grid_of(grid) == extents


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), lambda meta: ()])
def test_a_wrong_number_of_extents(grid):
    with pytest.raises(LaunchError, match="grid of kernel 'add' must have one to three extents"):
        grid_of(grid)


@pytest.mark.parametrize("grid", [(-1,), (1, 1, -5), (2**31,)])
def test_extents_out_of_range(grid):
    with pytest.raises(LaunchError, match=r"grid of kernel 'add' go from 0 to 2147483647, got \("):
        grid_of(grid)


@pytest.mark.parametrize("grid", [(1.5,), "8", None, ("8",)])
def test_extents_that_are_no_integers(grid):
    with pytest.raises(LaunchError, match="must be one to three integers"):
        grid_of(grid)


@deuteron.jit
def first_kernel(out_ptr):
    tl.store(out_ptr, tl.program_id(1))


def test_the_emulator_refuses_what_a_gpu_does(monkeypatch):
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    with pytest.raises(LaunchError, match=r"grid of kernel 'first_kernel' is \(1, 65536, 1\): .* 65535, 65535"):
        first_kernel[(1, 65536)](np.zeros(1, np.int32))

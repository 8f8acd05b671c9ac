"""`kernel.run` in machine code: what it launches itself, what it leaves to Python, and what it leaves alone."""

import gc
import sys

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.backend.cpu.launch.pool_layout import UNITS
from deuteron.backend.cpu.launch.trampoline_code import WORTH_A_THREAD
from deuteron.compiler import ASTSource
from deuteron.errors import LaunchError

SCALARS = {
    "i1": [True, False, 1, 0],
    "i8": [-128, 127, 300, 2**70],
    "u16": [65535, -1],
    "i32": [-(2**31), 2**31 - 1, 2**40 + 5, True],
    "u32": [2**32 - 1],
    "i64": [-(2**63), 2**63 - 1],
    "u64": [2**64 - 1, -1],
    "fp16": [1.5, -2, 1e30],
    "bf16": [1.5, True],
    "fp32": [0.1, 16, float("nan"), float("-inf"), 1e300, 2**62],
    "fp64": [0.1, -7, 1e300],
}


@deuteron.jit
def keep(out_ptr, value, BLOCK: tl.constexpr):
    tl.store(out_ptr, value)


@deuteron.jit
def count_up(out_ptr, n, rounds):
    i = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    value = i * 0
    for k in range(rounds):
        value = (value * 3 + k) % 1000003
    tl.atomic_add(out_ptr + i, tl.where(value == n, 2, 1))


def compiled(fn, *types, **constants):
    signature = dict(zip(fn.arg_names, types, strict=False)) | dict.fromkeys(constants, "constexpr")
    return deuteron.compile(ASTSource(fn, signature, constants), target="cpu")


def launch(kernel, *args, grid=(1, 1, 1), enter=None, exit=None, run=None):
    (run or kernel.run)(*grid, 0, kernel.function, kernel.packed_metadata, None, enter, exit, *args)


def in_python(kernel):
    """The function that is called where the machine code cannot tell."""
    objects, _ = kernel.run.__self__[1]
    return objects["in_python"]


@pytest.mark.parametrize("type", SCALARS)
def test_scalars_are_what_python_makes_of_them(type):
    kernel = compiled(keep, f"*{type}", type, BLOCK=3)
    for value in SCALARS[type]:
        found, wanted = np.full(2, 77, np.uint64), np.full(2, 77, np.uint64)
        launch(kernel, found.ctypes.data, value, 3)
        launch(kernel, wanted.ctypes.data, value, 3, run=in_python(kernel))
        assert found.tolist() == wanted.tolist(), value


class Array:
    """Not a class that the code knows."""

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data


def test_what_is_left_to_python():
    kernel = compiled(keep, "*i64", "i64", BLOCK=3)
    out, told = np.zeros(1, np.int64), []
    launch(kernel, Array(out), 1, 3)
    assert out[0] == 1
    launch(kernel, out.ctypes.data, np.int64(2), "not looked at")
    assert out[0] == 2
    launch(kernel, out.ctypes.data, 3, 3, enter=told.append, exit=told.append)
    assert out[0] == 3 and told == [None, None]
    launch(kernel, out.ctypes.data, 4, 3, enter=knobs.HookChain(), exit=knobs.HookChain())
    launch(kernel, out.ctypes.data, 5, 3, grid=(np.int32(1), 1, True))
    assert out[0] == 5
    for grid in ((0, 1, 1), (5, 0, 2)):
        launch(kernel, out.ctypes.data, 6, 3, grid=grid)
    assert out[0] == 5


def test_what_is_refused():
    kernel = compiled(keep, "*i64", "i64", BLOCK=3)
    out = np.zeros(1, np.int64)
    with pytest.raises(LaunchError, match="takes out_ptr, value, BLOCK, got 2 arguments"):
        launch(kernel, out.ctypes.data, 1)
    with pytest.raises(LaunchError, match="argument 'value' of kernel 'keep': expected i64, got 'x'"):
        launch(kernel, out.ctypes.data, "x", 3)
    with pytest.raises(LaunchError, match="argument 'out_ptr' of kernel 'keep'"):
        launch(kernel, out, 1, 3)
    for grid in ((-1, 1, 1), (1, 2**31, 1)):
        with pytest.raises(LaunchError, match="grid of kernel 'keep'"):
            launch(kernel, out.ctypes.data, 1, 3, grid=grid)
    with pytest.raises(KeyboardInterrupt):
        launch(kernel, out.ctypes.data, 1, 3, enter=Interrupts())


class Interrupts:
    def __bool__(self):
        raise KeyboardInterrupt


def test_no_pointer():
    kernel = compiled(keep, "*i64", "i64", BLOCK=3)

    @deuteron.jit
    def given(out_ptr, optional):
        tl.store(out_ptr, optional.to(tl.int64))

    out, kernel = np.full(1, 7), compiled(given, "*i64", "*i32")
    launch(kernel, out.ctypes.data, None)
    assert out[0] == 0


@pytest.mark.parametrize("grid", [(7, 1, 1), (2, 3, 5), (1, 4, 1)])
def test_every_program_runs_once(grid):
    """The first launches go to threads and time a program; short ones are then on this thread."""
    kernel = compiled(count_up, "*i32", "i32", "i32")
    count = np.prod(grid)
    for rounds in (1, 1, 1, 1, 1, 1, 200_000, 200_000, 200_000, 1):
        out = np.zeros(count + 1, np.int32)
        launch(kernel, out.ctypes.data, -7, rounds, grid=grid)
        assert out.tolist() == [1] * count + [0]


def test_launches_note_how_long_a_program_takes(monkeypatch):
    """Of those that run on this thread, which may be none; and another process may have had the processor."""
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "2")
    kernel = compiled(count_up, "*i32", "i32", "i32")
    out, worth = np.zeros(4, np.int32), WORTH_A_THREAD * UNITS

    def becomes(is_it, rounds):
        for _ in range(100):
            launch(kernel, out.ctypes.data, -7, rounds, grid=(4, 1, 1))
            if is_it(kernel.launch._time.value):
                return True
        return False

    assert becomes(lambda time: time > worth, 200_000)
    assert becomes(lambda time: 0 < time < worth, 1)


def test_nothing_is_left_behind():
    kernel = compiled(keep, "*i64", "i64", BLOCK=3)
    out = np.zeros(1, np.int64)
    address, value = int(out.ctypes.data), 2**50 + 1
    held = [address, value, kernel.packed_metadata, None]
    launch(kernel, address, value, 3)
    gc.collect()
    before = [sys.getrefcount(each) for each in held]
    for _ in range(500):
        launch(kernel, address, value, 3)
        launch(kernel, Array(out), value, 3)
    gc.collect()
    assert all(abs(sys.getrefcount(each) - count) < 50 for each, count in zip(held, before, strict=True))


@pytest.mark.torch
def test_tensors_whose_elements_are_not_at_an_address_as_they_are():
    torch = pytest.importorskip("torch")
    kernel, negative = compiled(keep, "*fp32", "fp32", BLOCK=3), torch._neg_view(torch.zeros(4))
    given_back = torch.zeros(4)
    given_back.untyped_storage().resize_(0)
    for run in (kernel.run, in_python(kernel)):
        with pytest.raises(LaunchError, match="the other sign"):
            launch(kernel, negative, 1.5, 3, run=run)
        with pytest.raises(LaunchError, match="have no memory"):
            launch(kernel, given_back, 1.5, 3, run=run)


@pytest.mark.torch
def test_tensors():
    torch = pytest.importorskip("torch")
    kernel = compiled(keep, "*i64", "i64", BLOCK=3)
    run = kernel.run
    whole = torch.zeros(8, dtype=torch.int64)
    for out in (whole, whole[3:], torch.nn.Parameter(whole[5:], requires_grad=False), whole[1:].unflatten(0, (7, 1)).T):
        launch(kernel, out, 9, 3, run=run)
        assert out.flatten()[0] == 9
    assert whole.tolist() == [9, 9, 0, 9, 0, 9, 0, 0]
    launch(kernel, whole[:0], 1, 3, grid=(0, 1, 1), run=run)


@deuteron.jit
def of_tuple(out_ptr, pair):
    tl.store(out_ptr, pair[0] + pair[1])


def test_tuples_are_left_to_python():
    kernel = deuteron.compile(ASTSource(of_tuple, {"out_ptr": "*i64", "pair": ("i64", "i64")}), target="cpu")
    out = np.zeros(1, np.int64)
    launch(kernel, out.ctypes.data, (3, 4))
    assert out[0] == 7

"""Launches that are prepared: what they pass, which arguments they refuse, in machine code and in Python."""

import contextlib
import sys

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import LaunchError, UsageError
from deuteron.runtime import prepared


@deuteron.jit
def plain(a, b, BLOCK: tl.constexpr, c=7):
    pass


@deuteron.jit
def store(out_ptr, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, value + i)


KERNELS = (plain,)


@pytest.fixture(params=["machine code", "Python"])
def where(request, monkeypatch):
    if request.param == "Python":
        monkeypatch.setattr("deuteron.runtime.fast_launch.FastLaunches.prepared", lambda *args: None)
    return request.param


def test_what_is_launched(log, where):
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    handle = plain.prepare(x, 5, 128, grid=lambda meta: (meta["BLOCK"] // 64, 3), num_warps=8)
    assert log == [] and handle.grid == (2, 3, 1)
    assert handle.launch(y, -7, 9) is None
    handle.with_grid(4).launch(x, 6, 7)
    handle.with_grid((0,)).launch(x, 6, 7)
    plain[(4,)](x, 6, c=7, BLOCK=128, num_warps=8)
    assert [grid for _, grid, _ in log] == [(2, 3, 1), (4, 1, 1), (4, 1, 1)]
    assert log[1] == log[2] and handle.kernel.launch is log[0][0]
    assert log[0][2] == y.ctypes.data.to_bytes(8, "little") + b"\xf9\xff\xff\xff\0\0\0\0" + b"\t" + bytes(7)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.zeros(64, np.float32), 5), "takes a, b, c, in order, got 2 arguments"),
        ((np.zeros(64, np.float32), 5, 7, 128), "takes a, b, c, in order, got 4 arguments"),
        (
            (np.zeros(64, np.float64), 5, 7),
            r"argument 'a' of kernel 'plain' is \*fp64:16, and .* prepared for \*fp32:16",
        ),
        ((np.zeros(65, np.float32)[1:], 5, 7), r"argument 'a' of kernel 'plain' is \*fp32, and .* for \*fp32:16: prep"),
        ((np.zeros(64, np.float32), 16, 7), "argument 'b' of kernel 'plain' is i32:16, and .* prepared for i32"),
        ((np.zeros(64, np.float32), 5, 1), "argument 'c' of kernel 'plain' is i32:1, and"),
        ((np.zeros(64, np.float32), 2**40 + 1, 7), "argument 'b' of kernel 'plain' is i64, and"),
        ((np.zeros(64, np.float32), 0.5, 7), "argument 'b' of kernel 'plain' is fp32, and"),
        ((np.zeros(64, np.float32), object(), 7), "argument 'b' of kernel 'plain': expected an array or a number"),
    ],
)
def test_arguments_that_do_not_fit(log, where, args, message):
    handle = plain.prepare(np.zeros(64, np.float32), 5, 128, grid=(2,))
    with pytest.raises(LaunchError, match=message):
        handle.launch(*args)
    assert log == []


def test_keywords_are_refused(log, where):
    handle = plain.prepare(np.zeros(64, np.float32), 5, 128, grid=(2,))
    with pytest.raises(LaunchError, match="takes a, b, c, in order, got 2 arguments, 'c' by its name"):
        handle.launch(np.zeros(64, np.float32), 5, c=7)


def test_references_are_given_back(log):
    x, wrong, grid = np.zeros(64, np.float32), object(), (5, 1 << 20)
    handle = plain.prepare(x, (5, 1), 128, grid=grid)

    def launch_all():
        for args in ((x, (7, 1), 9), (x, (7, 2), 9), (wrong, (7, 1), 9), (x,)):
            with contextlib.suppress(LaunchError):
                handle.launch(*args)
        log.clear()

    launch_all()
    before = [sys.getrefcount(value) for value in (x, wrong, grid, handle.kernel, None)]
    for _ in range(100):
        launch_all()
    after = [sys.getrefcount(value) for value in (x, wrong, grid, handle.kernel, None)]
    assert after[:4] == before[:4] and abs(after[4] - before[4]) < 50


def test_a_kernel_that_runs(where):
    out = np.zeros(128, np.int32)
    handle = store.prepare(out, 5, 32, grid=(4,))
    assert isinstance(handle, prepared.PreparedLaunch)
    handle.launch(out, 3)
    np.testing.assert_array_equal(out, np.arange(128) + 3)
    handle.with_grid((1,)).launch(out, 7)
    np.testing.assert_array_equal(out[:33], [*range(7, 39), 35])


def test_the_interpreter_prepares_nothing(monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    with pytest.raises(UsageError, match="kernel 'store' cannot be prepared: the interpreter"):
        store.prepare(np.zeros(4), 5, 32, grid=(1,))

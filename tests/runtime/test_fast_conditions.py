"""What launches in machine code depend on besides their arguments: variables, hooks, sources, what is cleared."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.compiler import CompiledKernel
from deuteron.errors import LaunchError, VariableChanged


@deuteron.jit
def plain(a, b, c=7, d=None):
    pass


KERNELS = (plain,)


def launch_some(kernel=plain, count=3):
    x = np.zeros(64, np.float32)
    return [kernel[(1,)](x, 5) for _ in range(count)][-1]


@pytest.mark.parametrize(
    ("variable", "one", "other"),
    [("TRITON_DEBUG", "1", "0"), ("TRITON_DEFAULT_FP_FUSION", "1", "0"), ("TRITON_F32_DEFAULT", "ieee", "tf32x3")],
)
def test_a_variable_of_the_environment(log, slow, monkeypatch, variable, one, other):
    first = launch_some()
    monkeypatch.setenv(variable, one)
    second = launch_some()
    monkeypatch.setenv(variable, other)
    third = launch_some()
    monkeypatch.delenv(variable)
    assert len({id(found) for found in (first, second, third)}) == 3
    assert launch_some() is first
    assert len(slow) == 4


def test_the_interpreter_is_heard(log, monkeypatch):
    launch_some()
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    count = len(log)
    plain[(1,)](np.zeros(64, np.float32), 5)
    assert len(log) == count


def test_hooks_before_a_run_are_called(log):
    heard = []
    launch_some()
    plain.add_pre_run_hook(lambda *args, **kwargs: heard.append(len(args)))
    launch_some()
    plain.pre_run_hooks.clear()
    launch_some()
    assert heard == [2, 2, 2]


def test_hooks_on_launches(log, monkeypatch):
    launch_some()
    told = []
    monkeypatch.setattr(
        deuteron.JITFunction, "_launch_with_hooks", lambda self, found, bound, extents: told.append(extents)
    )
    for owner, name in ((knobs.runtime, "launch_enter_hook"), (CompiledKernel, "launch_exit_hook")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, print)
            launch_some(count=2)
        launch_some(count=1)
    knobs.runtime.launch_exit_hook.add(print)
    launch_some(count=1)
    knobs.runtime.launch_exit_hook.remove(print)
    with monkeypatch.context() as patch:
        patch.setattr(knobs, "runtime", knobs.runtime.copy())
        knobs.runtime.launch_enter_hook = print
        launch_some(count=1)
    assert len(told) == 6


FACTOR, HELD = tl.constexpr(2), SimpleNamespace()


class Settings:
    WIDTH = tl.constexpr(4)


def make_kernels():
    inner = tl.constexpr(5)

    @deuteron.jit
    def with_global(a, b):
        return a * FACTOR

    @deuteron.jit
    def with_cell(a, b):
        return a * inner

    @deuteron.jit
    def with_class(a, b):
        return a * Settings.WIDTH

    def set_inner(value):
        nonlocal inner
        inner = value

    return with_global, with_cell, with_class, set_inner


@pytest.mark.parametrize("which", ["global", "held", "cell", "class"])
def test_a_variable_that_changes_is_an_error(log, slow, monkeypatch, which):
    with_global, with_cell, with_class, set_inner = make_kernels()
    kernel = {"global": with_global, "held": with_global, "cell": with_cell, "class": with_class}[which]
    launch_some(kernel)
    assert len(slow) == 1
    if which == "global":
        monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(3))
    elif which == "held":
        monkeypatch.setattr(FACTOR, "value", 7)
    elif which == "cell":
        set_inner(tl.constexpr(6))
    else:
        monkeypatch.setattr(Settings, "WIDTH", tl.constexpr(8))
    with pytest.raises(VariableChanged):
        launch_some(kernel)


def test_an_equal_variable_in_its_place_is_none(log, slow, monkeypatch):
    kernel = make_kernels()[0]
    first = launch_some(kernel)
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(2))
    assert launch_some(kernel) is first
    assert len(slow) == 2


def test_a_new_source_is_compiled(log):
    @deuteron.jit
    def changing(a, b):
        return a

    first = launch_some(changing)
    changing._unsafe_update_src(changing.src.replace("return a", "return b"))
    assert launch_some(changing) is not first


@pytest.mark.parametrize("clear", [lambda caches: caches.clear(), lambda caches: caches[0][0].clear()])
def test_what_is_cleared_is_compiled_again(log, clear):
    first = launch_some()
    clear(plain.device_caches)
    assert launch_some() is not first


def test_a_run_that_is_replaced_is_called(log):
    launch_some()
    plain.run = lambda *args, **kwargs: (args[1], kwargs)
    try:
        assert plain[(3,)](None, 5, c=1) == (5, {"grid": (3,), "warmup": False, "c": 1})
        assert launch_some() == (5, {"grid": (1,), "warmup": False})
    finally:
        del plain.run


def test_a_read_only_array_that_is_written(log):
    x = np.zeros(64, np.float32)
    for _ in range(3):
        plain[(1,)](x, x, x)
    x.flags.writeable = False
    with pytest.raises(LaunchError, match="argument 'c' of kernel 'plain': it is read-only"):
        plain[(1,)](x, x, x)


def test_warmup_through_a_grid_launches_nothing(log):
    launch_some()
    count = len(log)
    plain[(1,)](tl.float32, 5, warmup=True)
    assert len(log) == count

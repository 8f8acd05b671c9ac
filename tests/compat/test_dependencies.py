"""DependenciesFinder: a key that changes with a function's text, what it calls and what its variables hold."""

from types import ModuleType

import deuteron
import deuteron.language as tl
from deuteron.compat.dependencies import DependenciesFinder

SCALE = tl.constexpr(2)
config = ModuleType("config")
config.SHIFT = 3


@deuteron.jit
def helper(x, step=1):
    return x + step


@deuteron.jit
def other(x, step=1):
    return x - step


@deuteron.jit
def kernel(x_ptr, config_ptr):
    SHIFT = 5
    tl.store(x_ptr, helper(tl.load(config_ptr)) * SCALE + config.SHIFT + SHIFT)


def find(fn, **changed):
    finder = DependenciesFinder(name=fn.__name__, globals={**fn.__globals__, **changed}, src=fn.src)
    finder.visit(fn.parse())
    return finder


def test_it_is_the_same_for_the_same():
    assert find(kernel).ret == find(kernel).ret
    assert {name for name, _ in find(kernel).used_global_vals} == {"SCALE", "config.SHIFT"}


def test_it_changes_with_what_is_used(monkeypatch):
    keys = {find(kernel).ret, find(kernel, SCALE=3).ret, find(kernel, helper=other).ret, find(other).ret}
    monkeypatch.setattr(config, "SHIFT", 4)
    assert len(keys | {find(kernel).ret}) == 5


def test_local_names_are_not_variables_of_the_module():
    assert find(kernel, SHIFT=7, x_ptr=8).ret == find(kernel).ret


def test_variables_of_enclosing_functions_go_first():
    finder = DependenciesFinder("kernel", {"SCALE": 1}, {"SCALE": 2}, kernel.src)
    finder.visit(kernel.parse())
    assert [value for value, _ in finder.used_global_vals.values()] == [2]

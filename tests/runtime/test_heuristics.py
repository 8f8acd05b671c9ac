"""Heuristics: computed parameters, and how they stack with the autotuner."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import UsageError


@deuteron.jit
def plain(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, TWICE: tl.constexpr):
    pass


VALUES = {"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "TWICE": lambda args: 2 * args["BLOCK"] + args["EVEN"]}


def test_parameters_are_computed_in_order(recorder):
    deuteron.heuristics(VALUES)(plain)[(1,)](np.zeros(4), 64, BLOCK=32)
    assert recorder.compiled[0].constexprs == {"BLOCK": 32, "EVEN": True, "TWICE": 65}


def test_computed_parameters_are_seen_by_the_grid(recorder):
    deuteron.heuristics(VALUES)(plain)[lambda meta: (meta["TWICE"],)](np.zeros(4), 63, BLOCK=32)
    assert recorder.launched[0].grid == (64, 1, 1)


def stacks():
    configs = [deuteron.Config({"BLOCK": 16}), deuteron.Config({"BLOCK": 32})]
    tune, compute = deuteron.autotune(configs=configs, key=["n"], warmup=1, rep=1), deuteron.heuristics(VALUES)
    return {"autotune over heuristics": lambda: tune(compute(plain)), "heuristics over jit": lambda: compute(plain)}


def test_autotune_over_heuristics_over_jit(recorder):
    plain._launchers.clear()
    kernel = stacks()["autotune over heuristics"]()
    kernel[(1,)](np.zeros(4), 48)
    assert {(c.constexprs["BLOCK"], c.constexprs["EVEN"]) for c in recorder.compiled} == {(16, True), (32, False)}
    assert kernel.base_fn is plain


@pytest.mark.parametrize("name", stacks())
def test_a_decorated_kernel_answers_for_the_kernel(name):
    kernel = stacks()[name]()
    assert kernel.__name__ == "plain" and kernel.arg_names == plain.arg_names
    assert kernel.params == plain.params and "def plain" in kernel.src
    with pytest.raises(AttributeError):
        kernel.nonsense  # noqa: B018


def test_a_name_that_is_no_parameter():
    with pytest.raises(UsageError, match="heuristics of 'plain': no parameter 'EVN': there are x_ptr, n, BLOCK"):
        deuteron.heuristics({"EVN": len})(plain)

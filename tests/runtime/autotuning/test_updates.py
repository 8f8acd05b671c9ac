"""Kernels that change what they find in arrays are tried many times: a program that does not say so is told."""

import warnings

import numpy as np
import pytest

import deuteron
import deuteron.language as tl

CONFIGS = [deuteron.Config({"BLOCK": 16}), deuteron.Config({"BLOCK": 32})]


@deuteron.jit
def doubled(pointers, mask):
    return 2 * tl.load(pointers, mask)


@deuteron.jit
def kernel(x, out, n, HOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if HOW == "in place":
        tl.store(out + i, doubled(out + i, i < n), i < n)
    elif HOW == "added":
        tl.atomic_add(out, tl.sum(tl.load(x + i, i < n, other=0.0)))
    elif HOW == "counted":
        tl.atomic_add(out.to(tl.pointer_type(tl.int32)), 1)
    elif HOW == "scratch":
        tl.store(out + i, tl.load(x + i, i < n), i < n)
        tl.store(out + i, doubled(out + i, i < n), i < n)
    else:
        tl.store(out + i, doubled(x + i, i < n), i < n)


def launched(how: str, **options) -> list[str]:
    x, out = np.ones(40, np.float32), np.ones(40, np.float32)
    tuned = deuteron.autotune(configs=CONFIGS, key=["n"], warmup=0.01, rep=0.01, **options)(kernel)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for n in (40, 33):
            tuned[lambda meta: (deuteron.cdiv(40, meta["BLOCK"]),)](x, out, n, HOW=how)
    assert {one.filename for one in found} <= {__file__}
    return [str(one.message) for one in found]


@pytest.mark.parametrize("how", ["in place", "added"])
def test_what_trials_change_is_warned_of_once(how: str):
    (text,) = launched(how)
    assert text == (
        "autotune of 'kernel': every trial has changed what it found in out, so that this launch gives the result of "
        "many. Say restore_value=['out'], or reset_to_zero=['out'] of what is added to"
    )


@pytest.mark.parametrize("how", ["plain", "scratch", "counted"])
def test_what_trials_do_not_change_is_not(how: str):
    assert launched(how) == []


@pytest.mark.parametrize(
    "options",
    [{"restore_value": ["out"]}, {"reset_to_zero": ["out"]}, {"pre_hook": lambda args, reset_only=False: None}],
)
def test_a_program_that_says_so_is_not_warned(options: dict):
    assert launched("in place", **options) == []

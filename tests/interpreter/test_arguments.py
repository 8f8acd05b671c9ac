"""What a kernel can be called with, and what is said of the rest."""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.errors import InternalError, IRError, Location, UsageError

STORE = "<{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>"


@pytest.mark.parametrize(
    ("type", "dtype", "given", "expected"),
    [
        ("i8", np.int8, 255, -1),
        ("i64", np.int64, 2**64 - 1, -1),
        ("i32", np.int32, True, 1),
        ("i32", np.int32, np.uint32(2**32 - 2), -2),
        ("i1", np.bool_, 3, True),
        ("f32", np.float32, 0.1, np.float32(0.1)),
        ("f16", np.float16, 2049, 2048.0),
        ("f64", np.float64, np.float32(0.1), np.float32(0.1)),
    ],
)
def test_scalars_are_wrapped_or_rounded(run_kernel, type, dtype, given, expected):
    out = np.zeros(1, dtype)
    body = f'"tt.store"(%out, %x) {STORE} : (!tt.ptr<{type}>, {type}) -> ()'
    run_kernel(f"%x: {type}, %out: !tt.ptr<{type}>", body, [given, out])
    assert out[0] == expected


@pytest.mark.parametrize(
    ("type", "given", "message"),
    [
        ("i32", 1.5, "Expected a number of type i32 for x, got 1.5"),
        ("f32", "one", "Expected a number of type f32 for x"),
        ("i32", float("inf"), "Expected a number of type i32 for x"),
        ("!tt.ptr<f32>", 1.5, "Expected an array or an address for x"),
        ("!tt.ptr<f32>", np.zeros(3), "x points to elements of 4 bytes, got an array of float64"),
    ],
)
def test_what_does_not_fit(run_kernel, type, given, message):
    with pytest.raises(UsageError, match=message):
        run_kernel(f"%x: {type}", "", [given])


def test_too_few_arguments(run_kernel):
    with pytest.raises(UsageError, match="k has 2 parameters, got 1 argument"):
        run_kernel("%x: i32, %y: i32", "", [1])


def test_an_op_without_a_rule_is_located(run_kernel):
    body = """%i = "arith.index_cast"(%x) : (i32) -> index loc("k.py":5:9)
        "tt.print"(%i) <{prefix = "", hex = false, isSigned = array<i32: 1>}> : (index) -> ()"""
    with pytest.raises(InternalError, match="no rule for arith.index_cast") as caught:
        run_kernel("%x: i32", body, [1])
    assert caught.value.location == Location("k.py", 5, 9)


def test_a_call_of_nothing_is_located(run_kernel):
    with pytest.raises(IRError, match="which the module does not have") as caught:
        run_kernel("", '"tt.call"() <{callee = @f}> : () -> () loc("k.py":5:9)', [])
    assert caught.value.location == Location("k.py", 5, 9)

"""Reductions and scans with any region: sums, argmax, several operands, control flow in the region."""

from __future__ import annotations

import numpy as np
import pytest


def region(name: str, *ops: str, returns: str, types: str, parameters: str) -> str:
    body = "\n".join(ops)
    return f'({{ ^bb9({parameters}):\n {body}\n "tt.{name}.return"({returns}) : ({types}) -> () }})'


def combine(name: str, op: str, element: str) -> str:
    line = f'%c = "arith.{op}"(%a, %b) : ({element}, {element}) -> {element}'
    return region(name, line, returns="%c", types=element, parameters=f"%a: {element}, %b: {element}")


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("op", "function"), [("addi", np.sum), ("maxsi", np.max), ("minsi", np.min), ("xori", None)])
def test_reduce_along_each_axis(evaluate, rng, axis, op, function):
    x = rng.integers(-100, 100, (2, 8, 4), np.int32)
    expected = np.bitwise_xor.reduce(x, axis) if function is None else function(x, axis)
    reduce = f'"tt.reduce"(%x0) <{{axis = {axis} : i32}}> {combine("reduce", op, "i32")}'
    result = evaluate(reduce, [("i32", x)], "i32", expected.shape)
    np.testing.assert_array_equal(result, expected)


def test_reduce_to_a_scalar_in_float(evaluate, rng):
    x = rng.standard_normal(1024).astype(np.float32)
    op = f'"tt.reduce"(%x0) <{{axis = 0 : i32}}> {combine("reduce", "addf", "f32")}'
    assert abs(evaluate(op, [("f32", x)], "f32", ()) - x.sum(dtype=np.float64)) < 1e-4


def test_f16_sums_round_at_every_step(evaluate):
    x = np.float16([2048, 1, 1, 1])
    op = f'"tt.reduce"(%x0) <{{axis = 0 : i32}}> {combine("reduce", "addf", "f16")}'
    assert evaluate(op, [("f16", x)], "f16", ()) == 2050


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_scan_is_cumulative_in_either_direction(evaluate, rng, reverse):
    x = rng.integers(-100, 100, (4, 8), np.int32)
    op = f'"tt.scan"(%x0) <{{axis = 1 : i32, reverse = {reverse}}}> {combine("scan", "addi", "i32")}'
    expected = np.cumsum(x[:, ::-1], 1)[:, ::-1] if reverse == "true" else np.cumsum(x, 1)
    np.testing.assert_array_equal(evaluate(op, [("i32", x)], "i32"), expected)


ARGMAX = region(
    "reduce",
    '%gt = "arith.cmpf"(%va, %vb) <{predicate = 2 : i64, fastmath = #arith.fastmath<none>}> : (f32, f32) -> i1',
    '%v = "arith.select"(%gt, %va, %vb) : (i1, f32, f32) -> f32',
    '%i = "arith.select"(%gt, %ia, %ib) : (i1, i32, i32) -> i32',
    returns="%v, %i",
    types="f32, i32",
    parameters="%va: f32, %ia: i32, %vb: f32, %ib: i32",
)


def test_argmax_has_two_operands(evaluate, rng):
    x = rng.permutation(16).astype(np.float32).reshape(2, 8)
    index = np.broadcast_to(np.arange(8, dtype=np.int32), (2, 8)).copy()
    reduce = f"""%pair:2 = "tt.reduce"(%x0, %x1) <{{axis = 1 : i32}}> {ARGMAX}
      : (tensor<2x8xf32>, tensor<2x8xi32>) -> (tensor<2xf32>, tensor<2xi32>)"""
    op, types = '"arith.addi"(%pair#1, %pair#1)', ["tensor<2xi32>"] * 2
    result = evaluate(op, [("f32", x), ("i32", index)], "i32", (2,), prologue=reduce, types=types)
    assert result.tolist() == (2 * x.argmax(1)).tolist()


def test_a_region_with_control_flow_runs_by_element(evaluate, rng):
    x = rng.integers(-100, 100, (4, 2), np.int32)
    body = region(
        "reduce",
        '%m = "arith.cmpi"(%a, %b) <{predicate = 4 : i64}> : (i32, i32) -> i1',
        '%c = "scf.if"(%m) ({ "scf.yield"(%a) : (i32) -> () }, { "scf.yield"(%b) : (i32) -> () }) : (i1) -> i32',
        returns="%c",
        types="i32",
        parameters="%a: i32, %b: i32",
    )
    result = evaluate(f'"tt.reduce"(%x0) <{{axis = 0 : i32}}> {body}', [("i32", x)], "i32", (2,))
    assert result.tolist() == x.max(0).tolist()

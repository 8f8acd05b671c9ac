"""Atomics: lanes act in order, each gets what was there before it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

RMW = {"and": 1, "or": 2, "xor": 3, "add": 4, "fadd": 5, "max": 6, "min": 7, "umax": 8, "umin": 9, "xchg": 10}
STORE = "<{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>"
ORDER = "sem = 4 : i32, scope = 1 : i32"


def tile(name: str, base: str, element: str) -> str:
    """%name: pointers to base[0 .. 8]; %name_v: what is there."""
    pointer = f"!tt.ptr<{element}>"
    return f"""
    {name}_b = "tt.splat"({base}) : ({pointer}) -> tensor<8x{pointer}>
    {name} = "tt.addptr"({name}_b, %range) : (tensor<8x{pointer}>, tensor<8xi32>) -> tensor<8x{pointer}>
    {name}_v = "tt.load"({name}) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
      cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : (tensor<8x{pointer}>) -> tensor<8x{element}>"""


def body(element: str, op: str) -> str:
    """Lane i works on memory[where[i]] with value[i] if mask[i]; old values go to `old`."""
    pointer = f"!tt.ptr<{element}>"
    tiles = f"tensor<8x{pointer}>, tensor<8x{element}>"
    return f"""
    %range = "tt.make_range"() <{{start = 0 : i32, end = 8 : i32}}> : () -> tensor<8xi32>
    {tile("%w", "%where", "i32")}
    {tile("%x", "%value", element)}
    {tile("%k", "%mask", "i1")}
    {tile("%o", "%old", element)}
    %mb = "tt.splat"(%memory) : ({pointer}) -> tensor<8x{pointer}>
    %m = "tt.addptr"(%mb, %w_v) : (tensor<8x{pointer}>, tensor<8xi32>) -> tensor<8x{pointer}>
    %r = {op.format(tiles=tiles, element=element)}
    "tt.store"(%o, %r) {STORE} : ({tiles}) -> ()"""


@pytest.fixture
def run_atomic(run_kernel):
    def run(element: str, op: str, memory, where, value, mask=(True,) * 8) -> np.ndarray:
        old = np.full(8, 77, memory.dtype)
        arrays = [memory, np.int32(where), np.asarray(value, memory.dtype), np.array(mask, bool), old]
        types = {"memory": element, "where": "i32", "value": element, "mask": "i1", "old": element}
        parameters = ", ".join(f"%{name}: !tt.ptr<{type}>" for name, type in types.items())
        run_kernel(parameters, body(element, op), arrays)
        return old

    return run


def rmw(kind: str) -> str:
    return (
        f'"tt.atomic_rmw"(%m, %x_v, %k_v) <{{{{atomic_rmw_op = {RMW[kind]} : i32, {ORDER}}}}}> '
        ": ({tiles}, tensor<8xi1>) -> tensor<8x{element}>"
    )


CAS = f'"tt.atomic_cas"(%m, %o_v, %x_v) <{{{{{ORDER}}}}}> : ({{tiles}}, tensor<8x{{element}}>) -> tensor<8x{{element}}>'


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("add", lambda a, b: (a + b + 2**31) % 2**32 - 2**31),
        ("and", lambda a, b: a & b),
        ("or", lambda a, b: a | b),
        ("xor", lambda a, b: a ^ b),
        ("max", max),
        ("min", min),
        ("umax", lambda a, b: max(a, b, key=lambda v: v % 2**32)),
        ("umin", lambda a, b: min(a, b, key=lambda v: v % 2**32)),
        ("xchg", lambda a, b: b),
    ],
)
def test_integers_against_a_loop(run_atomic, rng, kind, function):
    memory = rng.integers(-(2**31), 2**31, 4, np.int32)
    where, mask = rng.integers(0, 4, 8), rng.integers(0, 2, 8).astype(bool)
    value = rng.integers(-(2**31), 2**31, 8, np.int32)
    expected, expected_old = memory.tolist(), []
    for lane in range(8):
        expected_old.append(expected[where[lane]] if mask[lane] else 0)
        if mask[lane]:
            expected[where[lane]] = function(expected[where[lane]], int(value[lane]))
    assert run_atomic("i32", rmw(kind), memory, where, value, mask).tolist() == expected_old
    assert memory.tolist() == expected


@pytest.mark.parametrize(
    ("element", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("f64", np.float64)]
)
def test_float_additions_round_in_order(run_atomic, rng, element, dtype):
    value = rng.standard_normal(8).astype(dtype)
    memory, total = np.ones(2, dtype), dtype(1)
    old = run_atomic(element, rmw("fadd"), memory, [1] * 8, value)
    for lane in range(8):
        assert old[lane] == total
        total = dtype(np.float64(total) + np.float64(value[lane]))
    assert memory.tolist() == [1, total]


def test_compare_and_swap(run_atomic):
    """`old` holds what is compared with: 77 everywhere."""
    memory = np.int32([77, 5, 77, 77])
    old = run_atomic("i32", CAS, memory, [0, 1, 2, 2, 3, 0, 1, 2], [1, 2, 3, 4, 77, 6, 7, 8])
    assert old.tolist() == [77, 5, 77, 3, 77, 1, 5, 3]
    assert memory.tolist() == [1, 5, 3, 77]

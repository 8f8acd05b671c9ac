"""Ranges, constants, program ids: their ops, their limits."""

from __future__ import annotations

import math

import pytest


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("tl.arange(0, 64)", ["tt.make_range"]),
        ("tl.arange(False, True)", ["tt.make_range"]),
        ("tl.zeros((16, 32), tl.float32)", ["arith.constant"]),
        ("tl.zeros((16, True), tl.float32)", ["arith.constant"]),
        ("tl.full([4], 2.5, tl.float16)", ["arith.constant"]),
        ("tl.full((), 3, tl.int64)", ["arith.constant"]),
        ("tl.full([4], n, tl.float32)", ["arith.sitofp", "tt.splat"]),
        ("tl.full([4], 1.5, tl.float8e5)", ["arith.constant", "tt.fp_to_fp"]),
        ("tl.full([4], float('nan'), tl.float32)", ["arith.constant", "tt.splat"]),
        ("tl.zeros_like(m)", ["arith.constant"]),
        ("tl.program_id(0)", ["tt.get_program_id"]),
        ("tl.num_programs(axis=2)", ["tt.get_num_programs"]),
    ],
)
def test_creation_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ("65519.0", "float16", 65504.0),
        ("65520.0", "float16", math.inf),
        ("-1e30", "float16", -math.inf),
        ("1e39", "float32", math.inf),
        ("3.4e38", "bfloat16", math.inf),
        ("3.38e38", "bfloat16", 3.3762391092936863e38),
        ("-1", "int8", -1),
        ("2**32 - 1", "uint32", -1),
    ],
)
def test_constant_of_a_type(ops, value: str, dtype: str, expected: float):
    (constant,) = ops(f"tl.full((), {value}, tl.{dtype})")
    assert constant.value.value.data == expected


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "tl.arange(0, 100)",
            "Expected a power of two, got 100 elements in tl.arange(0, 100). Pad it to 128 and mask the tail.",
        ),
        ("tl.arange(4, 4)", "tl.arange(4, 4) is empty. The end must be greater than the start."),
        (
            "tl.arange(0, n)",
            "The end of tl.arange is an integer known at compile time, got int32. "
            "It is a parameter: annotate it, as in `n: tl.constexpr`.",
        ),
        (
            "tl.arange(0, 2**31)",
            "The end of tl.arange fits in int32, got 2147483648. Add what is beyond afterwards.",
        ),
        (
            "tl.arange(0, 2**21)",
            "A tile has at most 1048576 elements, got 2097152 in the shape [2097152]. Loop over smaller tiles.",
        ),
        (
            "tl.zeros((16, 48), tl.float32)",
            "Expected powers of two, got 48 in the shape [16, 48]. Use 64 and mask the tail.",
        ),
        (
            "tl.zeros((n, 4), tl.float32)",
            "The shape (int32, 4) is not known at compile time: int32. "
            "It is a parameter: annotate it, as in `n: tl.constexpr`.",
        ),
        (
            "tl.zeros([4], 'fp32')",
            "The dtype of a tile is a type such as tl.float32, got 'fp32'. Did you mean tl.float32?",
        ),
        (
            "tl.full([4], x, tl.float32)",
            "The value of tl.full is a number or a scalar, got fp32[64]. Use tl.broadcast_to for a tile.",
        ),
        ("tl.full([4], 1.5, tl.int32)", "1.5 is no int32. Use a whole number, or a float type."),
        ("tl.program_id(3)", "tl.program_id takes axis 0, 1 or 2 of the grid, got 3."),
        ("tl.num_programs(n)", "tl.num_programs takes axis 0, 1 or 2 of the grid, got int32."),
    ],
)
def test_creation_errors(error, statement: str, message: str):
    assert error(statement) == message

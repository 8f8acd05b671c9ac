"""The functions that are written in the language, computed by the interpreter and compared with NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

SEED = np.random.SeedSequence().entropy


@pytest.fixture
def x() -> np.ndarray:
    print("seed", SEED)
    return np.random.default_rng(SEED).standard_normal((4, 8)).astype(np.float32)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("tl.sum(x)", lambda x: x.sum()),
        ("tl.sum(x, 1)", lambda x: x.sum(1)),
        ("x.sum(0, keep_dims=True)", lambda x: x.sum(0)),
        ("tl.max(x, 1)", lambda x: x.max(1)),
        ("x.min(-1)", lambda x: x.min(1)),
        ("tl.min(x, 0, return_indices=True)[0]", lambda x: x.min(0)),
        ("tl.cumsum(x, 1)", lambda x: x.cumsum(1)),
        ("tl.cumsum(x, 1, reverse=True)", lambda x: x[:, ::-1].cumsum(1)[:, ::-1]),
        ("tl.cumprod(x, 0)", lambda x: x.cumprod(0)),
        ("tl.softmax(x, 1)", lambda x: softmax(x, 1)),
        ("x.softmax()", lambda x: softmax(x, 0)),
        ("tl.sigmoid(x)", lambda x: 1 / (1 + np.exp(-x))),
        ("tl.ravel(x)", np.ravel),
        ("tl.zeros_like(x)", np.zeros_like),
        ("tl.interleave(x, -x)", lambda x: np.stack([x, -x], -1)),
        ("tl.unsqueeze(x, -1)", lambda x: x),
        ("x[...]", lambda x: x),
        ("x[None, ..., None].reshape(4, 8)", lambda x: x),
        ("tl.sum(x[..., None], 1).reshape(4)", lambda x: x.sum(1)),
        ("tl.expect_zero(x, x == 0)", lambda x: x),
        ("tl.sort(x)", lambda x: np.sort(x)),
        ("tl.flip(x, 0)", lambda x: x[::-1]),
        ("x.sort(0, descending=True)", lambda x: np.sort(x, 0)[::-1]),
        ("tl.topk(x, 4, dim=0)", lambda x: np.sort(x, 0)[::-1]),
        ("tl.topk(x, 2, descending=False)", lambda x: np.sort(x, 1)[:, :2]),
        ("tl.squeeze(tl.unsqueeze(x, 1), 1)", lambda x: x),
    ],
)
def test_floats(evaluate, x: np.ndarray, expression: str, reference):
    expected = np.asarray(reference(x.astype(np.float64))).ravel()
    found = evaluate(expression, x)[: expected.size]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("tl.argmax(x, 1)", lambda x: x.argmax(1)),
        ("x.argmin(0)", lambda x: x.argmin(0)),
        ("tl.argmax(x, 1, keep_dims=True)", lambda x: x.argmax(1)),
        ("tl.max(x, -1, return_indices=True)[1]", lambda x: x.argmax(1)),
        ("tl.xor_sum(x.to(tl.int32), 1)", lambda x: np.bitwise_xor.reduce(x.astype(np.int32), 1)),
        ("tl.reduce_or(x.to(tl.int32), 0)", lambda x: np.bitwise_or.reduce(x.astype(np.int32), 0)),
        ("tl.cdiv(x.to(tl.int32) + 100, 7)", lambda x: -(-(x.astype(np.int32) + 100) // 7)),
    ],
)
def test_integers(evaluate, x: np.ndarray, expression: str, reference):
    x = np.round(x * 3)  # so that there are ties
    expected = np.asarray(reference(x)).ravel()
    np.testing.assert_array_equal(evaluate(expression, x, "int32")[: expected.size], expected)


def test_narrow_integers_are_summed_as_int32(evaluate):
    x = np.full((4, 64), 100, np.int8)
    np.testing.assert_array_equal(evaluate("tl.sum(x, 1)", x, "int32")[:4], [6400] * 4)
    np.testing.assert_array_equal(evaluate("tl.sum(x > 0, 1)", x, "int32")[:4], [64] * 4)
    np.testing.assert_array_equal(evaluate("tl.max(x.to(tl.uint8), 1)", x - 120, "int32")[:4], [236] * 4)


def test_max_ignores_nan(evaluate):
    x = np.array([[np.nan, 1.0], [2.0, np.nan]], np.float32)
    np.testing.assert_array_equal(evaluate("tl.max(x, 1)", x)[:2], [1.0, 2.0])


def test_cdiv_of_constants_is_a_constant(op_names):
    assert op_names("tl.zeros([tl.cdiv(100, 7) + 1], tl.int8)") == ["arith.constant"]


def test_swizzle2d_goes_down_the_columns_of_a_group(evaluate):
    x = np.arange(16, dtype=np.int32)
    order = [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    expression = "tl.swizzle2d(x // 4, x % 4, 4, 4, 2)"
    rows, columns = (evaluate(f"{expression}[{i}]", x, "int32")[:16] for i in (0, 1))
    np.testing.assert_array_equal(rows * 4 + columns, order)


def test_argmax_needs_an_axis(error):
    assert error("tl.argmax(x, None)").endswith(
        "return_indices needs an axis; ravel the tile for the index among all elements"
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.sort(x, 1)", "sort: there is no dimension 1 in the shape (64,)"),
        ("tl.flip(f)", "flip: there is no dimension None in the shape ()"),
        ("tl.topk(x, 3)", "topk: k is a power of two, got 3. Take more, and mask the rest."),
        ("tl.topk(x, 128)", "topk: k is at most the extent 64 of the dimension, got 128"),
        ("tl.bitonic_merge(x, dim=-2)", "bitonic_merge: there is no dimension -2 in the shape (64,)"),
        ("tl.philox_impl(i, i, i, i, i, i)", "philox_impl takes words of uint32 or uint64"),
    ],
)
def test_errors_of_the_library(error, statement: str, message: str):
    assert error(statement).endswith(message)

"""Maps: types and errors."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("tl.map_elementwise(add, x, 1.0)", "fp32[64]"),
        ("tl.map_elementwise(compare, x, i)", "int1[64]"),
        ("tl.map_elementwise(add, i[:, None], u[None, :])", "uint32[64, 64]"),
    ],
)
def test_types(result_type, expression: str, type: str):
    assert result_type(expression) == type


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.map_elementwise(max, x)", "The function of tl.map_elementwise is a @jit function, got function max."),
        (
            "tl.map_elementwise(add, n, 1)",
            "tl.map_elementwise takes at least one tile. Call the function itself on scalars.",
        ),
        (
            "tl.map_elementwise(add, x, pack=0)",
            "pack of tl.map_elementwise is how many elements a call takes, got 0. Use 1.",
        ),
        (
            "tl.map_elementwise(add, x, pack=2)",
            "'add' returned (fp32,) for tl.map_elementwise with pack=2, "
            "which takes 2 scalars of one type for each result.",
        ),
    ],
)
def test_errors(error, statement: str, message: str):
    assert error(statement) == message

"""Whether the function of a reduction gives the same for both orders of its operands, seen on numbers.

    lambda a, b: where(a > b, a, b)     True
    lambda a, b: b                      False

It is run on pairs of random numbers, in both orders. Where two of them are equal any order will do, as between equal
values of an argmax; results that differ by rounding are alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute

from deuteron.errors import DeuteronError
from deuteron.interpreter.allocation import Memory
from deuteron.interpreter.executor import Executor
from deuteron.interpreter.region import function_of
from deuteron.interpreter.values import dtype_of, round_float
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.reduce import ReduceOp

SAMPLES = 128
TOLERANCE = 0.05  # of the largest number involved: far above rounding, far below another order

Tiles = list[np.ndarray]


def gives_the_same(op: ReduceOp) -> bool:
    """Whether a reduction's function does, for both orders of two elements. What cannot be tried does not."""
    block = op.combine.block
    if not all(is_pure(inner) for inner in block.ops):
        return False
    pairs = _pairs_of_each([src.type for src in op.srcs])
    lhs, rhs = [list(side) for side in zip(*pairs, strict=True)]
    run = function_of(Executor((1, 1, 1), Memory([]), {}), block)
    try:
        with np.errstate(all="ignore"):
            one, other = run([*lhs, *rhs]), run([*rhs, *lhs])
            return _are_alike(one, other, [*lhs, *rhs])
    except DeuteronError:
        return False


def _pairs_of_each(types: Sequence[Attribute]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each operand pairs of elements that differ: small whole numbers in one half, any in the other."""
    rng = np.random.default_rng(0)
    return [_pairs(rng, type) for type in types]


def _pairs(rng: np.random.Generator, type: Attribute) -> tuple[np.ndarray, np.ndarray]:
    dtype = dtype_of(type)
    if dtype.kind == "b":
        return tuple(rng.integers(0, 2, (2, SAMPLES)).astype(bool))
    small = rng.integers(0, 3, SAMPLES // 2)
    different = (small + rng.integers(1, 3, SAMPLES // 2)) % 3
    any_ = rng.permutation(np.arange(-SAMPLES // 2, SAMPLES // 2)).reshape(2, -1)
    numbers = np.concatenate([(small, different), any_], axis=1)
    if dtype.kind == "f":
        numbers = round_float(numbers * np.where(abs(numbers) > 2, 0.71, 1.0), type)
    return tuple(numbers.astype(dtype))


def _are_alike(one: Tiles, other: Tiles, operands: Tiles) -> bool:
    """Whether results are the same, of floats but for what rounding may do to numbers of their size."""
    size = np.max([np.abs(tile.astype(np.float64)) for tile in (*operands, *one, *other)], axis=0)
    is_number = np.isfinite(size)
    return all(
        np.array_equal(x, y)
        if x.dtype.kind != "f"
        else bool(np.all((np.abs(x.astype(np.float64) - y) <= TOLERANCE * size)[is_number]))
        for x, y in zip(one, other, strict=True)
    )

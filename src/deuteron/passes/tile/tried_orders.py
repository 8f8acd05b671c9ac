"""Whether the function of a reduction gives the same for both orders of its operands, seen on numbers.

    lambda a, b: where(a > b, a, b)     True
    lambda a, b: b                      False

It is run on pairs of random numbers of any size, and of those beside larger ones that the function has, in both orders.
Where two of them are equal any order will do, as between equal values of an argmax; results that differ by rounding are
alike.
Operands that are never negative, which counts of elements are, are tried so if what the function makes of them is not
negative either: `n1 / max(n0 + n1, 1)` is a part of counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Attribute

from deuteron.analysis.never_negative import is_never_negative
from deuteron.errors import DeuteronError
from deuteron.interpreter.allocation import Memory
from deuteron.interpreter.executor import Executor
from deuteron.interpreter.region import function_of
from deuteron.interpreter.values import dtype_of, round_float
from deuteron.ir.arith import constant_value
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.types import FLOAT_TYPES, element_type_of

SAMPLES = 128
TOLERANCE = 0.05  # of the largest number involved: far above rounding, far below another order

Tiles = list[np.ndarray]
Function = Callable[[Tiles], Tiles]


def gives_the_same(op: ReduceOp) -> bool:
    """Whether a reduction's function does, for both orders of two elements. What cannot be tried does not."""
    block = op.combine.block
    if not all(is_pure(inner) for inner in block.ops):
        return False
    run = function_of(Executor((1, 1, 1), Memory([]), {}), block)
    types = [src.type for src in op.srcs]
    try:
        with np.errstate(all="ignore"):
            return _gives_the_same(run, types, [is_never_negative(src) for src in op.srcs], _large_constants(op))
    except DeuteronError:
        return False


def _gives_the_same(
    run: Function, types: Sequence[Attribute], are_counts: Sequence[bool], constants: Sequence[float]
) -> bool:
    """Whether it does where some operands are never negative, or where any may be if it makes negative ones of them."""
    pairs = _pairs_of_each(types, are_counts, constants)
    lhs, rhs = [list(side) for side in zip(*pairs, strict=True)]
    one, other = run([*lhs, *rhs]), run([*rhs, *lhs])
    if any(
        is_count and np.any(result < 0)
        for results in (one, other)
        for result, is_count in zip(results, are_counts, strict=True)
    ):
        return _gives_the_same(run, types, [False] * len(types), constants)
    return _are_alike(one, other, [*lhs, *rhs])


def _large_constants(op: ReduceOp) -> list[float]:
    """The numbers that its function has, wherever they are made, of those that are not among the others."""
    values = {operand for inner in nested_ops(op)[1:] for operand in inner.operands}
    numbers = {float(number) for value in values if (number := constant_value(value)) is not None}
    return sorted(number for number in numbers if abs(number) > SAMPLES // 2)


def _pairs_of_each(
    types: Sequence[Attribute], are_counts: Sequence[bool], constants: Sequence[float]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each operand pairs of elements that differ: small ones, some beside constants, and others."""
    rng, of_each = np.random.default_rng(0), list(zip(types, are_counts, strict=True))
    found = [[_pairs(rng, *one)] for one in of_each]
    if constants:
        for parts, one in zip(found, of_each, strict=True):
            parts.append(_beside(rng, *one, parts[0], constants))
    for parts, one in zip(found, of_each, strict=True):
        parts.append(_of_any_size(rng, *one))
    return [tuple(np.concatenate(parts, axis=1)) for parts in found]


def _pairs(rng: np.random.Generator, type: Attribute, is_count: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of elements that differ: small whole numbers in one half, any up to some tens in the other."""
    dtype = dtype_of(type)
    if dtype.kind == "b":
        return tuple(rng.integers(0, 2, (2, SAMPLES)).astype(bool))
    small = rng.integers(0, 3, SAMPLES // 2)
    different = (small + rng.integers(1, 3, SAMPLES // 2)) % 3
    any_ = rng.permutation(np.arange(-SAMPLES // 2, SAMPLES // 2)).reshape(2, -1) + is_count * SAMPLES // 2
    numbers = np.concatenate([(small, different), any_], axis=1)
    if dtype.kind == "f":
        numbers = round_float(numbers * np.where(abs(numbers) > 2, 0.71, 1.0), type)
    return tuple(numbers.astype(dtype))


def _of_any_size(rng: np.random.Generator, type: Attribute, is_count: bool) -> np.ndarray:
    """Pairs of elements that differ, and not by much in size: what tells large numbers apart need not have one, as
    `x // 60 // 60 > 0` has none. Sums of two do not overflow; counts are 1 at least.
    """
    dtype, shape = dtype_of(type), (2, 2 * SAMPLES)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    is_float = dtype.kind == "f"
    most = FLOAT_TYPES[element_type_of(type)].bias - 1 if is_float else 8 * dtype.itemsize - 2
    least = -most if is_float and not is_count else 0
    powers = rng.uniform(least, most, shape[1]) + rng.uniform(-3, 3, shape)
    numbers = 2.0 ** powers.clip(least, most) * (1 if is_count else rng.choice((-1, 1), shape))
    numbers = round_float(numbers, type) if is_float else numbers.astype(dtype)
    numbers[1] += numbers[0] == numbers[1]
    return numbers


def _beside(
    rng: np.random.Generator, type: Attribute, is_count: bool, others: Tiles, constants: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different numbers beside constants; others again, where a type has none of them."""
    dtype = dtype_of(type)
    near = np.array([about for number in constants for about in (number - 1, number, number + 1, 2 * number)])
    near = near[near >= 0] if is_count else near
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            near = round_float(near, type)
        elif dtype.kind == "i":
            near = near[(near >= np.iinfo(dtype).min) & (near <= np.iinfo(dtype).max)]
        near = np.unique(near[np.isfinite(near)].astype(dtype))
    if dtype.kind == "b" or len(near) < 2:
        return others
    first = rng.integers(0, len(near), SAMPLES)
    return near[first], near[(first + rng.integers(1, len(near), SAMPLES)) % len(near)]


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

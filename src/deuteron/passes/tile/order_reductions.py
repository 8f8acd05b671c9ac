"""Keeps the order of what a reduction combines, where its function tells one order from another.

    %r = "tt.reduce"(%x) <{axis = 0}> ({        %s = "tt.scan"(%x) <{axis = 0}> ({ ... })
    ^bb0(%a: f32, %b: f32):                     %i = 0, 1, ..., n - 1
      "tt.reduce.return"(%b)             ->     _, %r = "tt.reduce"(%i, %s) <{axis = 0}> ({
    })                                            ... what has the larger index
                                                })

Reductions combine in the order that costs least: the first half of the lanes with the second. Scans keep the order, and
what is at the end of a scan is the reduction. Whether a function is commutative is seen on numbers: it is run on pairs
of random ones, in both orders. Where two of them are equal any order will do, as between equal values of an argmax;
results that differ by rounding are alike. Triton computes such reductions in whatever order it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass

from deuteron.errors import DeuteronError
from deuteron.interpreter.allocation import Memory
from deuteron.interpreter.executor import Executor
from deuteron.interpreter.region import function_of
from deuteron.interpreter.values import dtype_of, round_float
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure, is_removable
from deuteron.ir.tt.reduce import ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp
from deuteron.ir.types import shape_of
from deuteron.passes.rewrite import erase, replace

SAMPLES = 128
TOLERANCE = 0.05  # of the largest number involved: far above rounding, far below another order

Tiles = list[np.ndarray]


@dataclass(frozen=True)
class OrderReductions(ModulePass):
    """Makes scans of reductions by functions that are not commutative."""

    name = "order-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reduction in [inner for inner in op.walk() if isinstance(inner, ReduceOp)]:
            _drop_unused(reduction.combine.block)
            if not is_commutative(reduction):
                _order(reduction)


def _drop_unused(block: Block) -> None:
    """Remove what a function does not use: asking for a type leaves tiles, which no pairs of numbers are."""
    for op in reversed(list(block.ops)):
        if op.results and is_removable(op) and all(result.first_use is None for result in op.results):
            erase(op)


def is_commutative(op: ReduceOp) -> bool:
    """Whether a reduction's function gives the same for both orders of two elements. What cannot be tried does not."""
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


def _order(op: ReduceOp) -> None:
    """Replace a reduction by what is at the end of a scan."""
    b, axis = Builder.before(op), op.axis.value.data
    for src in op.srcs:
        if isinstance(src.owner, ReshapeOp):
            src.owner.properties.pop("allow_reorder", None)
    scan = ScanOp(op.srcs, axis)
    _copy_function(op, scan)
    b.insert(scan)
    last = ReduceOp([_positions(b, shape_of(op.srcs[0].type), axis), *scan.res], axis)
    _pick_larger(b, last)
    b.insert(last)
    replace(op, last.res[1:])


def _copy_function(op: ReduceOp, scan: ScanOp) -> None:
    block = op.combine.block
    values = dict(zip(block.args, scan.combine.block.args, strict=True))
    for inner in list(block.ops)[:-1]:
        scan.combine.block.add_op(inner.clone(values))
    outcome = block.last_op
    results = ScanReturnOp([values.get(value, value) for value in outcome.operands])
    results.location = outcome.location
    scan.combine.block.add_op(results)


def _positions(b: Builder, shape: Sequence[int], axis: int) -> SSAValue:
    """The index of each element along the axis."""
    result = b.value(MakeRangeOp(0, shape[axis]))
    for dimension in range(len(shape)):
        if dimension != axis:
            result = b.value(ExpandDimsOp(result, dimension))
    return b.value(BroadcastOp(result, shape)) if shape_of(result.type) != tuple(shape) else result


def _pick_larger(b: Builder, op: ReduceOp) -> None:
    """The function of a reduction that gives the elements whose first value is larger."""
    block = op.combine.block
    half = len(op.srcs)
    with b.at(block):
        is_later = b.value(CmpIOp(block.args[0], block.args[half], "sgt"))
        pairs = zip(block.args[:half], block.args[half:], strict=True)
        b.insert(ReduceReturnOp([b.value(SelectOp(is_later, x, y)) for x, y in pairs]))

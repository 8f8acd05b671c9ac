"""Tiles of strided arrays: which dimensions a tile of pointers walks, from where, and where a mask ends them.

    a + 128 * pid * stride + i0 * stride + i1 + 64 * k + head * pitch,  mask i0 + 128 * pid < M

    base a      stride      offset       axis   size
                pitch       head                          a dimension of its own, the block is one deep
                stride      128 * pid    0      M
                1           64 * k       1

Strides and sizes count elements, and come from the kernel's arguments alone. An offset moves the block along the
dimension whose stride divides it; where it has an argument that no stride has, that is the stride of another dimension.
So is a part of it that a mask does not count, where strides are numbers:

    a + 64 * head + 512 * i0 + i1,  mask i1 < 64            a dimension of stride 64 that begins at head, a block of one
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Monomial, Polynomial, coordinate
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.points_to import is_argument
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp, TransOp
from deuteron.ir.types import is_pointer

ZERO, ONE = Polynomial.constant(0), Polynomial.constant(1)


@dataclass(frozen=True)
class Dimension:
    """One of the array: the block begins at `offset` and goes along an axis of the tile, or is one deep where that is
    None. `size` is None where nothing is out of bounds; `starts_at_zero`: a mask leaves out what lies before.
    """

    stride: Polynomial
    offset: Polynomial
    axis: int | None
    size: Polynomial | None = None
    starts_at_zero: bool = False

    def coordinate(self, axis: int) -> Polynomial:
        """That of an element of the block, whose own coordinate is that of an axis."""
        return self.offset + Polynomial.of(coordinate(axis))

    def bounded(self, size: Polynomial) -> Dimension | None:
        """With a size, unless it has another one."""
        return replace(self, size=size) if self.size in (None, size) else None


@dataclass(frozen=True)
class StridedTile:
    """A tile of pointers into the array that starts at an argument of the kernel."""

    base: SSAValue
    dimensions: tuple[Dimension, ...]

    def along(self, axis: int) -> Dimension:
        return next(dimension for dimension in self.dimensions if dimension.axis == axis)

    def with_dimension(self, old: Dimension, new: Dimension) -> StridedTile:
        return replace(self, dimensions=tuple(new if one is old else one for one in self.dimensions))


def strided_tile(pointer: Polynomial, rank: int) -> StridedTile | None:
    """The array that a tile of pointers walks, if it is one."""
    bases = [monomial for monomial, factor in pointer if factor == 1 and _is_base(monomial)]
    if len(bases) != 1:
        return None
    _, rest = pointer.split(lambda monomial: monomial in bases)
    dimensions: list[Dimension] = []
    for axis in range(rank):
        along, rest = rest.split(lambda monomial, axis=axis: coordinate(axis) in monomial)
        stride = along.over(Polynomial.of(coordinate(axis)))
        if stride is None or len(list(stride)) != 1 or not is_uniform(stride):
            return None
        dimensions.append(Dimension(stride, ZERO, axis))
    for monomial, factor in rest:
        _move(dimensions, monomial, factor)
    return StridedTile(bases[0][0].value, tuple(dimensions)) if _are_offsets(dimensions) else None


def masked(tile: StridedTile, known: TilePolynomials, mask: SSAValue) -> StridedTile | None:
    """The tile with the bounds that a mask says; None where it says anything else."""
    conditions = positive(known, mask)
    if conditions is None:
        return None
    for condition in conditions:
        tile = _bounded(tile, condition)
        if tile is None:
            return None
    return tile


def positive(known: TilePolynomials, mask: SSAValue) -> list[Polynomial] | None:
    """What is positive exactly where a mask is on; None where that is more than comparisons that all hold."""
    if constant_value(mask) == 1:
        return []
    op = mask.owner
    if isinstance(op, arith.AndIOp):
        both = [positive(known, operand) for operand in op.operands]
        return None if None in both else both[0] + both[1]
    if isinstance(op, CmpIOp):
        return _compared(known, op)
    if isinstance(op, BroadcastOp | SplatOp):
        return positive(known, op.src)
    if isinstance(op, ExpandDimsOp | TransOp):
        inner = positive(known, op.src)
        return None if inner is None else [known.with_axes(op, condition) for condition in inner]
    return None


def is_uniform(polynomial: Polynomial) -> bool:
    """Whether it is the same in every program: made of integer arguments of the kernel."""
    return all(map(_is_argument, polynomial.atoms))


def _compared(known: TilePolynomials, op: CmpIOp) -> list[Polynomial] | None:
    lhs, rhs = known.of(op.lhs), known.of(op.rhs)
    if op.predicate_name == "ult" and lhs is not None and rhs is not None:
        bound = _natural_bound(known, rhs)
        return None if bound is None else [bound - lhs, lhs + ONE]
    rule = _COMPARISONS.get(op.predicate_name)
    return None if lhs is None or rhs is None or rule is None else [rule(lhs, rhs)]


_COMPARISONS: dict[str, Callable[[Polynomial, Polynomial], Polynomial]] = {
    "slt": lambda lhs, rhs: rhs - lhs,
    "sle": lambda lhs, rhs: rhs - lhs + ONE,
    "sgt": lambda lhs, rhs: lhs - rhs,
    "sge": lambda lhs, rhs: lhs - rhs + ONE,
}


def _natural_bound(known: TilePolynomials, bound: Polynomial) -> Polynomial | None:
    """The x of max(x, 0), or a number that is not negative: what is less without a sign is less, and not negative."""
    if bound.number is not None:
        return bound if bound.number >= 0 else None
    atoms = list(bound.atoms)
    maximum = atoms[0].value.owner if bound == Polynomial.of(*atoms) and atoms[0].value is not None else None
    if not isinstance(maximum, arith.MaxSIOp) or constant_value(maximum.rhs) != 0:
        return None
    return known.of(maximum.lhs)


def _bounded(tile: StridedTile, condition: Polynomial) -> StridedTile | None:
    """With the bound of one dimension, at its end or at 0, that a condition is."""
    axes = [atom.axis for atom in condition.atoms if atom.axis is not None]
    if len(axes) != 1:
        return None
    dimension = tile.along(axes[0])
    size, distance = condition + dimension.coordinate(axes[0]), dimension.coordinate(axes[0]) + ONE - condition
    bounded = None
    if is_uniform(size):
        bounded = dimension.bounded(size)
    elif distance == ZERO:
        bounded = replace(dimension, starts_at_zero=True)
    elif (apart := _detached(tile, dimension, size) or _detached(tile, dimension, distance)) is not None:
        return _bounded(apart, condition)
    return tile.with_dimension(dimension, bounded) if bounded is not None else None


def _detached(tile: StridedTile, dimension: Dimension, bound: Polynomial) -> StridedTile | None:
    """The tile in which that part of an offset which a bound is too large by moves along dimensions of its own."""
    varying, _ = bound.split(lambda monomial: not all(map(_is_argument, monomial)))
    rest = dimension.offset - varying
    is_part = {monomial for monomial, _ in varying}.isdisjoint(monomial for monomial, _ in rest)
    if not is_part or varying == ZERO or dimension.size is not None or dimension.starts_at_zero:
        return None
    moved = tile.with_dimension(dimension, replace(dimension, offset=rest))
    others = tuple(_walk(dimension.stride, monomial, factor) for monomial, factor in varying)
    return replace(moved, dimensions=moved.dimensions + others)


def _move(dimensions: list[Dimension], monomial: Monomial, factor: int) -> None:
    """Move the block by an offset: along the dimension with the longest stride that divides it."""
    offset = Polynomial({monomial: factor})
    for dimension in sorted(dimensions, key=_specificity, reverse=True):
        steps = offset.over(dimension.stride)
        if steps is not None and not any(map(_is_argument, steps.atoms)):
            moved = replace(dimension, offset=dimension.offset + steps)
            dimensions[dimensions.index(dimension)] = moved
            return
    dimensions.append(_walk(ONE, monomial, factor))


def _walk(unit: Polynomial, monomial: Monomial, factor: int) -> Dimension:
    """A dimension of which the block is one deep, for an offset in such units."""
    arguments = [atom for atom in monomial if _is_argument(atom)]
    others = [atom for atom in monomial if not _is_argument(atom)]
    stride = unit * Polynomial.of(*arguments) * Polynomial.constant(abs(factor))
    sign = Polynomial.constant(1 if factor > 0 else -1)
    return Dimension(stride, Polynomial.of(*others) * sign, None)


def _specificity(dimension: Dimension) -> tuple[int, int]:
    ((monomial, factor),) = dimension.stride
    return len(monomial), abs(factor)


def _are_offsets(dimensions: Sequence[Dimension]) -> bool:
    """Whether offsets are integers, the same for all elements of the tile."""
    return all(
        atom.value is not None and not is_pointer(atom.value.type)
        for dimension in dimensions
        for atom in dimension.offset.atoms
    )


def _is_base(monomial: Iterable[Atom]) -> bool:
    atoms = list(monomial)
    return len(atoms) == 1 and is_argument(atoms[0].value) and is_pointer(atoms[0].value.type)


def _is_argument(atom: Atom) -> bool:
    return is_argument(atom.value) and not is_pointer(atom.value.type)

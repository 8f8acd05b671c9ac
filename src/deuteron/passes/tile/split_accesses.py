"""Splits loads and stores at places that are chosen of a few strips, each of which goes on from element to element.

    i = tl.arange(0, 256)
    tl.load(row + tl.where(i < s, i + n - s, i - s), i < n)         a row that is rolled

becomes

    tl.where(i < s, tl.load(row + (i + n - s), (i < n) & (i < s)), tl.load(row + (i - s), (i < n) & (i >= s)))

A CPU moves neighbours under masks in a vector each, and where no lane of one is on not at all; what is chosen lane by
lane it gathers or scatters. Along the last dimension the places have to be neighbours, or the same, once they are
chosen, and what chooses them has to change along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.polynomial import coordinate
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import AddPtrOp, CacheModifier, EvictionPolicy, LoadOp, StoreOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, TransOp
from deuteron.ir.types import is_tile, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import clone_on, erase, replace

MOST_STRIPS = 4

Places = Union["Choice", SSAValue]  # an address: chosen, or of a strip
Path = list[tuple[Operation, SSAValue]]  # ops, each with the operand that the next one gives, from an address on

_NUMBERS = (AddPtrOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, ExtSIOp)
_SHAPES = (BroadcastOp, ExpandDimsOp, TransOp)
_OPPOSITES = (("eq", "ne"), ("slt", "sge"), ("sle", "sgt"), ("ult", "uge"), ("ule", "ugt"))
_OTHERWISE = dict([*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)])


@dataclass(frozen=True)
class Choice:
    """Of the places of an access: where a condition holds, and where it does not."""

    condition: SSAValue
    otherwise: SSAValue
    places: Places
    others: Places

    @property
    def num_strips(self) -> int:
        return sum(one.num_strips if isinstance(one, Choice) else 1 for one in (self.places, self.others))


class SplitAccesses(Optimisation):
    """Splits loads and stores at places that are chosen of a few strips."""

    name = "split-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = TilePolynomials()
        for access in nested_ops(op, LoadOp | StoreOp):
            if is_tile(access.ptr.type) and shape_of(access.ptr.type) and not _is_volatile(access):
                _split(known, access)


def _is_volatile(access: LoadOp | StoreOp) -> bool:
    return isinstance(access, LoadOp) and access.is_volatile.value.data


def _split(known: TilePolynomials, access: LoadOp | StoreOp) -> None:
    builder = Builder.before(access)
    places = _places(known, builder, access.ptr, MOST_STRIPS)
    if not isinstance(places, Choice):
        return
    if isinstance(access, StoreOp):
        _store(builder, access, places, access.mask)
        erase(access)
    else:
        replace(access, [_load(builder, access, places, access.mask)])


def _places(known: TilePolynomials, builder: Builder, address: SSAValue, most: int) -> Places | None:
    """An address by its choices, `most` strips at most; None where it is not made of strips alone."""
    found = _find_choice(known, address)
    if found is None:
        return address if _goes_on(known, address) else None
    if most == 1:
        return None
    path, choice = found
    places = _places(known, builder, _follow(builder, path, choice.true_value), most - 1)
    num_strips = places.num_strips if isinstance(places, Choice) else 1
    others = places and _places(known, builder, _follow(builder, path, choice.false_value), most - num_strips)
    if others is None:
        return None
    shapes = [(op, value) for op, value in path if isinstance(op, _SHAPES)]
    conditions = choice.condition, _otherwise(builder, choice.condition)
    return Choice(*(_follow(builder, shapes, condition) for condition in conditions), places, others)


def _find_choice(known: TilePolynomials, value: SSAValue) -> tuple[Path, SelectOp] | None:
    """What an address is made of a choice by, if all else is known, and the choice changes along the last dimension."""
    axis, path = len(shape_of(value.type)) - 1, []
    while known.of(value) is None and isinstance(value.owner, (*_NUMBERS, *_SHAPES)):
        op = value.owner
        unknown = {operand for operand in op.operands if known.of(operand) is None}
        if len(unknown) != 1 or shape_of(op.results[0].type)[axis] == 1:
            return None
        (value,) = unknown
        path.append((op, value))
        if isinstance(op, ExpandDimsOp | TransOp):
            axis = op.source_axis(axis)
    choice = value.owner
    if not isinstance(choice, SelectOp) or not is_tile(choice.condition.type):
        return None
    return (path, choice) if _changes(known, choice.condition, axis) else None


def _changes(known: TilePolynomials, condition: SSAValue, axis: int) -> bool:
    """Whether a condition is not the same along a dimension, as far as that is known."""
    op = condition.owner
    if shape_of(condition.type)[axis] == 1:
        return False
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        return any(_changes(known, operand, axis) for operand in op.operands)
    if isinstance(op, BroadcastOp):
        return _changes(known, op.src, axis)
    sides = [known.of(side) for side in op.operands] if isinstance(op, CmpIOp) else [None]
    return None in sides or any(coordinate(axis) in side.atoms for side in sides)


def _goes_on(known: TilePolynomials, place: SSAValue) -> bool:
    """Whether it is the same along the last dimension, or the next element."""
    address, last = known.of(place), coordinate(len(shape_of(place.type)) - 1)
    return address is not None and all(
        (monomial, factor) == ((last,), 1) for monomial, factor in address if last in monomial
    )


def _follow(builder: Builder, path: Path, value: SSAValue) -> SSAValue:
    """What the ops of a path, the last of them first, make of a value in the place of the one that they are on."""
    for op, before in reversed(path):
        value = builder.value(_on(op, [value if operand is before else operand for operand in op.operands]))
    return value


def _on(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """The op on other operands; those that change the shape may be on elements of any type."""
    if isinstance(op, BroadcastOp):
        return BroadcastOp(*operands, shape_of(op.result.type))
    if isinstance(op, ExpandDimsOp):
        return ExpandDimsOp(*operands, op.axis.value.data)
    if isinstance(op, TransOp):
        return TransOp(*operands, op.permutation)
    return clone_on(op, operands)


def _otherwise(builder: Builder, condition: SSAValue) -> SSAValue:
    op = condition.owner
    if isinstance(op, CmpIOp):
        return builder.value(CmpIOp(op.lhs, op.rhs, _OTHERWISE[op.predicate_name]))
    return builder.value(arith.XOrIOp(condition, builder.constant(True, condition.type)))


def _load(builder: Builder, load: LoadOp, places: Places, mask: SSAValue | None) -> SSAValue:
    """What is loaded at places of which a mask says which are needed."""
    if isinstance(places, Choice):
        one = _load(builder, load, places.places, _both(builder, mask, places.condition))
        other = _load(builder, load, places.others, _both(builder, mask, places.otherwise))
        return builder.value(SelectOp(places.condition, one, other))
    cache, evict = CacheModifier(load.cache.value.data), EvictionPolicy(load.evict.value.data)
    return builder.value(LoadOp(places, mask, load.other, cache, evict))


def _store(builder: Builder, store: StoreOp, places: Places, mask: SSAValue | None) -> None:
    if isinstance(places, Choice):
        _store(builder, store, places.places, _both(builder, mask, places.condition))
        _store(builder, store, places.others, _both(builder, mask, places.otherwise))
        return
    cache, evict = CacheModifier(store.cache.value.data), EvictionPolicy(store.evict.value.data)
    builder.insert(StoreOp(places, store.value, mask, cache, evict))


def _both(builder: Builder, mask: SSAValue | None, condition: SSAValue) -> SSAValue:
    return condition if mask is None else builder.value(arith.AndIOp(mask, condition))

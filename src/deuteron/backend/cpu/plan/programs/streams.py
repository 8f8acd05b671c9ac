"""Finds the stores of a kernel that may bypass the caches: what they write is written once and not read by this launch.

    x = load(x_ptr + i)
    store(out + i, x + 1)           Streams({store}, written={out}, read={x_ptr}, num_bytes=4096 for 1,024 fp32)
    store(x_ptr + i, x + 1)         none: the lines are in the cache already

Whether they do is decided by each launch (`streaming.py`), for arguments may be one array, in which case they are slow.
Such stores are not in order with others. So no kernel has any that keeps accesses of memory in order, or does anything
to memory but plain loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.aliasing.points_to import Targets, is_argument, points_to
from deuteron.analysis.aliasing.written_arguments import touched_arguments
from deuteron.backend.cpu.memory.elements import memory_type
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.effects import only_loads_and_stores
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import For, If, Nest, While, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import StoreRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.effects import READ, effects_inside
from deuteron.ir.types import shape_of

# Neighbours in memory that a program writes: lines of the cache, of which only the first and the last are not full.
MIN_ROW_BYTES = 256

# More are not worth it: such a store is three stores, of which one is done, and 600 of them took 1.5 s to compile; a
# launch compares all arguments that are written with all that are read.
MOST_STORES, MOST_PAIRS = 32, 256


@dataclass(frozen=True)
class Rows:
    """What a program writes by a store: so many bytes for each of `extent` neighbours, of which an argument, if any, is
    the limit, as the mask says.
    """

    num_bytes: int
    extent: int
    limit: SSAValue | None = None


@dataclass(frozen=True)
class Streams:
    """Stores that may bypass the caches, the arguments that they write, those that the kernel reads, and what a program
    writes by them.
    """

    stores: frozenset[Operation] = frozenset()
    written: frozenset[SSAValue] = frozenset()
    read: frozenset[SSAValue] = frozenset()
    rows: tuple[Rows, ...] = ()


def find_streams(plan: Plan) -> Streams:
    """The streams of a planned function, whose tiles are where they stay."""
    if not only_loads_and_stores(plan.function):
        return Streams()
    read, steps = touched_arguments((effect for _, effect in effects_inside(plan.function)), READ), Steps(plan)
    found = [
        store
        for store in _stores(plan.body)
        if _is_apart(store.root, read) and _moves_on(store) and _has_rows(steps, store.nest, store.root)
    ]
    written = frozenset().union(*(points_to(store.root.op.ptr).arguments for store in found))
    if len(found) > MOST_STORES or len(written) * len(read.arguments) > MOST_PAIRS:
        return Streams()
    return Streams(
        frozenset(store.root.op for store in found),
        written,
        read.arguments,
        tuple(_rows(steps, store) for store in found),
    )


class _Store(NamedTuple):
    """A store, its nest, and the loops around it."""

    nest: Nest
    root: StoreRoot
    loops: tuple[For | While, ...]


def _stores(region: Region, loops: tuple[For | While, ...] = ()) -> Iterator[_Store]:
    for item in region.items:
        if isinstance(item, Nest):
            yield from (_Store(item, root, loops) for root in item.roots if isinstance(root, StoreRoot))
            continue
        around = loops if isinstance(item, If) else (*loops, item)
        for inner in regions_of(item):
            yield from _stores(inner, around)


def _rows(steps: Steps, store: _Store) -> Rows:
    """What a program writes by it; in a loop of which it is not known how often it runs, in one iteration."""
    shape, index = store.nest.shape, identity_index(store.nest.shape)
    axis = next(axis for axis in range(len(shape)) if steps.along(store.root.op.ptr, index, axis) == 1)
    times = prod(_num_iterations(loop) for loop in store.loops) * prod(shape) // shape[axis]
    return Rows(times * _width(store.root), shape[axis], _limit(steps, store, axis))


def _limit(steps: Steps, store: _Store, axis: int) -> SSAValue | None:
    """The argument that the mask compares neighbours with, to be below it."""
    pending, rank = [store.root.op.mask] if store.root.op.mask is not None else [], len(store.nest.shape)
    while pending:
        op = pending.pop().owner
        if isinstance(op, arith.AndIOp) or (isinstance(op, Operation) and ops.declared(op).forwards):
            pending += op.operands
        elif isinstance(op, CmpIOp) and op.predicate_name in ("slt", "ult"):
            number, limit = op.operands[0], ops.forwarded(op.operands[1])
            if _grows_along(steps, number, axis, rank) and is_argument(limit):
                return limit
    return None


def _grows_along(steps: Steps, value: SSAValue, axis: int, rank: int) -> bool:
    """Whether a tile in the nest's dimensions counts up along one of them."""
    shape = shape_of(value.type)
    return len(shape) == rank and shape[axis] > 1 and steps.along(value, identity_index(shape), axis) == 1


def _num_iterations(loop: For | While) -> int:
    bounds = [constant_value(value) for value in loop.op.operands[:3]] if isinstance(loop, For) else [None]
    return 1 if None in bounds else max(1, len(range(*bounds)))


def _moves_on(store: _Store) -> bool:
    """Whether each iteration writes elsewhere: what does not change in a loop has been hoisted out of it."""
    return all(loop.op.is_ancestor(store.root.op.ptr.owner) for loop in store.loops)


def _is_apart(root: StoreRoot, read: Targets) -> bool:
    targets = points_to(root.op.ptr)
    return targets.is_known and not targets.shares(read)


def _has_rows(steps: Steps, nest: Nest, root: StoreRoot) -> bool:
    """Whether enough neighbours in memory are written along a dimension."""
    index = identity_index(nest.shape)
    return any(
        steps.along(root.op.ptr, index, axis) == 1 and extent * _width(root) >= MIN_ROW_BYTES
        for axis, extent in enumerate(nest.shape)
    )


def _width(root: StoreRoot) -> int:
    return byte_width(memory_type(root.op.value.type))

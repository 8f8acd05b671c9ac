"""Which stores by TMA have to wait until those before them are done: TMA keeps no order between them.

    d.store([m, 0], x)                 %1
    d.store([m, 64], y)                %2       blocks of 128 x 64: elsewhere
    for k in range(n):
        d.store([k * 128, 0], z)       %3       where %1 was, maybe; in each iteration elsewhere
        d.atomic_add([0, 0], z)        %4       adds up in any order, but not before %3 is done

    stores_that_wait(func, [%1, %2, %3, %4])    [%3, %4]

Blocks of one descriptor are apart where their offsets along a dimension are by its extent or more, in polynomials
(tile_polynomials.py). Offsets have 32 bits, and none that is negative is stored at: those which only grow do not come
back, but a step may be 2**32. A store that waits has waited for all before it, so that after it only later ones count.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.next_iteration import growth
from deuteron.analysis.aliasing.program_order import ProgramOrder
from deuteron.analysis.aliasing.written_arguments import written_by
from deuteron.dtypes import as_signed
from deuteron.ir.arith import constant_value
from deuteron.ir.around import loops_around
from deuteron.ir.tt.descriptor import DescriptorReduceOp, DescriptorStoreOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import bit_width_of, shape_of

Store = DescriptorStoreOp | DescriptorReduceOp


def stores_that_wait(func: FuncOp, stores: Sequence[Store]) -> list[Store]:
    """`stores`: all of a function, in the order of its ops."""
    known, order, waiting = TilePolynomials(), ProgramOrder(func, stores), []
    for store in stores:
        last = next((other for other in reversed(waiting) if other.parent is store.parent), None)
        if last is not None:
            before, loops = [other for other in stores if _is_between(last, other, store)], []
        else:
            before, loops = order.before(store), list(loops_around(store))
        if any(_may_meet(known, store, other, loops) for other in before):
            waiting.append(store)
    return waiting


def _is_between(first: Store, other: Store, last: Store) -> bool:
    """Whether an op is the first of two in a block, or comes after it and before the last."""
    beside = first.parent.find_ancestor_op_in_block(other)
    return beside is not None and beside.is_before_in_block(last) and not beside.is_before_in_block(first)


def _may_meet(known: TilePolynomials, store: Store, other: Store, loops: Sequence[Operation]) -> bool:
    """Whether they may write the same place, in other iterations of these loops, or in the same ones."""
    if not written_by(store).shares(written_by(other)) or _are_alike(store, other):
        return False
    if store.desc is not other.desc:
        return True
    common = [loop for loop in loops if loop.is_ancestor(other)]
    is_apart_now = store is other or _are_apart_now(known, store, other)
    return not is_apart_now or not all(_are_apart_later(known, store, other, loop) for loop in common)


def _are_apart_now(known: TilePolynomials, store: Store, other: Store) -> bool:
    """Whether they are in the same iteration of all loops."""
    gaps = zip(_gaps(known, store, other), shape_of(store.desc.type.block), strict=True)
    return any(gap is not None and gap >= extent for gap, extent in gaps)


def _are_alike(store: Store, other: Store) -> bool:
    """Whether both add up, or choose from the same, in any order."""
    return isinstance(store, DescriptorReduceOp) and isinstance(other, DescriptorReduceOp) and store.kind == other.kind


def _gaps(known: TilePolynomials, store: Store, other: Store) -> list[int | None]:
    """How far blocks are from each other along each dimension, where that is a number."""
    gaps = ((known.of(one) - known.of(two)).number for one, two in zip(store.indices, other.indices, strict=True))
    return [None if gap is None else abs(gap) for gap in gaps]


def _are_apart_later(known: TilePolynomials, store: Store, other: Store, loop: Operation) -> bool:
    """Whether they are in any two iterations of a loop, whatever loops in it do."""
    if not isinstance(loop, scf.ForOp):
        return False
    extents = shape_of(store.desc.type.block)
    return any(
        _moves(known, index, loop) - gap >= extent
        for index, gap, extent in zip(store.indices, _gaps(known, store, other), extents, strict=True)
        if gap is not None
    )


def _moves(known: TilePolynomials, index: SSAValue, loop: scf.ForOp) -> int:
    """By how much an iteration of a loop moves an offset, at least; 0 where that is not known. A step that is no number
    is one or more, and not so large that offsets come around.
    """
    grows, step = growth(known, known.of(index), loop), constant_value(loop.step)
    if grows is None or grows.number is None:
        return 0
    return abs(as_signed(grows.number * (step or 1), bit_width_of(index.type)))

"""Tiles that a thread has in its memory, loaded whole, of which as much is known as before they went there.

    %w = ttg.private_load %m {tt.contiguity = ..., tt.divisibility = ...}

Copies that run on need neighbours at addresses of which this is known, and other accesses are wider by it.

What is stored whole is a loop over slices where it is a constant, or in memory already.

What a loop over slices has stored is not stored again for another loop, that was made before, and takes it from there.
Nor is what is in other memory for as long as it is read (`make_no_copies`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.axis_info import unknown
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.hints import CONSTANCY, CONTIGUITY, DIVISIBILITY, promise
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateStoreOp, PrivateViewOp, view_of
from deuteron.passes.gpu.slices.rolled_loops import insert_loop, slice_body
from deuteron.passes.rewrite import erase


def load_whole(b: Builder, memory: SSAValue, value: SSAValue, infos: AxisInfoAnalysis) -> SSAValue:
    """All of a tile that is in memory now."""
    load, info = PrivateLoadOp(memory), infos.of(value)
    if info != unknown(value):
        for name, numbers in (
            (DIVISIBILITY, info.divisibility),
            (CONTIGUITY, info.contiguity),
            (CONSTANCY, info.constancy),
        ):
            promise(load, name, numbers)
    whole = b.value(load)
    whole.name_hint = value.name_hint
    infos.visit(load)
    return whole


def store_whole(before: Operation, value: SSAValue, memory: SSAValue) -> None:
    """Store all of a tile before an op; of a constant, and of what is in other memory, slice by slice."""
    b, number, load = Builder.before(before), constant_value(value), value.owner
    is_copy = isinstance(load, PrivateLoadOp) and stays_until(load, before)
    if number is None and not is_copy:
        b.insert(PrivateStoreOp(value, memory))
        return
    body = slice_body()
    inside, index = Builder.at_end(body, b.location), body.args[0]
    if is_copy:
        part = inside.value(PrivateLoadOp(view_of(b, load.src, memory.type, load.index), index))
    else:
        part = inside.constant(number, memory.type.slice)
    inside.insert(PrivateStoreOp(part, memory, index))
    inside.insert(scf.YieldOp())
    insert_loop(b, memory.type.count.data, body)


def store_nothing_twice(b: Builder, value: SSAValue, memory: SSAValue) -> None:
    """A tile that is in memory now is there for all that would load it from memory of their own."""
    for store in [use.operation for use in value.uses if isinstance(use.operation, PrivateStoreOp)]:
        copy = store.dst
        if store.index is None and _has_only(copy, store):
            erase(store)
            copy.replace_all_uses_with(view_of(b, memory, copy.type))
            erase(copy.owner)


def make_no_copies(func: FuncOp) -> None:
    """Of a tile that was loaded from memory the copy is that memory, unless something else is stored there meanwhile:
    then it is made slice by slice.
    """
    for store in nested_ops(func, PrivateStoreOp):
        load, copy = store.src.owner, store.dst
        if store.index is not None or not isinstance(load, PrivateLoadOp):
            continue
        if not _has_only(copy, store) or not is_allocated_in(copy, store.parent) or not _stays_for_all(load, copy):
            store_whole(store, store.src, copy)
        else:
            copy.replace_all_uses_with(view_of(Builder.before(store), load.src, copy.type, load.index))
            erase(copy.owner)
        erase(store)
        if load.result.first_use is None:
            erase(load)


def _stays_for_all(load: PrivateLoadOp, copy: SSAValue) -> bool:
    """Whether all that reads a copy finds the same in the memory that it was loaded from."""
    return all(stays_until(load, read) for read, _ in reads_of(copy))


def _has_only(memory: SSAValue, store: PrivateStoreOp) -> bool:
    """Whether nothing else is ever stored there."""
    return isinstance(memory.owner, PrivateAllocOp) and stores_of(memory) == [store]


def is_allocated_in(memory: SSAValue, block: Block) -> bool:
    """Whether it is allocated in this block, which is the only one that has it."""
    return isinstance(memory.owner, PrivateAllocOp) and memory.owner.parent is block


Part = PrivateLoadOp | PrivateViewOp


def reads_of(memory: SSAValue, part: Part | None = None) -> Iterator[tuple[PrivateLoadOp, Part | None]]:
    """What loads from memory, and the op that takes a slice of it, to load that or parts of it; None: none does."""
    for op in [use.operation for use in memory.uses if isinstance(use.operation, Part)]:
        taken = part or (op if op.index is not None else None)
        if isinstance(op, PrivateLoadOp):
            yield op, taken
        else:
            yield from reads_of(op.result, taken)


def is_after(load: PrivateLoadOp, stores: Sequence[PrivateStoreOp]) -> bool:
    """Whether nothing is stored after it, of what is stored in its block."""
    return all(load.parent.find_ancestor_op_in_block(store).is_before_in_block(load) for store in stores)


def stays_until(load: PrivateLoadOp, user: Operation) -> bool:
    """Whether an op finds in memory what was loaded from there before: what a loop carries is stored over it."""
    block = load.parent
    stores = ((store, block.find_ancestor_op_in_block(store)) for store in stores_of(load.src))
    later = (store for store, here in stores if here is not None and load.is_before_in_block(here))
    return not any(_may_run_before(store, user, block) for store in later)


def _may_run_before(first: Operation, second: Operation, block: Block) -> bool:
    """Of two ops in a block, or within its ops: in one turn of it."""
    one, other = (block.find_ancestor_op_in_block(op) for op in (first, second))
    if one is not other:
        return one.is_before_in_block(other)
    if one is second or not isinstance(one, scf.IfOp):
        return first is not second
    side = _side_of_both(one, first, second)
    return side is not None and _may_run_before(first, second, side)


def is_read_before(reader: Operation, part: Part | None, writer: PrivateStoreOp, block: Block) -> bool:
    """Whether in a turn of a block a slice is read before any is stored, or before that of the same number is, or only
    one of both is done.
    """
    first, last = (block.find_ancestor_op_in_block(op) for op in (reader, writer))
    if first is not last:
        return first.is_before_in_block(last)
    if isinstance(first, scf.IfOp):
        side = _side_of_both(first, reader, writer)
        return side is None or is_read_before(reader, part, writer, side)
    slices = first.body.block if isinstance(first, scf.ForOp) else None
    is_same = part is not None and part.index is writer.index and part.src.type == writer.dst.type
    is_of_turn = is_same and slices is part.parent is writer.parent and part.index is slices.args[0]
    return is_of_turn and slices.find_ancestor_op_in_block(reader).is_before_in_block(writer)


def _side_of_both(branch: scf.IfOp, *ops: Operation) -> Block | None:
    """Where both are in one side of a branch, that."""
    sides = [region.block for region in branch.regions if region.blocks]
    return next((side for side in sides if all(map(side.find_ancestor_op_in_block, ops))), None)


def accesses_of(memory: SSAValue) -> list[Operation]:
    """What loads from there, or stores."""
    return [*(load for load, _ in reads_of(memory)), *stores_of(memory)]


def stores_of(memory: SSAValue) -> list[PrivateStoreOp]:
    """Whatever view they go through."""
    while isinstance(memory.owner, PrivateViewOp):
        memory = memory.owner.src
    pending, found = [memory], []
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, PrivateViewOp):
                pending.append(use.operation.result)
            elif isinstance(use.operation, PrivateStoreOp):
                found.append(use.operation)
    return found

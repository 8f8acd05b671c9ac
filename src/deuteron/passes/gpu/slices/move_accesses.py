"""Tiles go to memory of each thread where they are made, and come from there where they are needed: the registers of
many would be full from one place to the other.

    %x = ttg.convert_layout %a                %x = ttg.convert_layout %a
    ...                                       ttg.private_store %x, %m
    ttg.private_store %x, %m           ->     ...
    %y = ttg.private_load %n                  scf.if %c {
    scf.if %c {                                 %y = ttg.private_load %n
      tt.store %q, %y                           tt.store %q, %y
    }                                         }

Tiles are moved as a whole, not slices, and no access moves into a loop or out of it. What is stored in a branch is
stored before it, as it would be if it were spilled.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Use

from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateStoreOp
from deuteron.passes.gpu.slices.whole_tiles import accesses_of, stays_until
from deuteron.passes.rewrite import erase


def store_early(func: FuncOp) -> None:
    """Store tiles that nothing else needs where they are made."""
    for store in nested_ops(func, PrivateStoreOp):
        made = store.src.owner
        if isinstance(made, Operation) and not isinstance(made, PrivateLoadOp) and _is_moved_alone(store, made.parent):
            _move_after(made, store)


def _is_moved_alone(store: PrivateStoreOp, block: Block) -> bool:
    """Whether nothing else needs what it stores, and it is the first of its memory's accesses."""
    is_only_use = store.index is None and len(list(store.src.uses)) == 1
    if not is_only_use or not isinstance(store.dst.owner, PrivateAllocOp) or not _is_in_branches(store, block):
        return False
    others = (store.parent.find_ancestor_op_in_block(op) for op in accesses_of(store.dst) if op is not store)
    return all(other is not None and store.is_before_in_block(other) for other in others)


def _move_after(made: Operation, store: PrivateStoreOp) -> None:
    block, alloc = made.parent, store.dst.owner
    here = block.find_ancestor_op_in_block(alloc)
    is_later = here is not None and made.is_before_in_block(here)
    moved = [alloc, store] if is_later else [store]
    for op in moved:
        op.detach()
    block.insert_ops_after(moved, made)


def load_late(func: FuncOp) -> None:
    """Load tiles where they are needed: in each block in which they are."""
    for load in nested_ops(func, PrivateLoadOp):
        uses = list(load.result.uses)
        users = [use.operation for use in uses]
        if load.index is None and all(_is_in_branches(user, load.parent) and stays_until(load, user) for user in users):
            for block, inside in _by_blocks(uses, load.parent).items():
                _load_in(block, inside, load)
            erase(load)


def _by_blocks(uses: Iterable[Use], block: Block) -> dict[Block, list[Use]]:
    """All of them are in the block if one is."""
    found: dict[Block, list[Use]] = {}
    for use in uses:
        found.setdefault(use.operation.parent, []).append(use)
    return {block: [use for inside in found.values() for use in inside]} if block in found else found


def _load_in(block: Block, uses: list[Use], load: PrivateLoadOp) -> None:
    first, *others = (block.find_ancestor_op_in_block(use.operation) for use in uses)
    for other in others:
        first = other if other.is_before_in_block(first) else first
    copy = load.clone()
    block.insert_ops_before([copy], first)
    for use in uses:
        use.operation.operands[use.index] = copy.result


def _is_in_branches(op: Operation, block: Block) -> bool:
    """Whether an op is in a block, or in branches in it, of which none is in a loop there."""
    while op.parent is not block and isinstance(op.parent_op(), scf.IfOp):
        op = op.parent_op()
    return op.parent is block

"""Tiles that a branch has in memory of each thread, and gives, stay there.

    %r = scf.if %c {                             ->      %m = ttg.private_alloc
      ...  stores of slices to %o                        scf.if %c {
      %y = ttg.private_load %o                             ...  stores of slices to %m
      scf.yield %y                                       } else {
    } else {                                               scf.for %slice = 0 to 8 {
      scf.yield 0.0                                          ttg.private_store 0.0, %m, %slice
    }                                                      }
                                                         }
                                                         %r = ttg.private_load %m

What the other branch gives is stored there. Tiles that registers hold in both branches stay there. Where one of both
changes what is in memory already, and nothing needs it as it was, the new tile is stored over it:

    %x = ttg.private_load %m                             scf.if %c {
    %r = scf.if %c {                                       %x = ttg.private_load %m
      %y = arith.addf %x, %z                               %y = arith.addf %x, %z
      scf.yield %y                               ->        ttg.private_store %y, %m
    } else {                                             }
      scf.yield %x                                       %r = ttg.private_load %m
    }
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.builder import Builder
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateType, view_of
from deuteron.ir.types import is_tile
from deuteron.passes.gpu.slices.costs import bits_in_thread
from deuteron.passes.gpu.slices.whole_tiles import (
    is_after,
    is_allocated_in,
    is_read_before,
    load_whole,
    reads_of,
    store_nothing_twice,
    store_whole,
    stores_of,
)
from deuteron.passes.rewrite import erase


def give_in_memory(branch: scf.IfOp, infos: AxisInfoAnalysis, most_held: float) -> bool:
    """Whether something is that is more than registers hold: the branch then gives it in vain."""
    tiles = [
        (place, result) for place, result in enumerate(branch.results) if is_tile(result.type) and result.first_use
    ]
    given = [_give(branch, place, infos) for place, tile in tiles if bits_in_thread(tile) > most_held]
    return any(given)


def _give(branch: scf.IfOp, place: int, infos: AxisInfoAnalysis) -> bool:
    """Whether what is given is in memory now."""
    if (kept := _kept(branch, place)) is not None:
        _change(branch, place, kept.src, infos)
        return True
    loads = [load for block in _blocks(branch) if (load := _own_load(block, place))]
    if loads:
        _keep(branch, place, loads[0].src.type, infos)
    return bool(loads)


def _blocks(branch: scf.IfOp) -> list[Block]:
    return [region.block for region in branch.regions]


def _own_load(block: Block, place: int) -> PrivateLoadOp | None:
    """What a branch gives, if it loads it from memory that it allocates."""
    load = block.last_op.operands[place].owner
    is_own = isinstance(load, PrivateLoadOp) and load.index is None and load.parent is block
    return load if is_own and is_allocated_in(load.src, block) and is_after(load, stores_of(load.src)) else None


def _keep(branch: scf.IfOp, place: int, type: PrivateType, infos: AxisInfoAnalysis) -> None:
    memory = Builder.before(branch).value(PrivateAllocOp(type))
    result = branch.results[place]
    for block in _blocks(branch):
        load = _own_load(block, place)
        if load is not None and load.src.type == type:
            _put_into(memory, load.src)
        else:
            store_whole(block.last_op, block.last_op.operands[place], memory)
    after = Builder.after(branch)
    store_nothing_twice(after, result, memory)
    if result.first_use is not None:
        result.replace_all_uses_with(load_whole(after, memory, result, infos))


def _kept(branch: scf.IfOp, place: int) -> PrivateLoadOp | None:
    """What a side gives as it was before the branch, if it is in memory that nothing needs as it was any more."""
    given = (block.last_op.operands[place].owner for block in _blocks(branch))
    return next((load for load in given if _is_last_load(load, branch)), None)


def _is_last_load(load: Operation | Block, branch: scf.IfOp) -> bool:
    """Whether it loads all of its memory, of which nothing is stored after it, or loaded after the branch."""
    is_whole = isinstance(load, PrivateLoadOp) and load.index is None
    block = branch.parent
    if not is_whole or load.parent is not block or not is_allocated_in(load.src, block):
        return False
    reads = (block.find_ancestor_op_in_block(read) for read, _ in reads_of(load.src))
    return is_after(load, stores_of(load.src)) and all(op is branch or op.is_before_in_block(branch) for op in reads)


def _change(branch: scf.IfOp, place: int, memory: SSAValue, infos: AxisInfoAnalysis) -> None:
    """The sides that give something else store it where it was."""
    for block in _blocks(branch):
        given = block.last_op.operands[place]
        if not (isinstance(given.owner, PrivateLoadOp) and given.owner.src is memory):
            _store_over(block, place, memory)
    result = branch.results[place]
    result.replace_all_uses_with(load_whole(Builder.after(branch), memory, result, infos))


def _store_over(block: Block, place: int, memory: SSAValue) -> None:
    """At once, where what a side has in memory of its own is stored after it has loaded what was there."""
    own = _own_load(block, place)
    reads = [(read, part) for read, part in reads_of(memory) if block.find_ancestor_op_in_block(read)]
    stores = stores_of(own.src) if own else ()
    if own and all(is_read_before(read, part, store, block) for read, part in reads for store in stores):
        _put_into(memory, own.src)
    else:
        store_whole(block.last_op, block.last_op.operands[place], memory)


def _put_into(memory: SSAValue, own: SSAValue) -> None:
    """What is in memory of its own is in this instead."""
    own.replace_all_uses_with(view_of(Builder.before(own.owner), memory, own.type))
    erase(own.owner)

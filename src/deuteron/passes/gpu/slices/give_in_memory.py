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

What the other branch gives is stored there. Tiles that registers hold in both branches stay there.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.builder import Builder
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateType
from deuteron.ir.types import is_tile
from deuteron.passes.gpu.slices.costs import bits_in_thread
from deuteron.passes.gpu.slices.whole_tiles import (
    is_after,
    is_allocated_in,
    load_whole,
    store_nothing_twice,
    store_whole,
    stores_of,
)
from deuteron.passes.rewrite import erase


def give_in_memory(branch: scf.IfOp, infos: AxisInfoAnalysis, most_held: float) -> bool:
    """Whether something is that is more than registers hold: the branch then gives it in vain."""
    is_given = False
    for place, result in enumerate(branch.results):
        if is_tile(result.type) and bits_in_thread(result) > most_held:
            loads = [load for block in _blocks(branch) if (load := _own_load(block, place))]
            if loads:
                _keep(branch, place, loads[0].src.type, infos)
                is_given = True
    return is_given


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
            own = load.src
            own.replace_all_uses_with(memory)
            erase(own.owner)
        else:
            store_whole(block.last_op, block.last_op.operands[place], memory)
    after = Builder.after(branch)
    store_nothing_twice(after, result, memory)
    if result.first_use is not None:
        result.replace_all_uses_with(load_whole(after, memory, result, infos))

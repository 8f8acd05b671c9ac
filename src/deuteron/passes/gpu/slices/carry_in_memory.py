"""Tiles that a loop carries, and that are more than registers hold (`most_held` bits), stay in memory of each thread.

    scf.for ... iter_args(%x = %a) {             ->      ttg.private_store %a, %m
      ttg.private_store %x, %n                           scf.for ... {
      ...  loads of slices of %n                           ...  loads of slices of %m
      ...  stores of slices to %o                          ...  stores of slices to %m
      %y = ttg.private_load %o                           }
      scf.yield %y                                       %r = ttg.private_load %m
    }

The loop over slices that stores what is carried on is the last that loads what was carried: only it loads a slice, of
the same number, before it stores that. Where a branch stores what is carried on, its other side may carry on what was
carried, and stores nothing. What else uses the tile loads all of it, where an iteration begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.rewriter import InsertPoint

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.builder import Builder
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateStoreOp, view_of
from deuteron.ir.types import is_tile
from deuteron.passes.gpu.slices.costs import bits_in_thread
from deuteron.passes.gpu.slices.whole_tiles import (
    is_after,
    is_allocated_in,
    is_read_before,
    load_whole,
    reads_of,
    store_whole,
    stores_of,
)
from deuteron.passes.rewrite import erase


def carry_in_memory(loop: scf.ForOp, infos: AxisInfoAnalysis, most_held: float) -> bool:
    """Whether something is: the loop then carries it in vain."""
    is_carried = False
    for place, tile in enumerate(loop.iter_args):
        # One after the other: what is carried on twice is in memory once.
        found = _find(loop, place) if is_tile(tile.type) and bits_in_thread(tile) > most_held else None
        if found is not None:
            _keep(loop, found, infos)
            is_carried = True
    return is_carried


@dataclass(frozen=True)
class _Tile:
    """Which of those that a loop carries, where it is stored to be loaded in slices, and what is carried on, unless
    that is `kept`: the tile as it was.
    """

    place: int
    stores: list[PrivateStoreOp]
    kept: list[PrivateStoreOp]
    following: PrivateLoadOp


def _find(loop: scf.ForOp, place: int) -> _Tile | None:
    block = loop.body.block
    following = block.last_op.operands[place].owner
    if not isinstance(following, PrivateLoadOp) or not is_allocated_in(following.src, block):
        return None
    stores = [use.operation for use in block.args[1 + place].uses if isinstance(use.operation, PrivateStoreOp)]
    kept = [store for store in stores if store.dst is following.src]
    stores = [store for store in stores if is_allocated_in(store.dst, store.parent)]
    writers = [store for store in stores_of(following.src) if store not in kept]
    reads = [(store, None) for store in kept] + [read for store in stores for read in reads_of(store.dst)]
    is_safe = bool(stores and writers) and is_after(following, writers + kept)
    if not is_safe or not all(is_read_before(read, part, writer, block) for read, part in reads for writer in writers):
        return None
    return _Tile(place, stores, kept, following)


def _keep(loop: scf.ForOp, tile: _Tile, infos: AxisInfoAnalysis) -> None:
    block, number = loop.body.block, tile.place
    before, made = Builder.before(loop), tile.following.src
    memory = before.value(PrivateAllocOp(made.type))
    store_whole(loop, loop.iter_args[number], memory)
    carried, result = block.args[1 + number], loop.results[number]
    for store in tile.kept:
        erase(store)
    for store in tile.stores:
        taken = store.dst
        erase(store)
        taken.replace_all_uses_with(view_of(before, memory, taken.type))
        erase(taken.owner)
    made.replace_all_uses_with(memory)
    erase(made.owner)
    after = Builder.after(loop)
    result.replace_all_uses_with(load_whole(after, memory, result, infos))
    # What an iteration begins with is carried on as something else, too, before the memory is another's.
    begin = Builder(InsertPoint.at_start(block), loop.location)
    carried.replace_all_uses_with(load_whole(begin, memory, carried, infos))
    block.last_op.operands[number] = carried

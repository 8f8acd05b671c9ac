"""Loads into registers iterations ahead what a loop cannot, or need not, copy into shared memory by itself.

    "scf.for"(%0, %n, %32, %p) ({                 %first = "tt.load"(%p), masked by 0 < n
    ^bb0(%k: i32, %q: pointers):                  "scf.for"(%0, %n, %32, %p + 32, %first) ({
      %x = "tt.load"(%q)                   ->     ^bb0(%k: i32, %q: pointers of the next iteration, %x: tile):
      %m = "ttg.local_alloc"(%x)                    %next = "tt.load"(%q), masked by k + 32 < n
      ... a dot reads %m                            %m = "ttg.local_alloc"(%x)
      "scf.yield"(%q + 32)                          ... a dot reads %m
    })                                              "scf.yield"(%q + 32, %next)
                                                  })

The load is under way while the iteration computes. Two iterations ahead the loop carries two tiles:

    ^bb0(%k: i32, %x: tile, %x1: tile):
      %next = "tt.load"(%q)                         of the iteration after the next
      ...
      "scf.yield"(%x1, %next)

It is part of `pipeline-loads`, which says which loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from deuteron.ir.arith import AHEAD
from deuteron.ir.builder import Builder
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.pipelining.run_ahead import Ahead, Iteration, lead_of
from deuteron.passes.gpu.rings.buffered_loads import masked
from deuteron.passes.rewrite import Values, replace


def prefetch(loop: scf.ForOp, distances: Mapping[LoadOp, int]) -> scf.ForOp:
    """The loop, built anew, with these loads so many iterations ahead; those that others need further ahead than
    these.
    """
    for distance in sorted(set(distances.values()), reverse=True):
        loop = _prefetch(loop, [load for load in distances if distances[load] == distance], distance)
    return loop


def _prefetch(loop: scf.ForOp, loads: Sequence[LoadOp], distance: int) -> scf.ForOp:
    """The loop carries what the next iterations will use."""
    before, ahead = Builder.before(loop), Ahead(loop, [value for load in loads for value in load.operands], distance)
    carried, first = ahead.entering(loop), []
    for number in range(distance):
        iteration = Iteration.of(before, loop, number)
        values = ahead.clone_before(before, loop, number, iteration.index, carried)
        first += masked_loads(before, loads, values, iteration.runs)
        carried = ahead.following(values)
        before.location = loop.location
    entering, carried = [*carried, *first], ahead.new_arguments(loop)
    tiles = [new_argument(loop, load.result.type, load.result.name_hint) for _ in range(distance) for load in loads]
    top = Builder.before(loop.body.block.first_op)
    iteration, runs = lead_of(loop, before, top, distance)
    values = ahead.clone_inside(top, iteration, carried)
    following = masked_loads(top, loads, values, runs)
    for value in following:
        value.owner.attributes[AHEAD] = UnitAttr()
    for load, tile in zip(loads, tiles, strict=False):
        replace(load, [tile])
    return carry(loop, entering, [*ahead.following(values), *tiles[len(loads) :], *following])


def masked_loads(b: Builder, loads: Sequence[LoadOp], values: Values, runs: SSAValue | None) -> list[SSAValue]:
    """What loads give in an iteration; where it does not run, nothing is loaded."""
    tiles = []
    for load in loads:
        b.location = load.location
        pointer, mask = masked(b, load, values, runs)
        other = values.of(load.other) if load.other is not None else None
        cache, evict = CacheModifier(load.cache.value.data), EvictionPolicy(load.evict.value.data)
        new = LoadOp(pointer, mask, other, cache, evict)
        new.attributes |= load.attributes
        new.result.name_hint = load.result.name_hint
        tiles.append(b.value(new))
    return tiles

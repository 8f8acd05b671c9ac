"""Loads of what a loop before has loaded as well, and none after will: a program reads its rows again.

    for start in range(0, n, 4096):
        total += tl.load(row + start + i)                   %x
    for start in range(0, n, 4096):
        tl.store(..., tl.load(row + start + i) / total)     %y        last_reads(block)    [%y]
                                                                      read_again(block)    [%x]

By arguments, not by addresses. What is at the same address in every program (weights) is none, and what says itself how
it is cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.aliasing.written_arguments import read_by
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, LoadOp
from deuteron.ir.tt.program import GetProgramIdOp
from deuteron.ir.types import is_tile


def last_reads(block: Block) -> dict[scf.ForOp, list[LoadOp]]:
    """Such loads of tiles in the loops of a block."""
    loops = {op: _tiles_loaded(op) for op in block.ops if isinstance(op, scf.ForOp)}
    loads, found = list(loops.values()), {}
    for place, loop in enumerate(loops):
        again = _arguments(chain(*loads[:place])) - _arguments(chain(*loads[place + 1 :]))
        found[loop] = [load for load in loads[place] if _is_free(load) and _arguments([load]) & again]
    return {loop: found[loop] for loop in loops if found[loop]}


def read_again(loop: scf.ForOp, loads: Sequence[LoadOp]) -> list[LoadOp]:
    """What loops of its block that come before a loop load through the same arguments as these loads of its own."""
    again, earlier = _arguments(loads), loop.parent.ops
    loops = [op for op in earlier if isinstance(op, scf.ForOp) and op.is_before_in_block(loop)]
    return [load for op in loops for load in _tiles_loaded(op) if _is_free(load) and _arguments([load]) & again]


def _tiles_loaded(loop: scf.ForOp) -> list[LoadOp]:
    return [load for load in nested_ops(loop, LoadOp) if is_tile(load.result.type)]


def _arguments(loads: Iterable[LoadOp]) -> frozenset[SSAValue]:
    return frozenset(argument for load in loads for argument in read_by(load).arguments)


def _is_free(load: LoadOp) -> bool:
    """Whether nothing is said of how it is cached, and other programs load from elsewhere."""
    says_nothing = load.cache.value.data == CacheModifier.NONE and load.evict.value.data == EvictionPolicy.NORMAL
    return says_nothing and not load.is_volatile.value.data and _depends_on_program(load.ptr)


def _depends_on_program(pointer: SSAValue) -> bool:
    return any(isinstance(value.owner, GetProgramIdOp) for value in reached([pointer], _made_from))


def _made_from(value: SSAValue) -> Sequence[SSAValue]:
    """The operands of an op, or what enters a loop."""
    if isinstance(value.owner, Operation):
        return value.owner.operands
    loop = value.owner.parent_op()
    return loop.iter_args if isinstance(loop, scf.ForOp) else ()

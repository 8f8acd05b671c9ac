"""Asks for four iterations at a time of loops that only add what they load to tiles, or combine it as cheaply.

    scf.for %k = ... iter_args(%sum = %0)           scf.for %k = ... iter_args(%sum = %0)
      %x = tt.load %p                                 ...
      %s = arith.addf %sum, %x              ->      } {tt.loop_unroll_factor = 4}
      scf.yield %s

A CPU has the sums in memory: one iteration reads and writes them for each element that it loads, four of them once for
four, in the same order of additions. `unroll-loops` does it. What computes functions, divides, multiplies matrices,
reduces or stores is left, where that is not what the time goes into, as are loops that say how they are to be unrolled.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from deuteron.ir.arith import Arith
from deuteron.ir.effects import is_removable
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.convert import FpToFpOp
from deuteron.ir.tt.memory import AddPtrOp, LoadOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp
from deuteron.ir.types import i32, is_pointer, is_tile
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.tile.unroll_loops import HINT

# Of sums in tiles of 32 KiB 1.8 times as fast, of 1 to 8 KiB 1.1 to 1.5; eight are hardly more, and more code.
FACTOR = 4
MOST_OPS = 48  # of an iteration: mean and variance of a tile with a mask of two limits have 30

_DEAR = ("div", "rem")  # in the names of ops
_CHEAP = (*Arith.operations, AddPtrOp, LoadOp, BroadcastOp, ExpandDimsOp, FpToFpOp, MakeRangeOp, SplatOp)


def _accumulates(loop: scf.ForOp) -> bool:
    """Whether a loop loads tiles, carries some, and does little else."""
    *ops, _ = loop.body.block.ops
    carried = [value for value in loop.iter_args if is_tile(value.type) and not is_pointer(value.type)]
    loads = any(isinstance(op, LoadOp) and is_tile(op.result.type) for op in ops)
    return bool(carried) and loads and len(ops) <= MOST_OPS and all(map(_is_cheap, ops))


def _is_cheap(op: Operation) -> bool:
    return isinstance(op, _CHEAP) and not any(word in op.name for word in _DEAR) and is_removable(op)


class UnrollAccumulations(Optimisation):
    """Gives loops that accumulate a hint to be unrolled."""

    name = "unroll-accumulations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_ops(op, scf.ForOp):
            if HINT not in loop.attributes and _accumulates(loop):
                loop.attributes[HINT] = IntegerAttr(FACTOR, i32)

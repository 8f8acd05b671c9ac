"""Loops over slices, which stay loops.

scf.for %slice = 0 to 16 step 1 {ttg.rolled} { ... }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.types import i32

ROLLED = "ttg.rolled"  # of a loop: it is not unrolled


def slice_body(*carried: Attribute) -> Block:
    """What a loop does for a slice: its number is the first argument."""
    body = Block(arg_types=[i32, *carried])
    body.args[0].name_hint = "slice"
    return body


def insert_loop(b: Builder, count: int, body: Block, inits: Sequence[SSAValue] = ()) -> scf.ForOp:
    bounds = [b.constant(bound, i32) for bound in (0, count, 1)]
    loop = b.insert(scf.ForOp(*bounds, list(inits), Region(body)))
    loop.attributes[ROLLED] = UnitAttr()
    return loop

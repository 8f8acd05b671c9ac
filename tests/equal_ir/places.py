"""Where IR is rewritten: blocks, loops and plain values of a module, and numbers that no pass knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.program import GetNumProgramsOp
from deuteron.ir.types import i32, is_tile

_NO_GRID = 60000  # programs along z


def pick(rng: np.random.Generator, found: Sequence) -> Any:
    """One of them; None where there is none."""
    return found[int(rng.integers(len(found)))] if found else None


def functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]


def blocks(module: ModuleOp) -> list[Block]:
    """Those of functions, loops and branches: no regions that combine elements."""
    inner = (op for func in functions(module) for op in nested_ops(func, scf.ForOp | scf.IfOp | scf.WhileOp))
    owners = [*functions(module), *inner]
    return [block for op in owners for region in op.regions for block in region.blocks]


def loops(module: ModuleOp) -> list[scf.ForOp]:
    return [loop for func in functions(module) for loop in nested_ops(func, scf.ForOp)]


def with_integer_bounds(module: ModuleOp) -> list[scf.ForOp]:
    return [loop for loop in loops(module) if not isinstance(loop.lb.type, IndexType)]


def is_plain(value: SSAValue) -> bool:
    """A number, a pointer or a tile of them: no buffer, no token, no descriptor, and so carried and chosen freely."""
    return (
        is_tile(value.type) or isinstance(value.type, IntegerType) or str(value.type).startswith(("!tt.ptr", "f", "bf"))
    )


def pure_ops(module: ModuleOp) -> list[Operation]:
    ops = [op for block in blocks(module) for op in block.ops]
    return [op for op in ops if op.results and not op.regions and is_pure(op) and all(map(is_plain, op.results))]


def true_value(b: Builder) -> SSAValue:
    """True in every launch of a test."""
    return b.value(CmpIOp(b.value(GetNumProgramsOp(2)), b.constant(_NO_GRID, i32), "ne"))


def one_value(b: Builder) -> SSAValue:
    """1 in every launch of a test."""
    return b.value(SelectOp(true_value(b), b.constant(1, i32), b.constant(2, i32)))

"""Rewrites of single ops and blocks that change no value. Each says whether it found a place."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp
from equal_ir.places import blocks, pick, pure_ops, true_value

COMMUTATIVE = ("arith.addi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.addf", "arith.mulf")
COMMUTATIVE += ("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")


def reorder(module: ModuleOp, rng: np.random.Generator) -> bool:
    block = pick(rng, [block for block in blocks(module) if len(list(block.ops)) > 3])
    if block is None:
        return False
    ops = list(block.ops)
    before: dict[Operation, set[Operation]] = {op: set() for op in ops}
    last = None
    for op in ops:
        used = (value.owner for inner in nested_ops(op) for value in inner.operands)
        owners = (owner if isinstance(owner, Operation) else owner.parent_op() for owner in used)
        before[op] |= {found for owner in owners if owner and (found := block.find_ancestor_op_in_block(owner))} - {op}
        if not is_pure(op) or op is ops[-1]:
            before[op] |= {last} if last is not None else set()
            last = op
    order: list[Operation] = []
    waiting = list(ops[:-1])
    while waiting:
        done = set(order)
        op = pick(rng, [op for op in waiting if before[op] <= done])
        waiting.remove(op)
        order.append(op)
    for op in order:
        op.detach()
        block.insert_op_before(op, ops[-1])
    return order != ops[:-1]


def duplicate(module: ModuleOp, rng: np.random.Generator) -> bool:
    op = pick(rng, [op for op in pure_ops(module) if len(list(op.results[0].uses)) > 1])
    if op is None:
        return False
    twin = op.clone()
    op.parent.insert_op_after(twin, op)
    for use in [use for use in op.results[0].uses if rng.random() < 0.5]:
        use.operation.operands[use.index] = twin.results[0]
    return True


def swap_operands(module: ModuleOp, rng: np.random.Generator) -> bool:
    found = [op for op in pure_ops(module) if op.name in COMMUTATIVE]
    for op in found:
        if rng.random() < 0.5:
            op.operands = [op.operands[1], op.operands[0]]
    return bool(found)


def wrap_in_branch(module: ModuleOp, rng: np.random.Generator) -> bool:
    """Pure ops and loads."""
    loads = [
        op for block in blocks(module) for op in block.ops if isinstance(op, LoadOp) and not op.is_volatile.value.data
    ]
    op = pick(rng, [*pure_ops(module), *loads] if rng.random() < 0.5 else loads or pure_ops(module))
    if op is None or len(op.results) != 1:
        return False
    b = Builder.before(op)
    condition, taken, other = true_value(b), Block(), Block()
    branch = b.insert(scf.IfOp(condition, [op.results[0].type], Region(taken), Region(other)))
    op.results[0].replace_all_uses_with(branch.results[0])
    for block in (taken, other):
        inside = Builder.at_end(block, op.location)
        inside.insert(scf.YieldOp(inside.value(op.clone())))
    op.detach()
    op.erase()
    return True

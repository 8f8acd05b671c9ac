"""Rewrites of single ops and blocks that change no value. Each says whether it found a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.ir.arith import SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp
from equal_ir.places import blocks, pick, pure_ops, true_value

COMMUTATIVE = ("arith.addi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.addf", "arith.mulf")
COMMUTATIVE += ("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")


def reorder(module: ModuleOp, rng: np.random.Generator) -> bool:
    """The ops of a block in any order in which each comes after what it uses, and what has effects after the like."""
    block = pick(rng, [block for block in blocks(module) if len(list(block.ops)) > 3])
    if block is None:
        return False
    ops = list(block.ops)
    order = _drawn_order(ops[:-1], _needed_before(block), rng)
    for op in order:
        op.detach()
        block.insert_op_before(op, ops[-1])
    return order != ops[:-1]


def _needed_before(block: Block) -> dict[Operation, set[Operation]]:
    """The ops of a block that have to come before each of them."""
    needed, last = {}, None
    for op in block.ops:
        needed[op] = {found for value in _operands_inside(op) if (found := _giver_in(block, value))} - {op}
        if not is_pure(op):
            needed[op] |= {last} if last is not None else set()
            last = op
    return needed


def _operands_inside(op: Operation) -> list[SSAValue]:
    """What an op uses, and the ops in it."""
    return [value for inner in nested_ops(op) for value in inner.operands]


def _giver_in(block: Block, value: SSAValue) -> Operation | None:
    """The op of a block that gives a value, or has it in a region."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return block.find_ancestor_op_in_block(owner) if owner is not None else None


def _drawn_order(
    ops: Sequence[Operation], needed: Mapping[Operation, set[Operation]], rng: np.random.Generator
) -> list[Operation]:
    order, waiting, done = [], list(ops), set()
    while waiting:
        op = pick(rng, [op for op in waiting if needed[op] <= done])
        waiting.remove(op)
        order.append(op)
        done.add(op)
    return order


def duplicate(module: ModuleOp, rng: np.random.Generator) -> bool:
    """A pure op that several use, done twice: some of them use the second."""
    op = pick(rng, [op for op in pure_ops(module) if len(list(op.results[0].uses)) > 1])
    if op is None:
        return False
    twin = op.clone()
    op.parent.insert_op_after(twin, op)
    for use in [use for use in op.results[0].uses if rng.random() < 0.5]:
        use.operation.operands[use.index] = twin.results[0]
    return True


def swap_operands(module: ModuleOp, rng: np.random.Generator) -> bool:
    """The operands of half of all ops that commute."""
    found = [op for op in pure_ops(module) if op.name in COMMUTATIVE]
    for op in found:
        if rng.random() < 0.5:
            op.operands = [op.operands[1], op.operands[0]]
    return bool(found)


def choose_same(module: ModuleOp, rng: np.random.Generator) -> bool:
    """What a pure op gives, chosen from that and another value of its block by a condition that always holds."""
    op = pick(rng, pure_ops(module))
    others = [] if op is None else _before_in_block(op, op.results[0].type)
    if not others:
        return False
    b = Builder(InsertPoint.after(op), op.location)
    chosen = b.insert(SelectOp(true_value(b), op.results[0], pick(rng, others)))
    op.results[0].replace_uses_with_if(chosen.result, lambda use: use.operation is not chosen)
    return True


def _before_in_block(op: Operation, type: Attribute) -> list[SSAValue]:
    """The values of that type that the block has before an op."""
    block = op.parent
    earlier = [value for other in block.ops if other.is_before_in_block(op) for value in other.results]
    return [value for value in (*block.args, *earlier) if value.type == type]


def wrap_in_branch(module: ModuleOp, rng: np.random.Generator) -> bool:
    """A pure op or a load, in both branches of a condition that always holds."""
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

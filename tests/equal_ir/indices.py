"""Rewrites of the index of loops, and of what is computed of it, that change no value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.ir.around import is_defined_in
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp, TruncIOp
from deuteron.ir.effects import is_speculatable
from deuteron.ir.types import i32, i64
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.rewrite import Values
from equal_ir.places import is_plain, loops, pick, with_integer_bounds


def carry_index(module: ModuleOp, rng: np.random.Generator) -> bool:
    """The index, counted by a carried value."""
    loop = pick(rng, [loop for loop in loops(module) if list(loop.body.block.args[0].uses)])
    if loop is None:
        return False
    index = loop.body.block.args[0]
    argument = new_argument(loop, index.type, "index")
    for use in [use for use in index.uses if rng.random() < 0.7]:
        use.operation.operands[use.index] = argument
    end = Builder.before(loop.body.block.last_op)
    carry(loop, [loop.lb], [end.value(arith.AddiOp(argument, loop.step))])
    return True


def carry_computed(module: ModuleOp, rng: np.random.Generator) -> bool:
    """What is computed of the index alone, carried instead, and computed for the next iteration where this one ends."""
    loop = pick(rng, loops(module))
    if loop is None:
        return False
    block = loop.body.block
    of_index: dict[SSAValue, list[Operation]] = {block.args[0]: []}
    for op in block.ops:
        inner = [value for value in op.operands if is_defined_in(value, loop)]
        if inner and all(value in of_index for value in inner) and not op.regions and is_speculatable(op):
            ops = dict.fromkeys(one for value in inner for one in of_index[value])
            of_index |= {value: [*ops, op] for value in op.results}
    value = pick(rng, [value for value in of_index if value is not block.args[0] and is_plain(value)])
    if value is None:
        return False
    ops = [op for op in block.ops if op in of_index[value]]
    before, end = Builder.before(loop), Builder.before(block.last_op)
    entering = _cloned(before, ops, Values({block.args[0]: loop.lb}), value)
    later = end.value(arith.AddiOp(block.args[0], loop.step))
    argument = new_argument(loop, value.type, value.name_hint)
    value.replace_all_uses_with(argument)
    following = _cloned(end, ops, Values({block.args[0]: later, argument: argument}), value)
    carry(loop, [entering], [following])
    return True


def _cloned(b: Builder, ops: Sequence[Operation], values: Values, wanted: SSAValue) -> SSAValue:
    for op in ops:
        b.insert(op.clone(values))
    return values[wanted]


def count_from_zero(module: ModuleOp, rng: np.random.Generator) -> bool:
    """A loop that counts its iterations, from which the index is computed. One that has none may end far before it
    begins, at the least number (group_iterations.py).
    """
    loop = pick(rng, with_integer_bounds(module))
    if loop is None:
        return False
    b, type = Builder.before(loop), loop.lb.type
    begin, step = loop.lb, loop.step
    length = b.value(arith.SubiOp(b.value(arith.MaxSIOp(begin, loop.ub)), begin))
    count = b.value(arith.CeilDivSIOp(length, step))
    inside = Builder.before(loop.body.block.first_op)
    lead = inside.value(arith.MuliOp(loop.body.block.args[0], step))
    _use_instead(loop, inside.value(arith.AddiOp(lead, begin)), lead.owner)
    loop.operands = [b.constant(0, type), count, b.constant(1, type), *loop.iter_args]
    return True


def widen_index(module: ModuleOp, rng: np.random.Generator) -> bool:
    """A loop that counts by 64 bits."""
    loop = pick(rng, [loop for loop in loops(module) if loop.lb.type == i32])
    if loop is None:
        return False
    b, block = Builder.before(loop), loop.body.block
    wide = block.insert_arg(i64, 0)
    narrow = Builder.before(block.first_op).value(TruncIOp(wide, i32))
    block.args[1].replace_all_uses_with(narrow)
    block.erase_arg(block.args[1])
    loop.operands = [*(b.value(ExtSIOp(bound, i64)) for bound in loop.operands[:3]), *loop.iter_args]
    return True


def _use_instead(loop: scf.ForOp, index: SSAValue, made_by: Operation) -> None:
    """Another value in the place of a loop's index, but where that is computed."""
    loop.body.block.args[0].replace_uses_with_if(index, lambda use: use.operation is not made_by)

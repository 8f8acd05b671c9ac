"""Rewrites of loops and of what they carry that change no value. Each says whether it found a place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.around import is_defined_in
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.types import i32
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.rewrite import Values, replace
from equal_ir.places import is_plain, loops, one_value, pick, with_integer_bounds


def rotate_carried(module: ModuleOp, rng: np.random.Generator) -> bool:
    """What a loop carries, in another order."""
    loop = pick(rng, [loop for loop in loops(module) if len(loop.iter_args) > 1])
    if loop is None:
        return False
    order = [int(place) for place in rng.permutation(len(loop.iter_args))]
    block = loop.body.block
    block.last_op.operands = [block.last_op.operands[place] for place in order]
    old = list(block.args[1:])
    for place in order:
        new = new_argument(loop, old[place].type, old[place].name_hint)
        old[place].replace_all_uses_with(new)
    for argument in old:
        block.erase_arg(argument)
    region = loop.detach_region(loop.body)
    new_loop = scf.ForOp(loop.lb, loop.ub, loop.step, [loop.iter_args[place] for place in order], region)
    results = [new_loop.results[order.index(place)] for place in range(len(order))]
    _put_in_place(loop, new_loop, results)
    return True


def _put_in_place(loop: scf.ForOp, new: scf.ForOp, results: Sequence[SSAValue]) -> None:
    new.attributes |= loop.attributes
    new.location = loop.location
    loop.parent.insert_op_before(new, loop)
    replace(loop, results)


def carry_unused(module: ModuleOp, rng: np.random.Generator) -> bool:
    """One more value that nobody uses: the loop gives it what it began with, or what the body computes."""
    loop = pick(rng, loops(module))
    if loop is None:
        return False
    inside = [value for op in loop.body.block.ops for value in op.results if is_plain(value)]
    following = pick(rng, inside)
    outside = [value for value in _values_before(loop) if following is None or value.type == following.type]
    entering = pick(rng, outside)
    if entering is None:
        return False
    argument = new_argument(loop, entering.type, "unused")
    carry(loop, [entering], [argument if following is None else following])
    return True


def _values_before(op: Operation) -> list[SSAValue]:
    """Plain values of the blocks around an op that are there before it."""
    found: list[SSAValue] = []
    while op is not None and op.parent is not None:
        found += [value for value in op.parent.args if is_plain(value)]
        for other in op.parent.ops:
            if other is op:
                break
            found += [value for value in other.results if is_plain(value)]
        op = op.parent_op()
    return found


def carry_twice(module: ModuleOp, rng: np.random.Generator) -> bool:
    """A carried value a second time, used in the place of the first here and there."""
    loop = pick(rng, [loop for loop in loops(module) if any(map(is_plain, loop.iter_args))])
    if loop is None:
        return False
    place = pick(rng, [place for place, value in enumerate(loop.iter_args) if is_plain(value)])
    old = loop.body.block.args[1 + place]
    new = new_argument(loop, old.type, "again")
    for use in [use for use in old.uses if rng.random() < 0.5]:
        use.operation.operands[use.index] = new
    loop = carry(loop, [loop.iter_args[place]], [loop.body.block.last_op.operands[place]])
    for use in [use for use in loop.results[place].uses if rng.random() < 0.5]:
        use.operation.operands[use.index] = loop.results[-1]
    return True


def carry_invariant(module: ModuleOp, rng: np.random.Generator) -> bool:
    """What does not change in a loop, carried by it."""
    loop = pick(rng, loops(module))
    if loop is None:
        return False
    inner = (value for op in loop.body.block.ops for one in nested_ops(op) for value in one.operands)
    value = pick(rng, list(dict.fromkeys(one for one in inner if is_plain(one) and not is_defined_in(one, loop))))
    if value is None:
        return False
    argument = new_argument(loop, value.type, "carried")
    for use in list(value.uses):
        if use.operation is not loop and loop.is_ancestor(use.operation):
            use.operation.operands[use.index] = argument
    carry(loop, [value], [argument])
    return True


def split_loop(module: ModuleOp, rng: np.random.Generator) -> bool:
    """A loop in two, the second of which goes on where the first ends: the first has up to three iterations."""
    loop = pick(rng, [loop for loop in with_integer_bounds(module) if _is_copied(loop)])
    if loop is None:
        return False
    b = Builder.before(loop)
    lead = b.value(arith.MuliOp(loop.step, b.constant(int(rng.integers(0, 4)), loop.step.type)))
    middle = b.value(arith.AddiOp(loop.lb, lead))
    middle = b.value(SelectOp(b.value(CmpIOp(middle, loop.ub, "slt")), middle, loop.ub))
    first = loop.clone()
    loop.parent.insert_op_before(first, loop)
    first.operands[1] = middle
    loop.operands = [middle, loop.ub, loop.step, *first.results]
    return True


def _is_copied(loop: scf.ForOp) -> bool:
    """Whether its carried values may come from another loop: no buffers, which allocations have to be known of."""
    return all(map(is_plain, loop.iter_args)) and not _touches_buffers(loop)


def _touches_buffers(loop: scf.ForOp) -> bool:
    inner = [value for op in nested_ops(loop) for value in (*op.operands, *op.results)]
    return any(isinstance(value.type, MemDescType) and not is_defined_in(value, loop) for value in inner)


def peel_first(module: ModuleOp, rng: np.random.Generator) -> bool:
    """The first iteration, if there is one, before the loop."""
    loop = pick(rng, [loop for loop in with_integer_bounds(module) if _is_copied(loop)])
    if loop is None:
        return False
    b, types = Builder.before(loop), [value.type for value in loop.iter_args]
    taken, other = Block(), Block()
    runs = b.value(CmpIOp(loop.lb, loop.ub, "slt"))
    begin = b.value(SelectOp(runs, b.value(arith.AddiOp(loop.lb, loop.step)), loop.ub))
    values = Values(dict(zip(loop.body.block.args, [loop.lb, *loop.iter_args], strict=True)))
    inside = Builder.at_end(taken, loop.location)
    for op in loop.body.block.ops:
        inside.insert(op.clone(values))
    Builder.at_end(other, loop.location).insert(scf.YieldOp(*loop.iter_args))
    branch = b.insert(scf.IfOp(runs, types, Region(taken), Region(other)))
    loop.operands = [begin, loop.ub, loop.step, *branch.results]
    return True


def nest_loop(module: ModuleOp, rng: np.random.Generator) -> bool:
    """The loop in another one, which runs once."""
    loop = pick(rng, [loop for loop in with_integer_bounds(module) if _is_copied(loop)])
    if loop is None:
        return False
    b = Builder.before(loop)
    zero, one = b.constant(0, i32), b.constant(1, i32)
    body = Block(arg_types=[i32, *(value.type for value in loop.iter_args)])
    outer = scf.ForOp(zero, one_value(b), one, list(loop.iter_args), body)
    for result, new in zip(loop.results, outer.results, strict=True):
        result.replace_all_uses_with(new)
    loop.parent.insert_op_before(outer, loop)
    outer.location = loop.location
    loop.detach()
    body.add_op(loop)
    loop.operands = [loop.lb, loop.ub, loop.step, *body.args[1:]]
    Builder(InsertPoint.at_end(body), loop.location).insert(scf.YieldOp(*loop.results))
    return True

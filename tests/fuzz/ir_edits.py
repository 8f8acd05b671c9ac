"""Random edits of tile IR, so that passes get what the frontend makes of no program.

    module = edited(module, (3, 8))     what these edits make of a module

An edit knows the types of values and the structure: it takes other operands of a type, other ops of a kind, other
constants; exchanges what loops carry; moves ops into loops and branches, leaves them out, and writes new ones. What is
refused as tile IR is tried again elsewhere. Hints are left out, since edits make them lies.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from deuteron.errors import IRError
from deuteron.ir.arith import CmpFOp, CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_speculatable
from deuteron.ir.hints import HINTS
from deuteron.ir.nested import nested_ops
from deuteron.ir.types import element_type_of, i1, i32, is_float, is_integer, shape_of, with_element_type
from deuteron.ir.verifier import check_input
from deuteron.passes.rewrite import erase

TRIES = 12

OF_INTEGERS = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp, arith.ShRUIOp),
    *(arith.ShRSIOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp, arith.DivSIOp, arith.DivUIOp),
    *(arith.RemSIOp, arith.RemUIOp),
)
OF_FLOATS = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp),
)
OF_A_FLOAT = (arith.NegfOp, math.AbsFOp, math.FloorOp, math.CeilOp)


class Unfit(Exception):
    """There is nothing in the module that an edit could change."""


def edited(module: ModuleOp, edits: Sequence[int]) -> ModuleOp:
    """A copy; an edit that fits nowhere changes nothing."""
    module = without_hints(module)
    for number in edits:
        module = edited_once(module, random.Random(number))
    return module


def without_hints(module: ModuleOp) -> ModuleOp:
    module = module.clone()
    for op in nested_ops(module):
        for name in HINTS:
            op.attributes.pop(name, None)
    return module


def edited_once(module: ModuleOp, rng: random.Random) -> ModuleOp:
    for _ in range(TRIES):
        candidate = module.clone()
        try:
            rng.choice(EDITS)(candidate, rng)
            check_input(candidate, "edited.ttir")
        except (Unfit, IRError, VerifyException):
            continue
        return candidate
    return module


# -- what there is


def _any_op(module: ModuleOp, rng: random.Random, fits: Callable[[Operation], bool]) -> Operation:
    found = [op for op in nested_ops(module) if _is_in_kernel(op) and fits(op)]
    if not found:
        raise Unfit
    return rng.choice(found)


def _is_in_kernel(op: Operation) -> bool:
    """And not in a function that combines elements, of which more is demanded than types."""
    around = op.parent_op()
    return around is not None and around.name in ("tt.func", "scf.for", "scf.if", "scf.while")


def _scope(op: Operation) -> Iterator[SSAValue]:
    """The values that an op may take."""
    while op.parent is not None and op.name != "tt.func":
        yield from op.parent.args
        before = op.prev_op
        while before is not None:
            yield from before.results
            before = before.prev_op
        op = op.parent_op()


def _others(op: Operation, type: Attribute, without: SSAValue | None = None) -> list[SSAValue]:
    return [value for value in _scope(op) if value.type == type and value is not without]


def _any_of(rng: random.Random, values: Sequence[SSAValue]) -> SSAValue:
    """Rather one that is near."""
    if not values:
        raise Unfit
    return values[min(int(rng.expovariate(0.2)), len(values) - 1)]


def _is_pure(op: Operation) -> bool:
    return is_speculatable(op) and len(op.results) == 1 and not op.regions


# -- edits


def _other_operand(module: ModuleOp, rng: random.Random) -> None:
    op = _any_op(module, rng, lambda op: bool(op.operands))
    place = rng.randrange(len(op.operands))
    op.operands[place] = _any_of(rng, _others(op, op.operands[place].type, op.operands[place]))


def _exchanged_operands(module: ModuleOp, rng: random.Random) -> None:
    """Of a yield often, or what a loop begins with."""
    of_loops = rng.random() < 0.6

    def fits(op: Operation) -> bool:
        types = [operand.type for operand in op.operands]
        return len(set(types)) < len(types) and (not of_loops or op.name in ("scf.yield", "scf.for"))

    op = _any_op(module, rng, fits)
    first = rng.randrange(len(op.operands))
    alike = [i for i, operand in enumerate(op.operands) if operand.type == op.operands[first].type and i != first]
    if not alike:
        raise Unfit
    second = rng.choice(alike)
    op.operands[first], op.operands[second] = op.operands[second], op.operands[first]


def _other_kind(module: ModuleOp, rng: random.Random) -> None:
    kinds = {kind: group for group in (OF_INTEGERS, OF_FLOATS, OF_A_FLOAT) for kind in group}
    op = _any_op(module, rng, lambda op: type(op) in kinds)
    _become(op, rng.choice(kinds[type(op)])(*op.operands))


def _other_attribute(module: ModuleOp, rng: random.Random) -> None:
    """Predicates, axes, orders, bounds of ranges: small numbers."""
    op = _any_op(module, rng, lambda op: any(isinstance(one, IntegerAttr) for one in op.properties.values()))
    names = [name for name, one in op.properties.items() if isinstance(one, IntegerAttr)]
    name = rng.choice(names)
    old = op.properties[name]
    op.properties[name] = IntegerAttr(rng.choice((0, 1, 2, 3, 4, 5, old.value.data + 1, -old.value.data)), old.type)


def _other_constant(module: ModuleOp, rng: random.Random) -> None:
    op = _any_op(module, rng, lambda op: isinstance(op, arith.ConstantOp) and is_integer(op.result.type))
    old, b = constant_value(op.result), Builder.before(op)
    numbers = (0, 1, 2, 3, 5, 31, -1, old + 1, old - 1, 2 * old, old // 2, -old)
    value = b.constant(_wrapped(rng.choice(numbers), op.result.type), op.result.type)
    op.result.replace_all_uses_with(value)


def _wrapped(number: int, type: Attribute) -> int | bool:
    width = element_type_of(type).width.data
    if width == 1:
        return bool(number & 1)
    return (number + (1 << width - 1)) % (1 << width) - (1 << width - 1)


def _without_op(module: ModuleOp, rng: random.Random) -> None:
    """What it gives is one of its operands, or another value."""
    op = _any_op(module, rng, lambda op: len(op.results) == 1 and not op.regions)
    alike = [operand for operand in op.operands if operand.type == op.results[0].type]
    value = rng.choice(alike) if alike and rng.random() < 0.7 else _any_of(rng, _others(op, op.results[0].type))
    op.results[0].replace_all_uses_with(value)
    erase(op)


def _further_op(module: ModuleOp, rng: random.Random) -> None:
    """One more on the way to some users of a value."""
    op = _any_op(module, rng, lambda op: len(op.results) == 1 and op.name != "arith.constant")
    value, b = op.results[0], Builder.after(op)
    uses = list(value.uses)
    new = b.value(_made(b, op, value, rng))
    for use in uses if rng.random() < 0.5 else rng.sample(uses, min(1, len(uses))):
        if new.owner is not use.operation:
            use.operation.operands[use.index] = new


def _made(b: Builder, op: Operation, value: SSAValue, rng: random.Random) -> Operation:
    """Of a value, and others of its type."""
    type, other = value.type, _any_of(rng, [value, *_others(op, value.type)])
    choices = [*_others(op, i1), *_others(op, with_element_type(type, i1))]
    if choices and rng.random() < 0.3:
        return SelectOp(rng.choice(choices), *rng.sample((value, other), 2))
    if is_float(type):
        kind = rng.choice((*OF_FLOATS, *OF_A_FLOAT))
        return kind(value) if kind in OF_A_FLOAT else kind(*rng.sample((value, other), 2))
    if is_integer(type):
        return rng.choice(OF_INTEGERS)(*rng.sample((value, other), 2))
    raise Unfit


def _compared(module: ModuleOp, rng: random.Random) -> None:
    """A mask, or a condition, that is a comparison."""
    op = _any_op(module, rng, lambda op: any(element_type_of(operand.type) == i1 for operand in op.operands))
    place = rng.choice([i for i, operand in enumerate(op.operands) if element_type_of(operand.type) == i1])
    shape = shape_of(op.operands[place].type)
    numbers = [v for v in _scope(op) if shape_of(v.type) == shape and (is_integer(v.type) or is_float(v.type))]
    first = _any_of(rng, numbers)
    second = _any_of(rng, _others(op, first.type))
    predicates = ("slt", "sle", "sgt", "sge", "eq", "ne", "ult", "uge") if is_integer(first.type) else ("olt", "une")
    kind = CmpIOp if is_integer(first.type) else CmpFOp
    op.operands[place] = Builder.before(op).value(kind(first, second, rng.choice(predicates)))


def _in_a_branch(module: ModuleOp, rng: random.Random) -> None:
    op = _any_op(module, rng, lambda op: len(op.results) == 1 and op.name not in ("arith.constant", "scf.if"))
    condition = _any_of(rng, _others(op, i1))
    type = op.results[0].type
    other = _any_of(rng, _others(op, type))
    b = Builder.before(op)
    branch = scf.IfOp(condition, [type], Region(Block()), Region(Block()))
    b.insert(branch)
    op.results[0].replace_all_uses_with(branch.results[0])
    op.detach()
    branch.true_region.block.add_op(op)
    Builder.after(op).insert(scf.YieldOp(op.results[0]))
    Builder.at_end(branch.false_region.block, op.location).insert(scf.YieldOp(other))


def _in_a_loop(module: ModuleOp, rng: random.Random) -> None:
    """An op that is done some times, each time of what it gave before."""
    op = _any_op(module, rng, lambda op: _is_pure(op) and any(o.type == op.results[0].type for o in op.operands))
    places = [i for i, operand in enumerate(op.operands) if operand.type == op.results[0].type]
    place, b = rng.choice(places), Builder.before(op)
    numbers = _others(op, i32)
    first, end = (
        _any_of(rng, numbers) if numbers and rng.random() < 0.3 else b.constant(rng.randint(*limits), i32)
        for limits in ((-1, 1), (0, 4))
    )
    step = b.constant(rng.choice((1, 1, 1, 2, 3)), i32)
    block = Block(arg_types=[i32, op.results[0].type])
    for argument in block.args:
        argument.location = op.location
    loop = scf.ForOp(first, end, step, [op.operands[place]], block)
    b.insert(loop)
    op.results[0].replace_all_uses_with(loop.results[0])
    op.detach()
    op.operands[place] = block.args[1]
    block.add_op(op)
    Builder.after(op).insert(scf.YieldOp(op.results[0]))


def _into_loop(module: ModuleOp, rng: random.Random) -> None:
    """An op that is used in a loop, or a branch, is done there."""

    def region_of_uses(op: Operation) -> Block | None:
        blocks = {op.parent.find_ancestor_op_in_block(use.operation) for use in op.results[0].uses}
        inside = next(iter(blocks)) if len(blocks) == 1 else None
        if inside is None or inside.name not in ("scf.for", "scf.while", "scf.if"):
            return None
        users = [use.operation for use in op.results[0].uses]
        if inside in users:
            return None
        return next(
            (
                region.block
                for region in inside.regions
                if region.blocks and all(region.block.find_ancestor_op_in_block(user) for user in users)
            ),
            None,
        )

    op = _any_op(module, rng, lambda op: _is_pure(op) and bool(op.results[0].uses) and region_of_uses(op) is not None)
    block = region_of_uses(op)
    op.detach()
    block.insert_ops_before([op], block.first_op)


def _out_of_loop(module: ModuleOp, rng: random.Random) -> None:
    def fits(op: Operation) -> bool:
        around = op.parent_op()
        if around.name not in ("scf.for", "scf.if", "scf.while") or not _is_pure(op):
            return False
        return not any(op.parent is v.owner or getattr(v.owner, "parent", None) is op.parent for v in op.operands)

    op = _any_op(module, rng, fits)
    around = op.parent_op()
    op.detach()
    around.parent.insert_ops_before([op], around)


def _twice(module: ModuleOp, rng: random.Random) -> None:
    """A copy of an op for some of its users, maybe right before them."""
    op = _any_op(module, rng, lambda op: _is_pure(op) and len(list(op.results[0].uses)) > 0)
    use = rng.choice(list(op.results[0].uses))
    clone = op.clone()
    around = use.operation if rng.random() < 0.5 and use.operation.name != "scf.condition" else None
    (Builder.before(around) if around is not None else Builder.after(op)).insert(clone)
    use.operation.operands[use.index] = clone.results[0]


def _carried_too(module: ModuleOp, rng: random.Random) -> None:
    """A value of a loop's body that is read in the iteration after it, in the place of another."""
    loop = _any_op(module, rng, lambda op: isinstance(op, scf.ForOp) and len(op.operands) > 3)
    place = rng.randrange(len(loop.body.block.args) - 1)
    argument = loop.body.block.args[1 + place]
    loop.body.block.last_op.operands[place] = _any_of(rng, _others(loop.body.block.last_op, argument.type))


def _exchanged_ops(module: ModuleOp, rng: random.Random) -> None:
    """Two neighbours, the later of which needs nothing of the other."""

    def fits(op: Operation) -> bool:
        following = op.next_op
        return (
            following is not None
            and following.next_op is not None
            and not any(use.operation is following for result in op.results for use in result.uses)
            and not following.regions
        )

    op = _any_op(module, rng, fits)
    following = op.next_op
    following.detach()
    op.parent.insert_ops_before([following], op)


def _become(op: Operation, new: Operation) -> None:
    value = Builder.before(op).value(new)
    op.results[0].replace_all_uses_with(value)
    erase(op)


EDITS: tuple[Callable[[ModuleOp, random.Random], None], ...] = (
    *(_other_operand,) * 4,
    *(_exchanged_operands,) * 2,
    _other_kind,
    _other_attribute,
    _other_constant,
    *(_without_op,) * 2,
    *(_further_op,) * 3,
    _compared,
    _in_a_branch,
    *(_in_a_loop,) * 2,
    _into_loop,
    _out_of_loop,
    *(_twice,) * 2,
    *(_carried_too,) * 2,
    _exchanged_ops,
)

"""Has products read A where the kernel's arguments have it, and not from a copy.

    for k in range(0, K, 64):
        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])      the product reads a_ptr[...], K elements a row
        acc = tl.dot(a, b, acc)

Tiles of AMX take rows that are any distance apart, and what is computed on vectors takes A element by element. What is
loaded has to be rows of neighbours, all equally far apart, without a mask, as they are multiplied, from an argument
that the kernel does not write, and multiplied by few columns; of a product of several steps of a loop, the rows of one
step have to go on in the next one.

        a = tl.load(a_ptr + (rows % M)[:, None] * K + (k + ks)[None, :], mask=(k + ks)[None, :] < K)

Of such a product the rows are looked at before the loop, and up to which iteration the mask is full: up to there it
reads A directly, else copies, which the loop makes only then (`rules/direct.py`). The mask may depend on what the loop
counts, or advances: that is counted before the loop, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue
from xdsl.ir.core import BlockArgument

from deuteron.analysis.aliasing.written_arguments import is_apart
from deuteron.backend.cpu.memory.elements import memory_type
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import Direct, Dot, Nest, dots_of, regions_of
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR
from deuteron.backend.cpu.plan.ops.elementwise import WIDENING, is_offset
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.tiles.private import drop_empty_nests, nests_of
from deuteron.backend.cpu.plan.vectors.limits import full_mask
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.backend.cpu.products.products import TileProduct
from deuteron.ir.arith import constant_value
from deuteron.ir.around import is_defined_in
from deuteron.ir.effects import is_pure
from deuteron.ir.reached import operands_of, reached
from deuteron.ir.tt.memory import AddPtrOp, LoadOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp
from deuteron.ir.types import element_type_of, is_tile, shape_of

# Columns of B: A is read once for each 32 of them. On 16 threads of an Emerald Rapids a copy of it is 1.1 to 1.4 times
# as fast with 256 columns, and as fast with 128, where rows are 4 KB apart and so in one set of the first cache.
# Vectors gain with 256 on a Zen 5 (fp32 214 to 225 GFLOP/s).
_MOST_COLUMNS_OF_TILES, _MOST_COLUMNS = 128, 256

_FORWARDING = (SplatOp, BroadcastOp, ExpandDimsOp)


def read_directly(plan: Plan) -> None:
    """Take away the copies that are not needed."""
    roots = {root.value: (nest, root) for nest in nests_of(plan.body) for root in nest.roots if isinstance(root, Keep)}
    for item in list(dots_of(plan.body)):
        load = _load_of(item)
        direct = _direct(plan, load, item.steps) if load is not None and item.op.a in roots else None
        if direct is None or not is_apart(load, plan.written):
            continue
        nest, root = roots[item.op.a]
        nest.roots.remove(root)
        _insert_after(plan.body, nest, Nest(nest.shape, [root], item))
        item.direct = direct
    drop_empty_nests(plan.body)


def drop_copies(plan: Plan) -> None:
    """Take away those that are never read, once it is known which are found by other programs."""
    for nest in nests_of(plan.body):
        if nest.copies_for is not None and not nest.copies_for.copies_a:
            nest.roots = []
    drop_empty_nests(plan.body)


def _insert_after(region: Region, nest: Nest, copies: Nest) -> None:
    """What the nest keeps may be what is copied, where something else reads it too."""
    if nest in region.items:
        region.items.insert(region.items.index(nest) + 1, copies)
        return
    for item in region.items:
        for inner in regions_of(item):
            _insert_after(inner, nest, copies)


def _load_of(item: Dot) -> LoadOp | None:
    """What the copy is of, if it is what was loaded, and nothing else reads the copy."""
    copy = item.op.a
    if len(shape_of(copy.type)) != 2 or len(list(copy.uses)) != 1:
        return None
    if item.product is not None and item.product.excess:
        return None
    most = _MOST_COLUMNS_OF_TILES if isinstance(item.product, TileProduct) else _MOST_COLUMNS
    if shape_of(item.op.result.type)[-1] > most:
        return None
    load = copy.owner.src.owner if isinstance(copy.owner, BroadcastOp) else copy.owner
    if not isinstance(load, LoadOp) or load.boundary_check or load.is_volatile.value.data:
        return None
    is_as_in_memory = load.result.type == copy.type and item.a.slot.type == memory_type(element_type_of(copy.type))
    return load if is_as_in_memory and load.parent_block() is item.op.parent_block() else None


def _direct(plan: Plan, load: LoadOp, steps: int) -> Direct | None:
    """How rows of neighbours are read, equally far apart, that go on in the next step."""
    shape = shape_of(load.result.type)
    rows, columns = (Steps(plan).along(load.ptr, identity_index(shape), axis) for axis in range(2))
    if columns != 1 or (steps > 1 and _advance(load.ptr, load.parent_op()) != shape[1]):
        return None
    mask = full_mask(plan, load.mask) if load.mask is not None else None
    if mask is None and load.mask is not None:
        return None
    direct = Direct(load, rows == IRREGULAR, mask, knows_first=steps > 1 and _knows_first(plan, load))
    return direct if direct.is_sure else _checked(plan, direct)


def _knows_first(plan: Plan, load: LoadOp) -> bool:
    """Whether where rows are in the first iteration of the loop can be computed before it."""
    loop = load.parent_op()
    first = arguments_of(plan, [load.ptr], loop) if isinstance(loop, scf.ForOp) else None
    return first is not None and all(_is_counted(plan, value) for value in first)


def _checked(plan: Plan, direct: Direct) -> Direct | None:
    """With what has to be counted before the loop; None where what has to be known cannot be computed there: where rows
    are in the first iteration, and of each of them whether the mask is full.
    """
    compared = direct.mask.compared() if direct.mask else []
    carried = carried_values(plan, compared, direct.load.parent_op()) if direct.knows_first else None
    return replace(direct, carried=carried) if carried is not None else None


def carried_values(plan: Plan, values: Sequence[SSAValue], loop: scf.ForOp) -> tuple[SSAValue, ...] | None:
    """What the loop carries that values of its body depend on, in any iteration; None: on something else as well."""
    found: dict[SSAValue, None] = {}
    while values:
        arguments = arguments_of(plan, values, loop)
        if arguments is None or not all(_is_counted(plan, value) for value in arguments):
            return None
        fresh = [value for value in arguments if value.index and value not in found]
        found.update(dict.fromkeys(fresh))
        values = [following for value in fresh for following in _following(plan, value, loop)]
    return tuple(sorted(found, key=lambda value: value.index))


def _is_counted(plan: Plan, argument: BlockArgument) -> bool:
    """Whether what a loop carries is a scalar, or a tile plus one."""
    return not is_tile(argument.type) or argument in plan.storage.inductions


def _following(plan: Plan, argument: BlockArgument, loop: scf.ForOp) -> Sequence[SSAValue]:
    """What the next iteration's is computed from, besides this one's."""
    if induction := plan.storage.inductions.get(argument):
        return induction.steps
    return [loop.body.block.last_op.operands[argument.index - 1]]


def arguments_of(plan: Plan, values: Sequence[SSAValue], loop: scf.ForOp) -> set[BlockArgument] | None:
    """The arguments of a loop's body that values depend on; None if they depend on anything else that it makes."""
    made = list(reached(values, lambda value: operands_of(value) if is_defined_in(value, loop) else ()))
    computed = [value for value in made if isinstance(value.owner, Operation) and is_defined_in(value, loop)]
    if any(value in plan.places or value.owner.regions or not is_pure(value.owner) for value in computed):
        return None
    return {value for value in made if value.owner is loop.body.block}


def _advance(value: SSAValue, loop: Operation) -> int | None:
    """By how many elements an iteration of the loop moves a value; None: not known."""
    if isinstance(value, BlockArgument):
        return _advance_of_argument(value, loop)
    op = value.owner
    if not is_defined_in(value, loop):
        return 0
    if op.regions or not is_pure(op):  # what is loaded may be stored, and an atomic gives another number each time
        return None
    parts = [_advance(operand, loop) for operand in op.operands]
    if all(part == 0 for part in parts):
        return 0
    if None in parts:
        return None
    if isinstance(op, (*WIDENING, AddPtrOp)) and not _are_offsets(op, parts):
        return None
    if isinstance(op, arith.AddiOp | AddPtrOp):
        return sum(parts)
    if isinstance(op, arith.MuliOp):
        factors = [_constant_of(operand) for operand in op.operands]
        return next((parts[1 - side] * factor for side, factor in enumerate(factors) if factor is not None), None)
    if isinstance(op, (*_FORWARDING, *WIDENING)):
        return parts[0]
    return None


def _are_offsets(op: Operation, parts: list[int]) -> bool:
    """Whether what advances does not wrap around."""
    return all(part == 0 or is_offset(operand) for part, operand in zip(parts, op.operands, strict=True))


def _advance_of_argument(value: BlockArgument, loop: Operation) -> int | None:
    if not isinstance(loop, scf.ForOp) or value.owner is not loop.body.block:
        return 0
    if value.index == 0:
        return constant_value(loop.step)
    following = loop.body.block.last_op.operands[value.index - 1]
    added = following.owner
    if following is value:
        return 0
    if not isinstance(added, arith.AddiOp | AddPtrOp) or added.operands[0] is not value:
        return None
    return _constant_of(added.operands[1])


def _constant_of(value: SSAValue) -> int | None:
    """A number, of a tile the one that all its elements are."""
    while isinstance(value.owner, _FORWARDING):
        value = value.owner.operands[0]
    return constant_value(value)

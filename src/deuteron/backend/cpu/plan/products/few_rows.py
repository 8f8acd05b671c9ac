"""Finds products of a loop of which few rows may be needed, and that can be computed before the loop, from memory.

    for k in range(0, K, 64):                                       a tile of 16 rows, of which M = 1 is stored
        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :], mask=(rows < M)[:, None] & ...)
        b = tl.load(b_ptr + columns[None, :] * K + (k + ks)[:, None], mask=...)
        acc = tl.dot(a, b, acc)

Each element of B is used for few products then, so that packing it takes longer than they do: before the loop
(`rules/few_rows.py`) they are computed of all iterations, as one product of that depth: of those that have full masks
along k, and of the last one as deep as both operands are loaded, if they are 0 beyond.
A is loaded in rows of neighbours, B in rows or columns of them (of bytes in columns), from arguments that the kernel
does not write, as far apart in each iteration as in the first (`distances.py`), each iteration's where the one before
ends, which is found out by looking at the addresses of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute, SSAValue

from deuteron.analysis.aliasing.written_arguments import is_apart
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import Dot, FewRows, For, Nest, Operand, regions_of
from deuteron.backend.cpu.plan.needed import known_limits
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, UNKNOWN, Step
from deuteron.backend.cpu.plan.products.direct import carried_values
from deuteron.backend.cpu.plan.products.distances import keeps_distances
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.limits import full_mask
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.backend.cpu.products.products import BYTE_QUADS, Product, TileProduct, has_product
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import BroadcastOp
from deuteron.ir.types import bf16, element_type_of, f16, f32, i32, shape_of
from deuteron.machine.cpu import CPU

# Rows that take less time so than in blocks. Of sixteen rows of fp32 B read where it is takes 0.6 to 0.9 of the time of
# packing it on a Zen 4. Blocks on tiles take as long for five rows as for sixteen: on an Emerald Rapids four of bf16
# take 0.55 to 0.76 of that, eight twice as long. Of narrow floats with B by rows more than four would be more code.
_MOST_ROWS, _MOST_NARROW_OF_COLUMNS, _MOST_NARROW = 16, 8, 4
_LEAST_ROWS = 4  # take as long as those of a block on vectors, even where it finds B packed
_MOST_OF_NEIGHBOURS = 32  # rows of a tile: as the tutorial writes it, a third more to compile, so not of large tiles
_LANES = 16
_FLOATS = frozenset((f32, f16, bf16))  # narrow ones, and bytes, where what is left can be loaded under a mask


def most_rows(m: int, type: Attribute, product: Product | None, b_is_by_columns: bool) -> int:
    """How many rows of a tile of `m` are few, if blocks are computed by this product. Programs of whole tiles, of which
    there may be many, find B packed.
    """
    is_on_vectors = b_is_by_columns and not isinstance(product, TileProduct)
    narrow = _MOST_NARROW_OF_COLUMNS if is_on_vectors else _MOST_NARROW
    return min(_MOST_ROWS if type == f32 else narrow, m if m <= _LEAST_ROWS else m - 1)


def find_few_rows(plan: Plan, target: CPU) -> None:
    """Give such products what has to be known before their loops, and have their operands' copies made only else."""
    types = _types(target)
    for loop in _loops(plan.body):
        for item in [item for item in loop.body.items if isinstance(item, Dot)]:
            item.few_rows = _few_rows(plan, loop, item) if _has_types(item.op, types) else None
            if item.few_rows is not None:
                for nest in _nests_of_operands(loop.body, item):
                    nest.unless_computed = item


def _types(target: CPU) -> set[tuple[Attribute, Attribute]]:
    """The types of operands, both the same, and of sums."""
    if not target.masks_narrow:
        return {(f32, f32)}
    return {(type, f32) for type in _FLOATS} | ({(i8, i32)} if has_product(BYTE_QUADS, target) else set())


def _has_types(op: DotOp, types: Collection[tuple[Attribute, Attribute]]) -> bool:
    a, b, c = (element_type_of(value.type) for value in (op.a, op.b, op.c))
    return a == b and (a, c) in types


def _loops(region: Region) -> list[For]:
    inner = [found for item in region.items for own in regions_of(item) for found in _loops(own)]
    return [item for item in region.items if isinstance(item, For)] + inner


def _nests_of_operands(region: Region, dot: Dot) -> list[Nest]:
    def is_only_of(nest: Nest) -> bool:
        return all(isinstance(root, Keep) and root.value in (dot.op.a, dot.op.b) for root in nest.roots)

    return [item for item in region.items if isinstance(item, Nest) and is_only_of(item)]


def _few_rows(plan: Plan, loop: For, item: Dot) -> FewRows | None:
    (*batches, m, n), k = shape_of(item.op.result.type), shape_of(item.op.a.type)[-1]
    if batches or item.steps == 1 or k % _LANES or n % _LANES or not are_sizes_known(plan, loop, item):
        return None
    a, b = (_operand(plan, value, loop, excess) for value, excess in ((item.op.a, _excess(item)), (item.op.b, 0)))
    if a is None or b is None or a.unit_axis != 1 or (b.checks_neighbours and m > _MOST_OF_NEIGHBOURS):
        return None
    if element_type_of(b.load.result.type) == i8 and b.unit_axis != 0:
        return None
    most = most_rows(m, element_type_of(b.load.result.type), item.product, b.unit_axis == 0)
    if not item.needed_rows and m > most:
        return None
    compared = [value for operand in (a, b) for value in _compared(operand)]
    carried = carried_values(plan, [*compared, a.load.ptr, b.load.ptr], loop.op)
    if carried is None or not _are_outside(plan, loop, a, b):
        return None
    if not all(is_apart(one.load, plan.written) for one in (a, b)):
        return None
    return FewRows(a, b, carried, most)


def are_sizes_known(plan: Plan, loop: For, item: Dot) -> bool:
    """Whether how many rows and columns are needed is known before the loop."""
    limits = [limit for own in (*item.needed_rows, *item.needed_columns) for limit in own]
    return len(known_limits(plan, loop.op, limits)) == len(limits)


def _compared(operand: Operand) -> list[SSAValue]:
    return operand.mask.compared() if operand.mask else []


def _are_outside(plan: Plan, loop: For, a: Operand, b: Operand) -> bool:
    """Whether the limits of A's rows and B's columns are known before the loop."""
    limits = [*a.limits_along(0), *b.limits_along(1)]
    return len(known_limits(plan, loop.op, limits)) == len(limits)


def _excess(item: Dot) -> int:
    """What A's elements have too much, as the product takes them."""
    return item.product.excess if item.product is not None else 0


def _operand(plan: Plan, value: SSAValue, loop: For, excess: int) -> Operand | None:
    load = _source(value, excess).owner
    if (
        not isinstance(load, LoadOp)
        or load.result.type != value.type
        or len(list(value.uses)) != 1
        or len(shape_of(value.type)) != 2
    ):
        return None
    if load.boundary_check or load.is_volatile.value.data:
        return None
    steps = [Steps(plan).along(load.ptr, identity_index(shape_of(value.type)), axis) for axis in range(2)]
    mask = full_mask(plan, load.mask) if load.mask is not None else None
    unit = _unit_axis(steps)
    if unit is None or (mask is None and load.mask is not None):
        return None
    if not all(keeps_distances(plan, load.ptr, axis, loop.op) for axis in range(2)):
        return None
    return Operand(load, unit, steps[unit] != 1, steps[1 - unit] == IRREGULAR, mask)


def _source(value: SSAValue, excess: int) -> SSAValue:
    """What the operand of a product is a copy of, which has the excess added (`native_products.py`)."""
    source = value.owner.src if isinstance(value.owner, BroadcastOp) else value
    return source.owner.operands[0] if excess else source


def _unit_axis(steps: Sequence[Step]) -> int | None:
    """Along which axis elements are neighbours, or may be: the only one along which they may lie anywhere."""
    for step, other in ((1, None), (IRREGULAR, UNKNOWN)):
        axes = [axis for axis in range(2) if steps[axis] == step and other in (None, steps[1 - axis])]
        if axes:
            return max(axes)
    return None

"""Finds operands of products that programs which run one after the other compute alike, and need to compute once.

    pid_m, pid_n = ...                          programs 0 to 7 have the same pid_n
    for k in ...:                               key (pid_n,): all else that b is computed from is an argument
        b = tl.load(b_ptr + ... pid_n ...)      packed by the first; the others of them find it packed
        acc = tl.dot(a, b, acc)

The operand is kept of all steps of the loop, in groups of those whose products are computed together, as many groups as
there is room for, and one more, for what there is no room for. B is kept for one key, that of the program before; A for
several (`rules/key_table.py`), for programs come back to the same rows with other columns. Of A that is what is copied
anyway (down columns, converted, computed), and of what tiles could read in place, rows that begin within lines of the
cache. Only within one call of the kernel's function is anything found.

It has to be computed by ops without effects, and by loads from arguments that the kernel does not write, of what is
known before the loop, and of the number of the iteration: from where the loop begins on, so that is part of the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from xdsl.dialects import scf
from xdsl.ir import SSAValue
from xdsl.ir.core import BlockArgument

from deuteron.analysis.aliasing.points_to import Targets, is_argument
from deuteron.analysis.aliasing.written_arguments import could_be_apart, rely_on_apart
from deuteron.backend.cpu.plan.items import Dot, For, Nest, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Reuse, Slot
from deuteron.backend.cpu.products.products import TileProduct
from deuteron.ir.arith import constant_value
from deuteron.ir.around import is_defined_in
from deuteron.ir.effects import is_pure
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.program import GetProgramIdOp
from deuteron.ir.types import is_float, is_integer, is_pointer, is_tile, shape_of

# Of a core's second cache. Of 2 MiB B of 1,024 x 256 in fp32 fits; what does not is packed by each program.
ROOM_OF_B, ROOM_OF_A = 1 / 2, 3 / 4
MOST_ENTRIES = 16  # keys that A is kept for: groups of 8 programs along m come back to the same rows


def reuse_operands(plan: Plan, second_cache_bytes: int) -> list[Reuse]:
    """Give each operand that can be found packed a nest of its own, and room for all steps."""
    room_of_a, room_of_b = int(second_cache_bytes * ROOM_OF_A), int(second_cache_bytes * ROOM_OF_B)
    found: list[Reuse] = []
    for loop in _loops(plan.body):
        for item in [item for item in loop.body.items if isinstance(item, Dot)]:
            if item.steps > 1 and item.packed is None:
                found += _reuse_of(plan, loop, item.op.b, item.b.slot, room_of_b, 1, True)
            if item.steps > 1 and _may_copy_a(item):
                is_copied = item.direct is None
                found += _reuse_of(plan, loop, item.op.a, item.a.slot, room_of_a, MOST_ENTRIES, is_copied)
    for number, reuse in enumerate(found):
        reuse.word = sum(before.num_words for before in found[:number])
    return found


def _may_copy_a(item: Dot) -> bool:
    """Whether A is copied, or is read by tiles, whose rows may begin within lines of the cache."""
    return item.direct is None or (item.direct.knows_first and isinstance(item.product, TileProduct))


def reuse_of(nest: Nest) -> Reuse | None:
    """Of the operand that a nest packs."""
    return next((root.place.slot.reuse for root in nest.roots if isinstance(root, Keep)), None)


def _loops(region: Region) -> Iterator[For]:
    for item in region.items:
        if isinstance(item, For):
            yield item
        for inner in regions_of(item):
            yield from _loops(inner)


def _reuse_of(
    plan: Plan, loop: For, operand: SSAValue, slot: Slot, room: int, most_entries: int, is_eager: bool
) -> list[Reuse]:
    if slot.layout is None or len(list(operand.uses)) != 1 or len(shape_of(operand.type)) != 2:
        return []
    nest = next((nest for nest in loop.body.items if isinstance(nest, Nest) and _root(nest, operand)), None)
    groups = min(room // slot.num_bytes, most_entries * _num_groups(loop.op, loop.steps))
    if nest is None or not groups:
        return []
    key = _Slice(loop.op, plan.written).key(operand)
    if key is None or not _split(plan, loop, nest, operand):
        return []
    reuse = Reuse(slot, key, loop.steps, groups, slot.num_bytes, 0, most_entries, is_eager)
    slot.reuse, slot.num_bytes, slot.count = reuse, slot.num_bytes * (groups + 1), slot.count * (groups + 1)
    return [reuse]


def _root(nest: Nest, value: SSAValue) -> Keep | None:
    return next((root for root in nest.roots if isinstance(root, Keep) and root.value is value), None)


def _num_groups(loop: scf.ForOp, steps: int) -> float:
    """How many there are; without end where that is not known."""
    bounds = [constant_value(value) for value in (loop.lb, loop.ub, loop.step)]
    if None in bounds or bounds[2] <= 0:
        return inf
    iterations = max(0, -(-(bounds[1] - bounds[0]) // bounds[2]))
    return -(-iterations // steps)


def _split(plan: Plan, loop: For, nest: Nest, operand: SSAValue) -> bool:
    """Put the operand into a nest of its own, before the one that it is in, unless it reads what that makes."""
    root = _root(nest, operand)
    others = [other for other in nest.roots if other is not root]
    made = {value for other in others for value in other.produced()}
    if made & plan.reader.reads(root).values:
        return False
    if others:
        nest.roots = others
        loop.body.items.insert(loop.body.items.index(nest), Nest(nest.shape, [root]))
    return True


class _Slice:
    """What an operand is computed from."""

    def __init__(self, loop: scf.ForOp, written: Targets):
        self._loop, self._written = loop, written
        self._key: dict[SSAValue, None] = {}
        self._loads: list[LoadOp] = []

    def key(self, operand: SSAValue) -> tuple[SSAValue, ...] | None:
        """The scalars from before the loop; None where they are not all that it depends on."""
        pending, seen = [operand, self._loop.lb, self._loop.step], {operand}
        while pending:
            sources = self._sources(pending.pop())
            if sources is None:
                return None
            pending += [source for source in sources if source not in seen]
            seen.update(sources)
        for load in self._loads:
            rely_on_apart(load, self._written)
        return tuple(self._key)

    def _sources(self, value: SSAValue) -> list[SSAValue] | None:
        """What a value is computed from, after a scalar from before the loop has been entered; None: not known."""
        if not is_tile(value.type) and not is_defined_in(value, self._loop):
            if not is_argument(value) and constant_value(value) is None:
                self._key[value] = None
            return [] if is_integer(value.type) or is_float(value.type) or is_pointer(value.type) else None
        if isinstance(value, BlockArgument):
            return self._carried(value)
        op = value.owner
        if isinstance(op, LoadOp) and could_be_apart(op, self._written):
            self._loads.append(op)
        elif op.regions or not is_pure(op) or isinstance(op, GetProgramIdOp):
            return None
        return list(op.operands)

    def _carried(self, value: BlockArgument) -> list[SSAValue] | None:
        """By this loop; what another one carries is not known."""
        return list(forwarded_from(value)) if value.owner is self._loop.body.block else None

"""How much there is to do in what a kernel is made of, in elements of a tile, which take about a nanosecond each.

    work_of(region)                 Nest((64, 128), [...]): 8192;  For 0..4 of it: 32768;  For 0..n: 0
    looks_itself(loop)              whether a loop may take long: it looks now and then whether the launch is to end

A loop that looks itself counts nothing for what is around it. This says how often to look; all that is right within a
factor of thirty will do.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Block

from deuteron.backend.cpu.plan.items import Dot, For, If, Item, Nest, Scalar, Transpose, While, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import LoopRoot, Root
from deuteron.ir.arith import constant_value
from deuteron.ir.types import shape_of

_SCALAR = 4  # an access to memory, or an atomic
_PRODUCTS = 16  # of an element of a dot: what one instruction does
_SHORT = 1 << 14  # of a loop that need not look itself


def work_of(region: Region, *blocks: Block) -> int:
    """Of a region, and of the ops on scalars of the blocks that it was made of; at least 1."""
    return 1 + sum(len(block.ops) for block in blocks) + sum(map(_work_of_item, region.items))


def looks_itself(item: Item | LoopRoot) -> bool:
    """Loops of which nobody knows how long they go on, or that are known to go on for long."""
    if isinstance(item, LoopRoot):
        trips = _trips(item)
        return trips is None or trips > _SHORT
    if not isinstance(item, For):
        return isinstance(item, While)
    trips = _trips(item)
    return trips is None or trips * work_of_step(item) > _SHORT


def work_of_step(item: For) -> int:
    """Of an iteration."""
    return work_of(item.body, item.op.body.block)


def work_of_check(item: While) -> int:
    """Of an iteration, with its condition."""
    blocks = item.op.before_region.block, item.op.after_region.block
    return work_of(Region([*item.before.items, *item.after.items]), *blocks)


def _work_of_item(item: Item) -> int:
    if isinstance(item, Nest):
        return prod(item.shape) * sum(map(_work_of_root, item.roots))
    if isinstance(item, Dot):
        return prod(shape_of(item.op.a.type)) * shape_of(item.op.b.type)[-1] // _PRODUCTS
    if isinstance(item, Transpose):
        return prod(shape_of(item.op.src.type))
    if isinstance(item, If):
        return sum(map(work_of, regions_of(item)))
    if isinstance(item, Scalar) or looks_itself(item):
        return _SCALAR
    return (_trips(item) or 0) * work_of_step(item)


def _work_of_root(root: Root) -> int:
    """Of an element."""
    if isinstance(root, LoopRoot):
        return 1 + (_trips(root) or 0)
    return work_of(root.body) if root.body else 1


def _trips(item: For | LoopRoot) -> int | None:
    """The number of iterations, if it is known."""
    bounds = [constant_value(value) for value in (item.op.lb, item.op.ub, item.op.step)]
    return None if None in bounds else len(range(*bounds)) if bounds[2] > 0 else 0

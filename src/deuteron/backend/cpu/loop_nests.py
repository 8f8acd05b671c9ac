"""The loops that a kernel becomes on the CPU, as data: which nests there are, what each fuses, keeps and vectorises.

    for item in loop_nests(kernel.asm["ttir"], kernel.metadata): ...
        LoopItem("for", k.py:37, items=(LoopItem("nest", shape=(64, 32), axis=1, lanes=8, roots=(...)), ...))

It is planned again, from the tile IR that the cache keeps, as lowering plans it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.loops import MAX_UNROLL
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import Dot, For, Item, Nest, Transpose, regions_of
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep, Root
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.tiles.buffers import assign_buffers
from deuteron.backend.cpu.plan.vectors.axes import choose_axis
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.ttir import parse_tile_ir
from deuteron.errors import Location
from deuteron.ir.location import user_location
from deuteron.ir.types import is_tile, shape_of
from deuteron.machine.cpu import CPU


@dataclass(frozen=True)
class FusedOp:
    """An op that is computed where it is needed, element by element, and where it is written."""

    name: str
    place: Location | None


@dataclass(frozen=True)
class LoopRoot:
    """What a nest computes: the op, the ops on tiles fused into it, the kept tiles that these read. A tile that is kept
    has a name, and bytes at an offset in the scratch memory; -1: it stays in registers.
    """

    kind: str
    place: Location | None
    fused: tuple[FusedOp, ...]
    reads: tuple[str, ...]
    kept: str | None = None
    num_bytes: int = 0
    offset: int = -1


@dataclass(frozen=True)
class LoopItem:
    """A nest over a shape, of which `lanes` elements along `axis` are a vector, `unroll` of them at a time; a dot, a
    transpose, an op on scalars; or control flow around further items.
    """

    kind: str
    place: Location | None
    shape: tuple[int, ...] = ()
    axis: int | None = None
    lanes: int = 1
    unroll: int = 1
    roots: tuple[LoopRoot, ...] = ()
    items: tuple[LoopItem, ...] = ()


def loop_nests(ttir: str, metadata: KernelMetadata) -> tuple[LoopItem, ...]:
    """What the program is made of, in order."""
    target = cpu_target(*resolve_cpu(str(metadata.target.arch)))
    plan = plan_function(kernel_of(parse_tile_ir(ttir, "<ttir>"), target))
    assign_buffers(plan)
    return _items(plan, plan.body, target)


def _items(plan: Plan, region: Region, target: CPU) -> tuple[LoopItem, ...]:
    return tuple(_item(plan, item, target) for item in region.items)


def _item(plan: Plan, item: Item, target: CPU) -> LoopItem:
    if isinstance(item, Nest):
        chosen = choose_axis(plan, item, target.vector_bits // 8, MAX_UNROLL)
        roots = tuple(_root(plan, root) for root in item.roots)
        return LoopItem("nest", roots[0].place, item.shape, chosen.axis, chosen.lanes, chosen.unroll, roots)
    place = user_location(item.op.location)
    if isinstance(item, Dot | Transpose):
        shape = shape_of(item.op.results[0].type)
        return LoopItem(type(item).__name__.lower(), place, shape, roots=(_made(plan, item.op, item.result),))
    inner = tuple(one for region in regions_of(item) for one in _items(plan, region, target))
    kind = item.op.name if not regions_of(item) else type(item).__name__.lower()
    return LoopItem(kind, place, items=inner) if isinstance(item, For) or inner else LoopItem(kind, place)


def _root(plan: Plan, root: Root) -> LoopRoot:
    own = root.value if isinstance(root, Keep) else None
    fused, reads = _computed(plan, root, own)
    kind = "keep" if isinstance(root, Keep) else root.op.name.partition(".")[2]
    place = user_location(root.op.location)
    if not isinstance(root, Keep):
        return LoopRoot(kind, place, fused, reads)
    return LoopRoot(kind, place, fused, reads, *_kept(own or root.sources[0], root.place))


def _made(plan: Plan, op: Operation, place: Place) -> LoopRoot:
    reads = tuple(_name(value) for value in op.operands if is_tile(value.type))
    return LoopRoot(op.name.partition(".")[2], user_location(op.location), (), reads, *_kept(op.results[0], place))


def _kept(value: SSAValue, place: Place) -> tuple[str, int, int]:
    slot = place.slot.representative
    return _name(value), slot.num_bytes, slot.offset


def _computed(plan: Plan, root: Root, own: SSAValue | None) -> tuple[tuple[FusedOp, ...], tuple[str, ...]]:
    """The ops on tiles that a root computes, in the order of the text, and the kept tiles that they read."""
    found: dict[Operation, None] = {}
    reads: dict[str, None] = {}
    pending = list(root.sources)
    while pending:
        value = pending.pop()
        if not is_tile(value.type):
            continue
        is_kept = value in plan.places and value is not own
        if is_kept or not isinstance(value.owner, Operation) or value.owner.regions:
            reads[_name(value)] = None
        elif value.owner not in found:
            found[value.owner] = None
            pending += value.owner.operands
    fused = tuple(FusedOp(op.name, user_location(op.location)) for op in reversed(found))
    return fused, tuple(reads)


def _name(value: SSAValue) -> str:
    return value.name_hint or "a tile"

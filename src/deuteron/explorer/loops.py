"""The loop nests of a kernel for the CPU as data, with the places of its lines."""

from __future__ import annotations

from deuteron.backend.cpu.loop_nests import LoopItem, LoopRoot, loop_nests
from deuteron.compiler.kernel import CompiledKernel
from deuteron.errors import Location
from deuteron.explorer.model import Loop, Nested
from deuteron.explorer.sources import Sources


def read_loops(kernel: CompiledKernel, sources: Sources) -> tuple[Loop, ...]:
    """What the kernel's program is made of, in order; nothing for a target that has no loop nests."""
    if "obj" not in kernel.asm or "ttir" not in kernel.asm:
        return ()
    return tuple(_loop(item, sources) for item in loop_nests(kernel.asm["ttir"], kernel.metadata))


def _loop(item: LoopItem, sources: Sources) -> Loop:
    roots = tuple(_root(root, sources) for root in item.roots)
    inner = tuple(_loop(one, sources) for one in item.items)
    shape = (item.shape, item.axis, item.lanes, item.unroll)
    return Loop(item.kind, _place(item.place, sources), *shape, roots, inner)


def _root(root: LoopRoot, sources: Sources) -> Nested:
    fused = tuple((op.name, _place(op.place, sources)) for op in root.fused)
    return Nested(root.kind, _place(root.place, sources), fused, root.reads, root.kept, root.num_bytes, root.offset)


def _place(place: Location | None, sources: Sources) -> int | None:
    return None if place is None else sources.number(place)

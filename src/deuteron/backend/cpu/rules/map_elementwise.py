"""tt.map_elementwise: its region for each element of a nest, or for each pack of neighbours in memory.

pack = 2 of 64 elements:    for p in 0..32: out[2p], out[2p + 1] = region(x[2p], x[2p + 1])

Where a tile has fewer elements than a pack, the last one is taken again.
"""

from __future__ import annotations

from deuteron.backend.cpu.algebra import of_value
from deuteron.backend.cpu.context import AxisIndex, Context
from deuteron.backend.cpu.fragment import Axis
from deuteron.backend.cpu.memory.places import read_place, write_place
from deuteron.backend.cpu.plan.roots import MapRoot
from deuteron.backend.cpu.rules.region import run_scalars
from deuteron.backend.llvm.types import const
from deuteron.ir.types import num_elements_of


def emit_map(ctx: Context, root: MapRoot, index: AxisIndex) -> None:
    """Run the region at an index of the root's nest, and write the results to their places."""
    op, block = root.op, root.op.scalar_op.block
    if root.pack == 1:
        arguments = [ctx.evaluate(source, index).value for source in root.sources]
        results = run_scalars(ctx, root.body, block, arguments)
        for result, value in zip(op.results, results, strict=True):
            write_place(ctx, ctx.plan.places[result], index, of_value(value, ctx.emitter.depth))
        return
    elements = _neighbours(ctx, root, index)
    flat = {value: ctx.plan.places[value].reshaped(_flat(value)) for value in (*op.srcs, *op.results)}
    arguments = [read_place(ctx, source, flat[source], element).value for source in op.srcs for element in elements]
    values = run_scalars(ctx, root.body, block, arguments)
    for number, value in reversed(list(enumerate(values))):  # what the last element gives first is what counts
        result = op.results[number // root.pack]
        write_place(ctx, flat[result], elements[number % root.pack], of_value(value, ctx.emitter.depth))


def _flat(value) -> tuple[int]:
    return (num_elements_of(value.type),)


def _neighbours(ctx: Context, root: MapRoot, index: AxisIndex) -> list[AxisIndex]:
    """The index, in one dimension, of each element of a pack."""
    count, pack = num_elements_of(root.sources[0].type), root.pack
    if index[0] is None:
        last = min(pack, count) - 1
        return [
            (Axis(const("i32", min(n, last)), 1, ctx.nest_state.level) if count > 1 else None,) for n in range(pack)
        ]
    b, level = ctx.emitter.at(index[0].level), index[0].level
    first = b.mul(index[0].start, const("i32", pack), "nuw nsw")
    starts = [first, *(b.add(first, const("i32", n), "nuw nsw") for n in range(1, pack))]
    if count % pack:
        starts = [b.intrinsic("llvm.umin", "i32", start, const("i32", count - 1)) for start in starts]
    return [(Axis(start, 1, level),) for start in starts]

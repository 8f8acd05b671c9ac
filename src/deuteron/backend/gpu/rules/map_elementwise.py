"""tt.map_elementwise: the region for the registers of each thread, where its threads may go different ways.

With `pack` = p neighbouring registers come together, the last one again where a thread has too few. Replicas of an
element have the result of the one register that it was computed in, so that all of a thread's agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment, positions, register_at
from deuteron.backend.gpu.threads import owned_registers
from deuteron.backend.llvm.types import Value
from deuteron.layout.linear import LinearLayout


def map_elementwise(ctx: Context, op: Operation, *tiles: Fragment) -> list[Fragment]:
    block = op.scalar_op.block
    return in_groups(tiles[0].layout, op.pack.value.data, tiles, lambda values: ctx.run(block, values))


def in_groups(
    layout: LinearLayout, pack: int, tiles: Sequence[Fragment], run: Callable[[list[Value]], list[Value]]
) -> list[Fragment]:
    """Tiles of what `run` makes of `pack` registers of each tile; it gives `pack` of each result."""
    owned, columns = owned_registers(layout), []
    for begin in range(0, len(owned), pack):
        group = owned[begin : begin + pack]
        group += group[-1:] * (pack - len(group))
        columns.append(run([tile.registers[register] for tile in tiles for register in group]))
    count = len(columns[0]) // pack
    computed = [[value for column in columns for value in column[n * pack : (n + 1) * pack]] for n in range(count)]
    places, first = positions(layout), register_at(layout)
    number = {register: index for index, register in enumerate(owned)}
    chosen = [number[first[place]] for place in places]
    return [Fragment(layout, tuple(values[index] for index in chosen)) for values in computed]


RULES: dict[str, Rule] = {"tt.map_elementwise": map_elementwise}

"""Gives each thread neighbours of what is scanned, where it has elements in many places.

    %s = "tt.scan"(%x) ({ add })         ->     %g = "ttg.convert_layout"(%x)
                                                %t = "tt.scan"(%g) ({ add })
                                                %s = "ttg.convert_layout"(%t)

    32 elements of a thread, one by one      lanes exchange 32 totals in 5 steps
    ... side by side                         one total; elements go through shared memory there and back

Rows whose length is no multiple of 16 bytes are loaded word by word, so that warps read whole lines. What is stored is
in that layout as well. Elements along other dimensions stay with their threads' registers. Scans of a few places stay:
lanes exchange the totals of several at once while they would wait at barriers.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from deuteron.analysis.along_axis import scan_phases
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.reduce import ScanOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import layout_of, with_layout
from deuteron.layout.distributed import axis_bits, gather_along
from deuteron.layout.linear import LANE, REGISTER, LinearLayout
from deuteron.passes.gpu.layouts.scatter_reductions import COMBINE, SELECT, SHUFFLE
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace

# Slots, as of a shuffle, in which a warp stores 32 words to shared memory and loads them.
EXCHANGE = 8
# Of the slots of the scan as it is: what is converted waits at barriers, which totals of several places do not. Of
# four elements of a thread (0.65) scans take 0.84 to 1.0 of the time before, of two (0.89) 1.11 (H200).
MOST = 3 / 4


class GatherNeighbours(Optimisation):
    """Gives each thread neighbours of what is scanned."""

    name = "gather-neighbours"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            for scan in nested_ops(func, ScanOp):
                gathered = gather_along(layout_of(scan.srcs[0].type), scan.axis.value.data)
                if _slots(scan, gathered) + _conversion_slots(scan) <= MOST * _slots(
                    scan, layout_of(scan.srcs[0].type)
                ):
                    _gather(scan, gathered)


def _slots(op: ScanOp, layout: LinearLayout) -> float:
    """What lanes take to scan the totals of all places, and to join them with the elements of these."""
    axis, held = op.axis.value.data, _held(layout)
    phases = scan_phases(layout, axis)
    places = held >> len(phases[0].bits) if phases and phases[0].in_name == REGISTER else held
    combine, fetch = (len(op.combine.block.ops) - 1) * COMBINE, len(op.srcs) * SHUFFLE
    step = fetch + len(op.srcs) * SELECT + combine
    return places * (len(axis_bits(layout, axis, LANE)) * step + fetch) + held * combine


def _conversion_slots(op: ScanOp) -> float:
    num_converted = len(op.srcs) + sum(result.first_use is not None for result in op.results)
    return num_converted * _held(layout_of(op.srcs[0].type)) * EXCHANGE


def _held(layout: LinearLayout) -> int:
    """The elements of a thread."""
    return layout.in_size(REGISTER) >> layout.free_bits()[REGISTER].bit_count()


def _gather(op: ScanOp, layout: LinearLayout) -> None:
    b = Builder.before(op)
    made = b.insert(
        ScanOp.create(
            operands=[b.value(ConvertLayoutOp(src, with_layout(src.type, layout))) for src in op.srcs],
            result_types=[with_layout(result.type, layout) for result in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=[op.detach_region(op.combine)],
        )
    )
    pairs = zip(made.results, op.results, strict=True)
    replace(op, [b.value(ConvertLayoutOp(new, old.type)) if old.first_use else new for new, old in pairs])

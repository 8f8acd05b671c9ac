"""Exchanges the elements of pairs through shared memory, in kernels with more shuffles than their assembler takes well.

    %p = tt.gather %x[%place ^ 4]        ->        %p = tt.gather %x[%place ^ 4] {ttg.in_shared}

A network that sorts many elements of a thread is hundreds of exchanges between lanes, each a shuffle, and ptxas takes
time by the square of the shuffles in a kernel (`GPU.max_shuffles`): 12 s for 4,096 elements in four warps, more than
two minutes in one. Four registers are stored, and loaded by the partner, at once: 0.8 s and 4. Where the tile has no
room in half of the shared memory, and on other machines, nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from deuteron.analysis.shared_memory.scratch import IN_SHARED, exchange_route_of, exchanged_bytes
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import byte_width_of
from deuteron.layout.linear import REGISTER
from deuteron.machine.gpu import REGISTER_BYTES, GPUConfig
from deuteron.passes.optimisation import Optimisation

MAX_SHARE = 1 / 2  # of shared memory, so that there is room for what else a kernel has there


@dataclass(frozen=True)
class ExchangeInShared(Optimisation):
    """Exchanges elements through shared memory where there are too many shuffles."""

    name = "exchange-in-shared"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        most = self.config.machine.max_shuffles
        for func in functions_in(op) if most is not None else ():
            exchanges = [gather for gather in nested_ops(func, GatherOp) if num_shuffles(gather)]
            if sum(map(num_shuffles, exchanges)) > most:
                self._mark(exchanges)

    def _mark(self, exchanges: list[GatherOp]) -> None:
        room = MAX_SHARE * self.config.machine.shared.max_bytes
        for gather in exchanges:
            if exchanged_bytes(gather.src.type) <= room:
                gather.attributes[IN_SHARED] = UnitAttr()


def num_shuffles(op: GatherOp) -> int:
    """How many words a lane gets from another one, where elements are exchanged within warps; else 0."""
    route = exchange_route_of(op)
    if route is None or route.warp or not route.lane:
        return 0
    return max(layout_of(op.src.type).in_size(REGISTER) * byte_width_of(op.src.type) // REGISTER_BYTES, 1)

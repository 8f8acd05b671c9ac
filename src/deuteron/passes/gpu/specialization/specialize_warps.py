"""Gives what dots read to warps of their own: these copy it into rings, as far ahead as there is room.

                                     %ring, %full, %empty = "ttg.local_alloc"()
                                     "ttg.warp_specialize"() ({
    "scf.for" ... ({                   "scf.for" ... iter_args(%index = 0, %phase = 0) ({
      %a = "tt.load"(%p)                 "ttng.wait_barrier"(%full[%index], %phase)
      %m = "ttg.local_alloc"(%a)         %m = "ttg.memdesc_index"(%ring, %index)
      ... a dot reads %m          ->     ... a dot reads %m
      ... %p advances                    "ttng.arrive_barrier"(%empty[%index])
    })                                   "scf.yield"(next %index, next %phase)
                                       })
                                     }, {
                                       "scf.for" ... iter_args(%p, %index = 0, %phase = 1) ({
                                         "ttng.wait_barrier"(%empty[%index], %phase)
                                         "ttg.async_copy_global_to_local"(%p, %ring[%index])
                                         "ttng.async_copy_mbarrier_arrive"(%full[%index])
                                         "scf.yield"(%p advanced, next %index, next %phase)
                                       })
                                     })

The partition is the slice of the function that its loads need (slice_loads.py); which loads, and the rings, says
bundle_loads.py. The position in a ring goes on from loop to loop, so that the first tiles of the next loop, or of the
next round of an outer one, are copied while this one ends. Slots are released after what reads them;
`release-buffers` then moves that after the wait for a dot in flight.

Done in the functions that choose_functions.py marks.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from deuteron.ir.tt.function import functions_in
from deuteron.ir.ttg.warp_specialize import SPECIALIZED
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.specialization.bundle_loads import plan_rings
from deuteron.passes.gpu.specialization.partition_warps import Specialization
from deuteron.passes.gpu.specialization.plan_slots import plan_specialization
from deuteron.passes.optimisation import Optimisation


@dataclass(frozen=True)
class SpecializeWarps(Optimisation):
    """Gives the loads of dots to more warps."""

    name = "specialize-warps"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if func.attributes.pop(SPECIALIZED, None) is not None:
                plan = plan_specialization(func, plan_rings(func, self.config.machine), self.config)
                if plan is not None:
                    Specialization(func, *plan, self.config).rewrite()

"""Warps that do different things: `ttg.warp_specialize`.

    "ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4>, requestedRegisters = array<i32: 40>}> ({
      ...                     the default region: the warps that the program has anyway
      "ttg.warp_yield"()
    }, {
      ...                     a partition: four more warps, of 40 registers a thread; with 1, one of them
      "ttg.warp_return"()
    }) : () -> ()

All of them begin when all warps have come there, and the program ends with the op. Before it there are only
allocations and what prepares barriers: every warp executes that. Regions use values from outside, and hand shared
memory to each other through mbarriers. What they share is allocated before the op; every buffer that a partition
fills is waited for in the default region. `requestedRegisters` may be left out; the default region has what the
partitions leave.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_region_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, Effect, writes
from deuteron.ir.types import i32
from deuteron.layout.wgmma import WARPGROUP

SPECIALIZED = "ttg.warp_specialize"  # an attribute of functions whose loads are to be given to warps of their own


@irdl_op_definition
class WarpYieldOp(IRDLOperation):
    """Ends the default region."""

    name = "ttg.warp_yield"
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class WarpReturnOp(IRDLOperation):
    """Ends a partition."""

    name = "ttg.warp_return"
    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class WarpSpecializeOp(IRDLOperation):
    """Gives each of its regions to warps of its own."""

    name = "ttg.warp_specialize"
    default = region_def("single_block")
    partitions = var_region_def("single_block")
    partition_num_warps = prop_def(DenseArrayBase, prop_name="partitionNumWarps")
    requested_registers = opt_prop_def(DenseArrayBase, prop_name="requestedRegisters")
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, default: Block, partitions: Sequence[tuple[Block, int]], registers: Sequence[int] = ()):
        properties = {"partitionNumWarps": DenseArrayBase.from_list(i32, [warps for _, warps in partitions])}
        if registers:
            properties["requestedRegisters"] = DenseArrayBase.from_list(i32, list(registers))
        regions = [Region(default), [Region(block) for block, _ in partitions]]
        super().__init__(regions=regions, properties=properties)

    @property
    def num_warps(self) -> tuple[int, ...]:
        """Of each partition."""
        return tuple(self.partition_num_warps.get_values())

    @property
    def launched_warps(self) -> tuple[int, ...]:
        """Of each partition: whole warpgroups, which registers are given to; those beyond `num_warps` only end."""
        return tuple(-(-warps // WARPGROUP) * WARPGROUP for warps in self.num_warps)

    @property
    def registers(self) -> tuple[int, ...]:
        """What each partition asks for a thread; empty where nobody asks."""
        return tuple(self.requested_registers.get_values()) if self.requested_registers is not None else ()

    def effects(self) -> list[Effect]:
        return [writes(OTHER)]

    def verify_(self) -> None:
        if len(self.num_warps) != len(self.partitions):
            raise VerifyException(f"{len(self.partitions)} partitions, and {self.num_warps} warps for them")
        if any(warps < 1 or warps & (warps - 1) for warps in self.num_warps):
            raise VerifyException(f"partitions have powers of two of warps, got {self.num_warps}")
        if self.registers:
            self._check_registers()
        for region in self.regions:
            wanted = WarpYieldOp if region is self.default else WarpReturnOp
            if region.block.args or not isinstance(region.block.last_op, wanted):
                raise VerifyException(f"a region of ttg.warp_specialize has no arguments and ends with {wanted.name}")

    def _check_registers(self) -> None:
        if len(self.registers) != len(self.partitions):
            raise VerifyException(f"{len(self.partitions)} partitions, and {self.registers} registers for them")
        if any(count % 8 or not 24 <= count <= 256 for count in self.registers):
            raise VerifyException(f"registers are multiples of 8 from 24 to 256, got {self.registers}")


def specialized_in(op: Operation) -> WarpSpecializeOp | None:
    """The op of which a partition, not the default region, holds this one."""
    region = op.parent_region()
    while region is not None:
        parent = region.parent
        if isinstance(parent, WarpSpecializeOp) and region is not parent.default:
            return parent
        region = parent.parent_region() if parent is not None else None
    return None


OPS = [WarpSpecializeOp, WarpYieldOp, WarpReturnOp]

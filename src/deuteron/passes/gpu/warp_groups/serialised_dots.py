"""Whether the assembler has no registers for dots by wgmma, so that it waits for each of their instructions.

    %a = tt.load ... of 64 registers of a thread
    ...                                              in all 610 registers live, of 255
    %d = "ttng.warp_group_dot"(%m, %n, %c)           (C7512) wgmma.mma_async instructions are serialized

The sums of a dot are neighbours among the registers of a thread for as long as it runs, and so are its operands there:
little can be spilled around it. ptxas tries, which takes it seven seconds for a kernel of 5,000 lines, and then waits
for every instruction. mma.sync has four sums, and its dots may be in loops over slices. Where they are not, as many
registers are filled, and it spills more: eight dots beside five tiles, of which 2.9 times the registers live with wgmma
and 3.6 times with mma.sync, take 240 and 370 us on an H200.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.slices.live_tiles import live_registers_at, live_registers_in

# Times the registers of a thread that tiles fill at a dot which is waited for at once, where ops of its block give them
# one another. Of a kernel of linear attention ptxas waits for all instructions with 1.1, 1.6 and 2.4 times as many. By
# mma.sync it spills three times as much with 1.6, and a sixth with 2.4, where its tiles are in loops over slices and
# fill the registers 1.4 times.
CROWDED = 2


def are_serialised(module: ModuleOp, config: GPUConfig) -> bool:
    """Of what passes have made of a module: whether so many tiles live at one of its dots."""
    return config.machine.wgmma is not None and any(_are_crowded(func, config) for func in functions_in(module))


def leaves_registers(module: ModuleOp, config: GPUConfig) -> bool:
    """Whether passes have made less of a module than that."""
    most = CROWDED * config.registers_per_thread
    return all(max(live_registers_at(func).values(), default=0) <= most for func in functions_in(module))


def without_wgmma(config: GPUConfig) -> GPUConfig:
    return replace(config, machine=replace(config.machine, wgmma=None))


def _are_crowded(func: FuncOp, config: GPUConfig) -> bool:
    """Those in flight leave room: `overlap-wgmma` looks at that."""
    blocks: dict[Block, list[WarpGroupDotOp]] = {}
    for dot in nested_ops(func, WarpGroupDotOp):
        if not dot.is_async.value.data:
            blocks.setdefault(dot.parent, []).append(dot)
    most = CROWDED * config.registers_per_thread
    return any(live[dot] > most for block in blocks if (live := live_registers_in(block)) for dot in blocks[block])

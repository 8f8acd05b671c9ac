"""Fewer stages, where shared memory has no room for what loops keep there of as many as were asked for.

    num_stages=3: 240 KB of 227    ->    num_stages=2: 176 KB, and a remark on the function
    num_stages=1: 256 KB           ->    operands of all dots in registers, and remarks on the dots

What else than its rings a kernel needs is known in the end alone, so that all passes run once more: not for numbers of
stages with which the slots that the rings lose are too few, but for one, with which loads have no rings. Where nothing
fits the first stays, which is an error when it is lowered: autotuners count on it. They run once more without wgmma,
too, where tiles fill so many registers that [its dots](warp_groups/serialised_dots.py) would be waited for one by one,
which counts if tiles fill fewer then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from deuteron.analysis.shared_memory.scratch import scratch_bytes
from deuteron.ir.nested import nested_ops
from deuteron.ir.remarks import Kind, remark
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import functions_in
from deuteron.ir.ttg.memdesc_index import num_buffers
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.types import i32
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import TOTAL, total_of
from deuteron.passes.gpu.rings.buffered_loads import STAGES_HINT, stages_of
from deuteron.passes.gpu.warp_groups.serialised_dots import are_serialised, leaves_registers, without_wgmma


def with_room(module: ModuleOp, config: GPUConfig, made_for: Callable[[GPUConfig, ModuleOp], ModuleOp]) -> ModuleOp:
    """What passes make of a module, with the most stages with which it fits."""
    most = max((stages_of(loop, config.num_stages) for loop in nested_ops(module, scf.ForOp)), default=1)
    has_dots = bool(nested_ops(module, DotOp))
    kept = module.clone() if most > 1 or has_dots else module
    first = made_for(config, module)
    if are_serialised(first, config):
        by_mma = without_wgmma(config)
        made = made_for(by_mma, kept.clone())
        if leaves_registers(made, config):
            config, first = by_mma, made
            _tell_dots(first, "tiles fill so many registers that its instructions would be waited for one by one")
    if _fits(first, config):
        return first
    for num_stages in range(most - 1, 0, -1):
        if num_stages > 1 and _least_bytes(first, num_stages) > config.machine.shared.max_bytes:
            continue
        made = made_for(_with_fewer(config, num_stages), _with_stages(kept, num_stages))
        if _fits(made, config):
            _tell(made, most, num_stages)
            return made
    if has_dots:
        made = made_for(_without_operands(_with_fewer(config, 1)), _with_stages(kept, 1))
        if _fits(made, config):
            if config.machine.wgmma is not None:
                _tell_dots(made, "shared memory has no room for its operands beside what else the kernel needs")
            return made
    return first


def _with_fewer(config: GPUConfig, num_stages: int) -> GPUConfig:
    return replace(config, num_stages=min(num_stages, config.num_stages))


def _without_operands(config: GPUConfig) -> GPUConfig:
    machine = config.machine
    return replace(config, machine=replace(machine, shared=replace(machine.shared, for_operands=False)))


def _fits(module: ModuleOp, config: GPUConfig) -> bool:
    """Of passes without the one that places what is in shared memory nothing is known."""
    return TOTAL not in module.attributes or total_of(module) <= config.machine.shared.max_bytes


def _least_bytes(module: ModuleOp, num_stages: int) -> int:
    """What a module would take at least with so many stages: a ring of more slots would keep one fewer than these."""
    allocs = nested_ops(module, LocalAllocOp)
    return total_of(module) - sum(
        scratch_bytes(alloc) // count * max(0, count - num_stages + 1)
        for alloc in allocs
        if (count := num_buffers(alloc.result.type)) > 1
    )


def _with_stages(module: ModuleOp, num_stages: int) -> ModuleOp:
    """A copy in which no loop is asked to have more."""
    copy = module.clone()
    for loop in nested_ops(copy, scf.ForOp):
        if STAGES_HINT in loop.attributes:
            loop.attributes[STAGES_HINT] = IntegerAttr(min(stages_of(loop, num_stages), num_stages), i32)
    return copy


def _tell(module: ModuleOp, asked: int, num_stages: int) -> None:
    reason = f"shared memory has no room for {asked} stages of loops, beside what else the kernel needs"
    for func in functions_in(module):
        remark(func, Kind.FEWER_STAGES, reason, num_stages=num_stages)


def _tell_dots(module: ModuleOp, reason: str) -> None:
    """It replaces what else each dot was told of wgmma."""
    for dot in nested_ops(module, DotOp):
        remark(dot, Kind.NO_WGMMA, reason)

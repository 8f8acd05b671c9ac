"""Operands of wgmma that threads compute in the registers from which it reads them: the first ones only.

    %m = "ttg.local_alloc"(%w)                       words in shared memory, as they were loaded
    for each step along K of %steps:
      %x = arith.sitofp (local_load of a part of %m)
      %c = "ttng.warp_group_dot"(%x, part of %n, %c)

In steps, so that tensor cores multiply one while threads compute the next.
"""

from __future__ import annotations

from math import ceil

from xdsl.ir import SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import byte_width_of, num_elements_of, shape_of
from deuteron.layout.tensor_box import CHUNK_BYTES
from deuteron.layout.wgmma import WARPGROUP, M
from deuteron.machine.gpu import REGISTER_BYTES, GPUConfig
from deuteron.passes.gpu.layouts.anchors import contiguous_order
from deuteron.passes.gpu.layouts.computed_operands import ComputedOperand, k_axis_of

# Of a thread's registers, for the sums and the operand: what addresses, masks and words that are converted leave.
TILES_SHARE = 3 / 4
# More would be more fences and waits than they hide. Not measured.
MOST_STEPS = 4
STEP_BYTES = 2 * CHUNK_BYTES  # of K, that an instruction takes


def fast_axis(load: LoadOp | DescriptorLoadOp, info: AxisInfoAnalysis) -> int:
    """The dimension, of the last two, in which what is loaded is contiguous."""
    rank = len(shape_of(load.result.type))
    if isinstance(load, DescriptorLoadOp):
        return rank - 1
    order = contiguous_order(info.of(load.ptr), shape_of(load.result.type))
    return next(axis for axis in order if axis >= rank - 2)


def is_read_well(dot: DotOp, index: int, computed: ComputedOperand, info: AxisInfoAnalysis) -> bool:
    """Whether threads read more than single bytes that are not neighbours in memory."""
    return all(
        not isinstance(load, LoadOp | DescriptorLoadOp)
        or byte_width_of(load.result.type) > 1
        or k_axis_of(dot, index, load) == fast_axis(load, info)
        for load in computed.loads
    )


def in_registers(dot: DotOp, index: int, info: AxisInfoAnalysis, config: GPUConfig) -> ComputedOperand | None:
    """How an operand is computed, if threads may do that in the registers from which wgmma reads its first one."""
    computed, shape = ComputedOperand.of(dot, index), shape_of(dot.result.type)
    if computed is None or not computed.is_only_for(dot) or not is_read_well(dot, index, computed, info):
        return None
    return computed if _fits(dot.operands[index], shape if index == 0 else shape[::-1], config) else None


def _fits(operand: SSAValue, shape: tuple[int, int], config: GPUConfig) -> bool:
    """Whether each warp has rows of its own, and threads room for their part of an operand and of sums of a shape."""
    if shape[0] * WARPGROUP < M * config.num_warps:
        return False
    size = num_elements_of(operand.type) * byte_width_of(operand.type) / REGISTER_BYTES + shape[0] * shape[1]
    return size / config.num_threads <= ceil(TILES_SHARE * config.registers_per_thread)


def loads_in_words(operand: SSAValue, computed: ComputedOperand) -> float:
    """What shared memory gives for the loads of an operand, in bytes that it could give meanwhile: a thread has two
    neighbours of 16 bits in each register, so that it reads two elements at once.
    """
    lanes = num_elements_of(operand.type) * byte_width_of(operand.type) / REGISTER_BYTES
    return lanes * REGISTER_BYTES * len(computed.loads)


def steps_along_k(operand: SSAValue) -> int:
    """In how many steps an operand is multiplied: one instruction each, or more where there would be too many."""
    depth = shape_of(operand.type)[1]
    return max(min(depth * byte_width_of(operand.type) // STEP_BYTES, MOST_STEPS), 1)

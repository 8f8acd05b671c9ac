"""Loads that each thread does which needs what is loaded, instead of a few threads that tell the others.

    row = tl.load(rows + i // 64)                of 1024 elements, from 16 addresses: one load a thread, in any layout
    x = tl.load(table + row * 64 + i % 64)

They are at few addresses, of what the kernel does not write: in loops of dots by wgmma, or by mma.sync if these do not
read them, or of which only addresses and masks are made, such as numbers of rows, by few loads one after the other. A
conversion would go through shared memory, with barriers that keep warpgroups in step and that copies ahead would wait
for. Where they would fill a thread's registers they stay.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.analysis.aliasing.written_arguments import read_by, written_arguments
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.atomic import AtomicOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.shape import ExpandDimsOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import num_elements_of
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.dot_instructions import uses_mma

MEMORY_OPS = LoadOp | StoreOp | AtomicOp
# Loads that follow one whose threads each load what they need: a binary search of 32 would be done by 8 threads for
# every row of a tile of 16 columns; tables of pages take one or two.
MOST_FOLLOWING = 2


class RepeatedLoads:
    """Which loads of a function are done so."""

    def __init__(
        self, func: FuncOp, info: AxisInfoAnalysis, config: GPUConfig, fed_to_dots: Collection[SSAValue]
    ) -> None:
        self._info, self._config, self._fed_to_dots = info, config, fed_to_dots
        self._written = written_arguments(func)
        self._addresses = _addresses_only(func)

    def are_right(self, load: LoadOp) -> bool:
        """Whether a load may be done several times: at few addresses, where nothing changes meanwhile. What other
        programs store one of the loads may see, and another one not.
        """
        if load.is_volatile.value.data or read_by(load).shares(self._written):
            return False
        num_addresses = num_elements_of(load.result.type) // prod(self._info.of(load.ptr).constancy)
        return num_addresses <= self._config.num_threads

    def pay(self, load: LoadOp) -> bool:
        """Whether it is better to, where its addresses are computed wherever they are needed."""
        if not self.are_right(load):
            return False
        loop = load.parent_op()
        ops = list(loop.body.block.ops) if isinstance(loop, scf.ForOp) else []
        if any(isinstance(one, WarpGroupDotOp) for one in ops):
            is_copied = any(isinstance(use.operation, LocalAllocOp) for use in load.result.uses)
            return not is_copied and not self._has_many_addresses(load)
        by_mma = any(isinstance(one, DotOp) and uses_mma(one, self._config.machine) for one in ops)
        is_beside_dots = by_mma and load.result not in self._fed_to_dots and not self._has_many_addresses(load)
        return is_beside_dots or load.result in self._addresses

    def _has_many_addresses(self, load: LoadOp) -> bool:
        """Whether a thread would hold many: of a row for all rows of a dot by wgmma it needs a quarter, neighbours
        by one address and distances. That they are many where a warp has fewer lanes is not measured.
        """
        users = (use.operation for use in load.result.uses)
        is_row = any(isinstance(user, ExpandDimsOp) and not user.axis.value.data for user in users)
        is_scattered = max(self._info.of(load.ptr).contiguity) == 1
        return is_row and is_scattered and num_elements_of(load.result.type) > self._config.machine.warp_size


def _addresses_only(func: FuncOp) -> set[SSAValue]:
    """The values of which nothing but addresses and masks is made, through ops that are made anew wherever needed, and
    not many loads one after the other: from the last op backwards, so that each is looked at once.
    """
    addresses: set[SSAValue] = set()
    others: set[SSAValue] = set()
    following: dict[SSAValue, int] = {}  # such loads, one after the other, whose addresses are made of a value
    for op in reversed(nested_ops(func)):
        made_of, loads = op.operands, 0
        if isinstance(op, MEMORY_OPS):
            made_of = {operand for operand in (op.operands[0], getattr(op, "mask", None)) if operand is not None}
            others.update(operand for operand in op.operands if operand not in made_of)
            addresses.update(made_of)
            if isinstance(op, LoadOp) and op.result in addresses and op.result not in others:
                loads = 1 + following[op.result]
        elif not is_flexible(op) or op.results[0] in others:
            others.update(op.operands)
            continue
        elif op.results[0] in addresses:
            addresses.update(made_of)
            loads = following.get(op.results[0], 0)
        following.update({operand: max(loads, following.get(operand, 0)) for operand in made_of})
    return {value for value in addresses - others if following[value] <= MOST_FOLLOWING}

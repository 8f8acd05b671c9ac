"""Puts the operands of dots into shared memory, in the layout that the instruction reads.

    %d = "tt.dot"(%a, %b, %c)                      %m = "ttg.local_alloc"(%a)
                                            ->     %n = "ttg.local_alloc"(%b)
                                        sm_90      %d = "ttng.warp_group_dot"(%m, %n, %c)
                                       others      %d = "tt.dot"(local_load(%m), local_load(%n), %c)

What an operand of mma.sync, or the first one of wgmma, is computed of goes there instead of it, where that is loaded
for nothing else: bytes that become f16, packed elements. By wgmma such a dot is several, in steps along K
(register_operands.py). A transposition before it becomes one of the descriptor: nothing moves. What other dots give
stays in registers, except b of wgmma. Elements are neighbours along the dimension in which they are so in global
memory, where the instruction can read that. An operand that is made outside of the dot's block is put there where it
is made; one that is computed, and that dots of one branch alone read, in that branch: on the other side nothing is
stored, and operands of several branches have the same place.

Threads that multiply themselves read slices along K, where whole operands would fill the registers:

    %d = "tt.dot"(%a, %b, %c)      ->      %d = "ttg.sliced_dot"(%m, %n, %c) <{depth = 4 : i32, ...}>

Runs before tiles have layouts: those of descriptors do not depend on the warps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import TransOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr
from deuteron.ir.ttg.memdesc_subslice import MemDescSubsliceOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttg.views import MemDescTransOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import byte_width_of, element_type_of, num_bytes_of, shape_of
from deuteron.layout.linear import REGISTER, LinearLayout
from deuteron.layout.shared import MAX_SPAN, SWIZZLE_ALIGNMENT, mma_shared
from deuteron.layout.wgmma import SPANS, M
from deuteron.machine.gpu import REGISTER_BYTES, GPUConfig
from deuteron.passes.gpu.dot_instructions import has_room, must_be_k_major, uses_mma, uses_wgmma, warp_group_warps
from deuteron.passes.gpu.layouts.anchors import dot_layouts
from deuteron.passes.gpu.layouts.computed_operands import ComputedOperand, k_axis_of
from deuteron.passes.gpu.operands.joins import select_joined
from deuteron.passes.gpu.operands.origins import is_from_dot, load_of
from deuteron.passes.gpu.operands.parts import Parts
from deuteron.passes.gpu.operands.register_operands import fast_axis, in_registers, is_read_well, steps_along_k
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase, replace

Order = tuple[int, ...]
# Of a thread's registers, for operands and sums of multiply-adds; with many sums, so many for operands all the same.
# Not measured; that nothing spills is tested (tests/backend/cuda/test_lower_dot.py).
REGISTER_SHARE, MIN_OPERAND_SHARE = 5 / 8, 1 / 4


@dataclass(frozen=True)
class PlaceDotOperands(Optimisation):
    """Makes dots read shared memory."""

    name = "place-dot-operands"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if dots := nested_ops(func, DotOp):
                rewrite = _Rewrite(AxisInfoAnalysis(func), self.config)
                for dot in dots:
                    rewrite.dot(dot)
                rewrite.store_in_branches()


class _Rewrite:
    """What is in shared memory already is used again."""

    def __init__(self, info: AxisInfoAnalysis, config: GPUConfig):
        self._info = info
        self._config = config
        self._allocs: dict[tuple, SSAValue] = {}

    def dot(self, op: DotOp) -> None:
        """By the instruction that multiplies; operands stay in registers where shared memory has no room."""
        machine = self._config.machine
        if uses_wgmma(op, self._config):
            self.to_warp_group(op)
        elif has_room(op, machine):
            rewrite = self.to_local_loads if uses_mma(op, machine) else self.to_slices
            rewrite(op)

    def store_in_branches(self) -> None:
        """Nothing that is loaded: copies that run ahead are made where a loop loads."""
        for descriptor in self._allocs.values():
            alloc = descriptor.owner
            if not isinstance(alloc.src.owner, LoadOp | DescriptorLoadOp):
                while (first := _first_in_branch(alloc)) is not None:
                    alloc.detach()
                    first.parent.insert_op_before(alloc, first)

    def to_warp_group(self, op: DotOp) -> None:
        """Steps along K where a is computed in registers; else one dot."""
        columns = warp_group_warps(shape_of(op.result.type), self._config.num_warps)[1]
        computed = in_registers(op, 0, self._info, self._config)
        if computed is not None:
            self._place_loads(computed)
        a = op.a if computed is not None or is_from_dot(op.a) else self._matrix(op, op.a, 1, M)
        b = self._matrix(op, op.b, 0, shape_of(op.b.type)[1] // columns)
        precision = op.input_precision.value.data, op.max_num_imprecise_acc.value.data
        builder, sums = Builder.before(op), op.c
        for part_a, part_b in _steps(builder, a, b, computed):
            sums = builder.value(WarpGroupDotOp(part_a, part_b, sums, *precision))
        replace(op, [sums])
        if part_a is not a:
            _erase_unused(a)

    def to_local_loads(self, op: DotOp) -> None:
        """Both operands are stored before one is loaded, so that threads wait once. What an operand is computed of is
        stored instead, where that is loaded: it is computed in the registers from which the dot reads it.
        """
        loaded = [index for index in range(2) if not is_from_dot(op.operands[index])]
        computed = {index: one for index in loaded if (one := self._computed(op, index)) is not None}
        self._place_loads(*computed.values())
        loaded = [index for index in loaded if index not in computed]
        reads_words = computed or byte_width_of(op.a.type) > REGISTER_BYTES
        place = self._matrix_of_words if reads_words else self._tile
        placed = {index: place(op, op.operands[index]) for index in loaded}
        for index, descriptor in placed.items():
            op.operands[index] = Builder.before(op).value(LocalLoadOp(descriptor, op.operands[index].type))

    def _computed(self, op: DotOp, index: int) -> ComputedOperand | None:
        """None as well where threads would read single bytes that are not neighbours in memory."""
        one = ComputedOperand.of(op, index)
        return one if one is not None and is_read_well(op, index, one, self._info) else None

    def _place_loads(self, *computed: ComputedOperand) -> None:
        """Of both operands at once: they may be computed of the same."""
        select_joined(dict.fromkeys(op for one in computed for op in one.ops))
        for load in dict.fromkeys(load for one in computed for load in one.loads):
            if isinstance(load, LoadOp):
                b, uses = Builder.after(load), list(load.result.uses)
                layout = self._word_layout(load.result)
                stored = b.value(LocalAllocOp(_type_in_memory(load.result, layout), load.result))
                placed = b.value(LocalLoadOp(stored, load.result.type))
                for use in uses:
                    use.operation.operands[use.index] = placed

    def to_slices(self, op: DotOp) -> None:
        size = _slice_along_k(op, self._config)
        if size < shape_of(op.a.type)[-1]:
            a, b = (self._tile(op, value) for value in (op.a, op.b))
            precision = InputPrecision(op.input_precision.value.data)
            replace(op, [Builder.before(op).value(SlicedDotOp(a, b, op.c, precision, size))])

    def _matrix_of_words(self, op: DotOp, value: SSAValue) -> SSAValue:
        """A descriptor from which threads read what mma.sync takes: more than 4 bytes of a row."""
        root, orders = _untransposed(value)
        return self._descriptor(op, root, orders, self._word_layout(root))

    def _word_layout(self, root: SSAValue) -> LinearLayout:
        """Threads may read more than 16 bytes of a row at once; TMA knows one pattern only."""
        reverse = not isinstance(load_of(root), DescriptorLoadOp)
        return mma_shared(shape_of(root.type), self._fast_axis(root), byte_width_of(root.type), reverse=reverse)

    def _tile(self, op: DotOp, value: SSAValue) -> SSAValue:
        """A descriptor whose elements are neighbours as in global memory."""
        root, orders = _untransposed(value)
        return self._descriptor(op, root, orders, self._plain_layout(root))

    def _plain_layout(self, root: SSAValue) -> LinearLayout:
        return mma_shared(shape_of(root.type), self._fast_axis(root), byte_width_of(root.type))

    def _matrix(self, op: DotOp, value: SSAValue, k_axis: int, part: int) -> SSAValue:
        """A descriptor that wgmma reads, of which one instruction takes `part` rows (of a) or columns (of b)."""
        root, orders = _untransposed(value)
        for order in reversed(orders):
            k_axis = order[k_axis]
        size, axis = byte_width_of(root.type), self._fast_axis(root)
        if load_of(root) is None and self._is_along_k(op, 0 if value is op.a else 1):
            axis = k_axis
        if axis != k_axis and (must_be_k_major(root.type) or part * size < min(SPANS)):
            axis = k_axis
        span = MAX_SPAN if axis == k_axis else min(MAX_SPAN, part * size)
        return self._descriptor(op, root, orders, mma_shared(shape_of(root.type), axis, size, span))

    def _is_along_k(self, op: DotOp, index: int) -> bool:
        """Whether most of what an operand is computed of has its neighbours in memory along K."""
        computed = ComputedOperand.of(op, index)
        loads = [load for load in computed.loads if isinstance(load, LoadOp)] if computed is not None else []
        most = max(loads, key=lambda load: num_bytes_of(load.result.type), default=None)
        return most is not None and k_axis_of(op, index, most) == fast_axis(most, self._info)

    def _descriptor(self, op: DotOp, root: SSAValue, orders: list[Order], layout: LinearLayout) -> SSAValue:
        """A tile in shared memory, transposed in these orders. It lives in the block in which the tile is made."""
        key = root, layout
        if key not in self._allocs:
            self._allocs[key] = _builder_for(op, root).value(LocalAllocOp(_type_in_memory(root, layout), root))
        descriptor = self._allocs[key]
        for order in orders:
            descriptor = Builder.before(op).value(MemDescTransOp(descriptor, order))
        return descriptor

    def _fast_axis(self, root: SSAValue) -> int:
        """The dimension, of the last two, in which what a tile was loaded from is contiguous; else the last."""
        load = load_of(root)
        return len(shape_of(root.type)) - 1 if load is None else fast_axis(load, self._info)


def _type_in_memory(value: SSAValue, layout: LinearLayout) -> MemDescType:
    encoding = SharedLinearEncodingAttr(layout, SWIZZLE_ALIGNMENT)
    return MemDescType(TensorType(element_type_of(value.type), shape_of(value.type), encoding))


def _steps(
    b: Builder, a: SSAValue, matrix: SSAValue, computed: ComputedOperand | None
) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Both operands in parts along K, where a is computed; each is computed when it is asked for."""
    count = steps_along_k(a) if computed is not None else 1
    parts = Parts(b, count)
    if count == 1 or not parts.can_divide(a, 1):
        yield a, matrix
        return
    depth, columns = shape_of(matrix.type.tile)
    for index in range(count):
        part = MemDescSubsliceOp(matrix, (index * depth // count, 0), (depth // count, columns))
        yield parts.of(a, 1, index), b.value(part)


def _erase_unused(value: SSAValue) -> None:
    """Erase what gives a value that nobody uses, and what only that used, which may be met twice: `x * x`."""
    is_there = isinstance(value, OpResult) and value.op.parent is not None
    if is_there and value.first_use is None and is_flexible(value.op):
        operands = list(value.op.operands)
        erase(value.op)
        for operand in operands:
            _erase_unused(operand)


def _slice_along_k(op: DotOp, config: GPUConfig) -> int:
    """How much of K leaves the registers of a thread room for the sums: all of it, or a power of two."""
    *layouts, accumulator = dot_layouts(op, config)
    operands = sum(_registers(value, layout) for value, layout in zip((op.a, op.b), layouts, strict=True))
    registers = config.machine.registers.max_per_thread
    most, least = ceil(REGISTER_SHARE * registers), ceil(MIN_OPERAND_SHARE * registers)
    room = max(most - _registers(op.c, accumulator), least)
    size = shape_of(op.a.type)[-1]
    while operands > room and size > 1:
        size, operands = size // 2, operands // 2
    return size


def _registers(value: SSAValue, layout: LinearLayout) -> int:
    return layout.in_size(REGISTER) * max(byte_width_of(value.type) // 4, 1)


def _untransposed(value: SSAValue) -> tuple[SSAValue, list[Order]]:
    """What a value is the transposition of, and by which orders, the first first. Batches stay where they are."""
    orders: list[Order] = []
    while isinstance(value, OpResult) and isinstance(value.op, TransOp):
        order = tuple(value.op.permutation)
        if len(order) > 2 and order[0] != 0:
            break
        orders.insert(0, order)
        value = value.op.src
    return value, orders


def _first_in_branch(alloc: LocalAllocOp) -> Operation | None:
    """The first op of a branch that reads what is put into shared memory before it, if nothing else does."""
    users = [use.operation for use in alloc.result.uses]
    branches = {alloc.parent.find_ancestor_op_in_block(user) for user in users}
    branch = branches.pop() if len(branches) == 1 else None
    if not isinstance(branch, scf.IfOp):
        return None
    for block in (region.block for region in branch.regions if region.blocks):
        readers = {block.find_ancestor_op_in_block(user) for user in users}
        if None not in readers:
            return next(op for op in block.ops if op in readers)
    return None


def _builder_for(op: DotOp, root: SSAValue) -> Builder:
    """Before the dot, or where a value of an outer block is made."""
    if isinstance(root, OpResult):
        is_near = root.op.parent is op.parent
        return Builder.before(op) if is_near else Builder.after(root.op)
    is_near = root.block is op.parent
    return Builder.before(op) if is_near else Builder(InsertPoint.at_start(root.block), op.location)

"""Computes tiles of which a thread has very many elements slice by slice, where a kernel would be too long otherwise.

    %x = tt.load %p                       scf.for %i = 0 to 16 {
    %y = math.exp %x                        %x = tt.load of slice %i of %p
    tt.store %q, %y             ->          %y = math.exp %x
    %s = tt.reduce %y                       tt.store ...
                                            ttg.private_store of slice %i of %s
                                          }
                                          %s = ttg.private_load

ptxas takes 0.15 to 0.3 ms for each instruction where values do not fit into registers, and the more memory the more
there are: 64x64x64 elements in four warps are 2,048 in a thread. Ranges and addresses are computed anew for each slice;
other tiles that the loop takes from before it, or leaves behind, are in memory of the thread, to which they would be
spilled; what a loop carries from one iteration to the next stays there. A kernel of fewer instructions stays as it is,
and so does what is done with fewer registers, and one whose loops multiply on tensor cores, unless it is very long or
its tiles spill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.hints import hints_of_part
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.shape import MakeRangeOp, SplatOp
from deuteron.ir.ttg.layout import MemDescType, layout_of, with_layout
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateStoreOp, PrivateType, slice_type, view_of
from deuteron.ir.ttg.shared import LocalLoadOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import i32, is_tile, shape_of
from deuteron.layout.slices import sliceable_bits
from deuteron.machine.gpu import USUAL_REGISTERS
from deuteron.passes.gpu.slices import costs
from deuteron.passes.gpu.slices.block_groups import BlockGroups
from deuteron.passes.gpu.slices.carry_in_memory import carry_in_memory
from deuteron.passes.gpu.slices.costs import bits_in_thread, cost_beside_dots, cost_of_all, matrix_instructions
from deuteron.passes.gpu.slices.give_in_memory import give_in_memory
from deuteron.passes.gpu.slices.groups import MANY, Group, is_made_anew
from deuteron.passes.gpu.slices.live_tiles import live_registers
from deuteron.passes.gpu.slices.loop_dots import loop_dots
from deuteron.passes.gpu.slices.move_accesses import load_late, store_early
from deuteron.passes.gpu.slices.rolled_loops import insert_loop, slice_body
from deuteron.passes.gpu.slices.shared_slices import holds_until, load_slice, slice_of, store_after_alloc
from deuteron.passes.gpu.slices.slice_axes import SUMMED, Axis, axes_of
from deuteron.passes.gpu.slices.sums import first_sums, next_sums, whole_sums
from deuteron.passes.gpu.slices.whole_tiles import load_whole, make_no_copies, stays_until, store_nothing_twice
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import clone_on, erase, erase_unused
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode

# Instructions of a kernel: those that take ptxas two seconds where they spill. Of a group: what a loop costs besides;
# of one with a dot, which is of tiles that spill, where each takes longer.
LEAST_COST, LEAST_IN_GROUP, LEAST_WITH_DOT = 8000, 1000, 500
# So many times as much where loops multiply on tensor cores what fits: sums and operands go through memory between dots
# and slices, in each iteration. Attention with capped scores, of 11,218, took 1,056 us so, and 588 without; a backward
# pass with 256 columns, of 16,755, 882 and 788. ptxas takes 0.2 to 0.7 s longer.
TIMES_BESIDE_DOTS = 2.5
# Instructions that are left of a kernel which takes five seconds and more, since it has too many tiles: of a thread's
# registers those of a tile of a quarter are in memory as well, loops that save little are made, what goes from there
# to shared memory goes slice by slice, and tiles are stored early and loaded late. Fewer take as long where tiles fill
# the registers 2.5 times at once: of 12,800 instructions ptxas makes 34,900, half of them for what it spills.
CROWDED_COST, LEAST_IN_CROWD, SHARE_IN_CROWD = 16000, 100, 1 / 4
SPILLING_COST, SPILLING_REGISTERS = 12000, 5 * USUAL_REGISTERS // 2


@dataclass(frozen=True)
class SliceTiles(Optimisation):
    """Loops over slices of tiles that fill the registers of a thread many times."""

    name = "slice-tiles"

    least_cost: int = LEAST_COST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        crowded: list[FuncOp] = []
        is_carried = False
        for func in functions_in(op):
            if self._is_long(func):
                is_carried |= self._block(func.body.block, AxisInfoAnalysis(func))
                if _is_crowded(func):
                    is_carried |= self._crowd(func)
                    crowded.append(func)
                make_no_copies(func)
                loop_dots(func)
        if is_carried:
            EliminateDeadCode().apply(ctx, op)
        for func in crowded:
            store_early(func)
            load_late(func)

    def _is_long(self, func: FuncOp) -> bool:
        cost = cost_of_all(func)
        if self.least_cost <= cost < self.least_cost * TIMES_BESIDE_DOTS:
            return not _multiplies_in_loops(func) or live_registers(func) >= SPILLING_REGISTERS
        return cost >= self.least_cost

    def _crowd(self, func: FuncOp) -> bool:
        """As `_block`."""
        store_after_alloc(func, MANY)
        infos = AxisInfoAnalysis(func)
        is_carried = self._block(func.body.block, infos, is_crowded=True)
        # What loops over slices have in memory, that were made after those in branches and loops were looked at.
        return is_carried | _keep_in_memory(func.body.block, infos, costs.REGISTER_BITS * SHARE_IN_CROWD)

    def _block(self, block: Block, infos: AxisInfoAnalysis, is_crowded: bool = False) -> bool:
        """Whether a loop does not need all that it carries any more, or a branch all that it gives."""
        held = costs.REGISTER_BITS * (SHARE_IN_CROWD if is_crowded else 1)
        is_carried = False
        for op in list(block.ops):
            for inner in _blocks_in(op):
                is_carried |= self._block(inner, infos, is_crowded)
            is_carried |= _keep_of(op, infos, held)
        if not is_crowded:
            self._slice_groups(block, infos, inf, is_crowded)
        # What is still left of tiles that no registers hold is in memory, whatever loops take from there.
        if is_crowded or _has_wider(block, held):
            self._slice_groups(block, infos, held, is_crowded)
        erase_unused(list(block.ops))
        return is_carried

    def _slice_groups(self, block: Block, infos: AxisInfoAnalysis, most_held: float, is_crowded: bool) -> None:
        groups = BlockGroups(block, most_held)
        while (group := groups.best()) and group.saved >= self._least_saved(group, is_crowded):
            loop = _Loop(group, infos)
            if group.slices_are_large:
                self._block(loop.body, infos, is_crowded)

    def _least_saved(self, group: Group, is_crowded: bool) -> int:
        usual = LEAST_WITH_DOT if group.has_dot else LEAST_IN_GROUP
        return min(LEAST_IN_CROWD if is_crowded else usual, self.least_cost)


def _keep_in_memory(block: Block, infos: AxisInfoAnalysis, held: float) -> bool:
    """As `SliceTiles._block`, without slices."""
    is_carried = False
    for op in list(block.ops):
        for inner in _blocks_in(op):
            is_carried |= _keep_in_memory(inner, infos, held)
        is_carried |= _keep_of(op, infos, held)
    erase_unused(list(block.ops))
    return is_carried


def _keep_of(op: Operation, infos: AxisInfoAnalysis, held: float) -> bool:
    if isinstance(op, scf.ForOp):
        return carry_in_memory(op, infos, held)
    return isinstance(op, scf.IfOp) and give_in_memory(op, infos, held)


def _blocks_in(op: Operation) -> list[Block]:
    """Those of loops and branches."""
    regions = op.regions if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp) else ()
    return [block for region in regions for block in region.blocks]


def _multiplies_in_loops(func: FuncOp) -> bool:
    """Whether tensor cores do, in any loop."""
    loops = (op for op in nested_ops(func) if isinstance(op, scf.ForOp | scf.WhileOp))
    return any(_is_by_tensor_cores(op) for loop in loops for op in nested_ops(loop))


def _is_by_tensor_cores(op: Operation) -> bool:
    return isinstance(op, WarpGroupDotOp) or (isinstance(op, DotOp) and matrix_instructions(op) > 0)


def _is_crowded(func: FuncOp) -> bool:
    cost = cost_beside_dots(func)
    return cost >= CROWDED_COST or cost >= SPILLING_COST and live_registers(func) >= SPILLING_REGISTERS


def _has_wider(block: Block, bits: float) -> bool:
    """Whether an op gives or takes a tile of more bits in a thread."""
    values = (value for op in block.ops for value in (*op.results, *op._operands))
    return any(is_tile(value.type) and bits_in_thread(value) > bits for value in values)


def _shared_out(values: Sequence[SSAValue], sums: dict[Operation, list[SSAValue]]) -> dict[Operation, list[SSAValue]]:
    """To each op as many values as it sums up."""
    remaining = iter(values)
    return {op: list(islice(remaining, len(inits))) for op, inits in sums.items()}


class _Loop:
    """Makes the loop of a group, where its last op is."""

    def __init__(self, group: Group, infos: AxisInfoAnalysis):
        self._group, self._count, self._infos = group, group.count(), infos
        group.rely_on_apart()
        last = group.ops[-1]
        self._before = Builder.before(last)
        self._slices: dict[tuple[SSAValue, Axis], SSAValue] = {}
        self._firsts: dict[tuple[SSAValue, Axis], SSAValue] = {}
        self._is_first = False
        self._memories: dict[tuple[SSAValue, int], SSAValue] = {}
        self._sums = {op: first_sums(self._before, op, self._count) for op in group.ops if group.gives_sums(op)}
        inits = [init for values in self._sums.values() for init in values]
        self.body = slice_body(*(init.type for init in inits))
        self._carried = _shared_out(self.body.args[1:], self._sums)
        self._inside = Builder.at_end(self.body, last.location)
        outputs = [(value, self._output(value)) for value in group.axes if self._is_stored(value)]
        for op in group.ops:
            self._emit(op)
        for value, memory in outputs:
            self._inside.insert(PrivateStoreOp(self._slices[value, group.axes[value]], memory, self._index))
        self._inside.insert(scf.YieldOp(*(value for values in self._carried.values() for value in values)))
        self._finish(insert_loop(self._before, self._count, self.body, inits), outputs)

    @property
    def _index(self) -> SSAValue:
        return self._inside.constant(0, i32) if self._is_first else self.body.args[0]

    def _is_stored(self, value: SSAValue) -> bool:
        """Whether its slices are needed after the loop."""
        if self._group.axes[value] == SUMMED:
            return False
        inside = set(self._group.ops)
        return any(use.operation not in inside for use in value.uses)

    def _output(self, value: SSAValue) -> SSAValue:
        return self._before.value(PrivateAllocOp(PrivateType(value.type, self._group.axes[value], self._count)))

    def _finish(self, loop: scf.ForOp, outputs: Sequence[tuple[SSAValue, SSAValue]]) -> None:
        after = self._before  # where the loop is now, and what follows it
        inside = set(self._group.ops)
        for op, totals in _shared_out(loop.results, self._sums).items():
            for result, total in zip(op.results, whole_sums(after, op, totals), strict=True):
                result.replace_all_uses_with(total)
        for value, memory in outputs:
            store_nothing_twice(after, value, memory)
            whole = load_whole(after, memory, value, self._infos)
            for use in [use for use in value.uses if use.operation not in inside]:
                use.operation.operands[use.index] = whole
        for op in reversed(self._group.ops):
            if all(result.first_use is None for result in op.results):
                erase(op)

    # -- slices ---

    def _slice(self, value: SSAValue, axis: Axis) -> SSAValue:
        """The part of a tile that belongs to the iteration."""
        if axis is None:
            return value
        if (value, axis) not in self._slices:
            if isinstance(value.type, MemDescType):
                self._slices[value, axis] = slice_of(self._inside, value, axis, self._count, self._index)
            elif is_made_anew(value, self._group.known) and self._has_slices(value.owner, axis):
                self._emit(value.owner, axis)
            else:
                self._slices[value, axis] = self._loaded(value, axis)
        return self._slices[value, axis]

    def _loaded(self, value: SSAValue, axis: int) -> SSAValue:
        """A slice of a tile that is not made in the loop: of what was loaded from shared memory, there."""
        load = value.owner
        if isinstance(load, LocalLoadOp) and holds_until(load, self._group.ops[-1]):
            return load_slice(self._inside, load, axis, self._count, self._index)
        return self._inside.value(PrivateLoadOp(self._input(value, axis), self._index))

    def _has_slices(self, op: Operation, axis: int) -> bool:
        """Whether the operands of an op have as many slices: a reshaped tile may have fewer in one dimension."""
        axes = axes_of(op, axis)
        if axes is None:
            return False
        cuts = ((value, cut) for value, cut in axes.items() if cut is not None)
        return all(1 << len(sliceable_bits(layout_of(value.type), cut)) >= self._count for value, cut in cuts)

    def _input(self, value: SSAValue, axis: int) -> SSAValue:
        """The memory of a tile that comes from before the loop, which may be there already."""
        type = PrivateType(value.type, axis, self._count)
        load = value.owner
        if isinstance(load, PrivateLoadOp) and stays_until(load, self._group.ops[-1]):
            return view_of(self._before, load.src, type, load.index)
        if (value, axis) not in self._memories:
            memory = self._before.value(PrivateAllocOp(type))
            self._before.insert(PrivateStoreOp(value, memory))
            self._memories[value, axis] = memory
        return self._memories[value, axis]

    def _emit(self, op: Operation, axis: Axis = None) -> None:
        """The op on slices; one that is not of the group is cut along `axis`."""
        axis = self._group.axes[op.results[0]] if axis is None and op.results else axis
        axes = self._store_axes(op) if axis is None else axes_of(op, axis)
        with self._inside.located(op.location):
            if isinstance(op, MakeRangeOp):
                self._slices[op.result, axis] = self._range(op)
            elif isinstance(op, arith.ConstantOp):
                value = op.results[0]
                type = slice_type(value.type, axis, self._count)
                self._slices[value, axis] = self._inside.constant(constant_value(value), type)
            else:
                self._clone(op, axes)

    def _store_axes(self, op: Operation) -> dict[SSAValue, Axis]:
        return axes_of(op, self._group.store_axes[op])

    def _clone(self, op: Operation, axes: dict[SSAValue, Axis]) -> None:
        operands = [self._slice(operand, axes.get(operand)) for operand in op.operands]
        if isinstance(op, GatherOp) and axes[op.result] == op.axis.value.data:
            operands = [operands[0], self._first_slice(op.indices, axes[op.result])]
        if op in self._sums:
            self._carried[op] = next_sums(self._inside, op, self._index, self._carried[op], operands)
            return
        clone = clone_on(op, operands)
        clone.location = op.location
        self._inside.insert(clone)
        for result, new in zip(op.results, list(clone.results), strict=True):
            type = slice_type(result.type, axes[result], self._count)
            made = Rewriter.replace_value_with_new_type(new, type)
            made.name_hint = result.name_hint
            clone.attributes = hints_of_part(op, axes[result], shape_of(type)[axes[result]])
            self._slices[result, axes[result]] = made

    def _first_slice(self, value: SSAValue, axis: int) -> SSAValue:
        """Of an index the slice number 0, in each iteration: places within a slice."""
        current, self._slices, self._is_first = self._slices, self._firsts, True
        first = self._slice(value, axis)
        self._firsts, self._slices, self._is_first = self._slices, current, False
        return first

    def _range(self, op: MakeRangeOp) -> SSAValue:
        """The range of the first slice, moved."""
        type = slice_type(op.result.type, 0, self._count)
        size, start = shape_of(type)[0], op.start.value.data
        first = self._inside.value(MakeRangeOp(start, start + size))
        first = Rewriter.replace_value_with_new_type(first, type)
        if self._is_first:
            return first
        moved = self._inside.value(arith.MuliOp(self._index, self._inside.constant(size, i32)))
        splat = self._inside.value(SplatOp(moved, shape_of(type)))
        splat = Rewriter.replace_value_with_new_type(splat, with_layout(splat.type, layout_of(type)))
        return self._inside.value(arith.AddiOp(first, splat))

"""The home layout of every tile: the layout that it has where it is computed, found forwards from the anchors.

A load is at home in its coalesced layout, one of which no elements are neighbours in memory where its addresses are
computed of others, a dot in its accumulator's, a reduction in a slice of its operand's, and an elementwise op where
its first operand with a home is, or, beside dots, the one that is where the result is stored, a gather where its
index is, or, if that comes from scalars alone, what it takes from. What comes from scalars alone has no home, nor do
loads that each thread does for itself (repeated_loads.py), but where it would be addresses that are converted. A value
carried by a loop is at home where the loop's body yields it, else where it enters, else where its users want it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from deuteron.analysis.addresses.index_bits import exchange_mask
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.forwarding import forwarded_to
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.debug import PrintOp
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp
from deuteron.ir.tt.map_elementwise import MapElementwiseOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import BroadcastOp, CatOp, JoinOp, ReshapeOp, SplitOp, TransOp
from deuteron.ir.ttg.inference import SHAPE_OPS, is_flexible, operand_layouts, result_layout
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.types import is_tile, num_elements_of, shape_of
from deuteron.layout.distributed import slice_axis, split_axis
from deuteron.layout.linear import OFFSET, REGISTER, LinearLayout, dim_names
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.layouts.anchors import (
    AnyDot,
    block_layout,
    default_layout,
    dot_layouts,
    memory_layout,
    reduced_layout,
    stored_layout,
)
from deuteron.passes.gpu.layouts.repeated_loads import MEMORY_OPS, RepeatedLoads
from deuteron.passes.gpu.rings.buffered_loads import fed_to_dots, has_dots

Layouts = list[LinearLayout | None]


class Homes:
    """Home layouts of the values of one function, and what the ops that are no shape ops need of their operands."""

    def __init__(
        self,
        func: FuncOp,
        info: AxisInfoAnalysis,
        config: GPUConfig,
        placed: Mapping[Operation, LinearLayout | None],
    ):
        """`placed` are loads and stores that have other layouts than coalesced ones; None: loads that have no home."""
        self._placed = placed
        self._info = info
        self._config = config
        self.fed_to_dots = fed_to_dots(func)
        self.num_stages = config.num_stages
        self._has_dots = has_dots(func)
        self.repeated_loads = RepeatedLoads(func, info, config, self.fed_to_dots)
        self._reduced, self._repeated = _reduced_axes(func), _repeated_axes(func)
        self._homes: dict[SSAValue, LinearLayout] = {}
        self._swept: dict[tuple[Operation, tuple[LinearLayout | None, ...]], Layouts] = {}  # by loop, and homes before
        self._dots: dict[AnyDot, Layouts] = {}
        self._sweep(func.body.block)

    def get(self, value: SSAValue) -> LinearLayout | None:
        return self._homes.get(value)

    def is_remade(self, op: Operation) -> bool:
        """Whether an op is made anew for each layout that is demanded of it."""
        if isinstance(op, LoadOp):
            return is_tile(op.result.type) and self.get(op.result) is None
        return is_flexible(op) and (isinstance(op, SHAPE_OPS) or self.get(op.results[0]) is None)

    def operands_of(self, op: Operation) -> Layouts:
        """The layout that an op needs each of its operands in; None for scalars."""
        return [layout if is_tile(o.type) else None for o, layout in zip(op.operands, self._needs(op), strict=True)]

    def _needs(self, op: Operation) -> Layouts:
        if isinstance(op, MEMORY_OPS):
            return [self._memory(op)] * len(op.operands)
        if isinstance(op, AnyDot):
            return list(self._of_dot(op))
        if isinstance(op, scf.ForOp):
            return [None, None, None, *self._of_all(op.body.block.args[1:])]
        if isinstance(op, scf.WhileOp):
            return self._of_all(op.before_region.block.args)
        if isinstance(op, scf.YieldOp):
            return self._of_all(_yield_targets(op))
        if isinstance(op, scf.ConditionOp):
            return [None, *self._of_all(op.parent_op().after_region.block.args)]
        if isinstance(op, SplitOp):
            return [_joined(self._homes[op.lhs])]
        if isinstance(op, LocalAllocOp) and op.src is not None:
            return [self.get(op.src) or stored_layout(op.result.type, self._config)]
        if isinstance(op, GatherOp):
            return [self._own(op.src), self._indices(op)]
        if isinstance(op, PrintOp):  # of several shapes
            return [self._own(operand) if is_tile(operand.type) else None for operand in op.operands]
        return [self._common(op)] * len(op.operands)

    def _of_dot(self, op: AnyDot) -> Layouts:
        if op not in self._dots:
            self._dots[op] = list(dot_layouts(op, self._config))
        return self._dots[op]

    def _own(self, value: SSAValue) -> LinearLayout:
        """The home of a tile, of what has none the layout that nothing decides."""
        return self.get(value) or default_layout(value.type, self._config)

    def _indices(self, op: GatherOp) -> LinearLayout:
        """Pairs of elements are exchanged where they are. An index that has no home is at home where it takes from."""
        shapes = shape_of(op.src.type), shape_of(op.indices.type)
        is_made_there = self.get(op.indices) is None and shapes[0] == shapes[1]
        return self._own(op.src if is_made_there or exchange_mask(op) is not None else op.indices)

    def _of_all(self, values: Sequence[SSAValue]) -> Layouts:
        return [self.get(value) for value in values]

    def _memory(self, op: Operation) -> LinearLayout | None:
        if not is_tile(op.operands[0].type):
            return None
        if op in self._placed:
            return self._placed[op]
        # What dots read may be copied into shared memory ahead: at least so many bytes at once.
        copied = isinstance(op, LoadOp) and op.result in self.fed_to_dots
        least = min(self._config.machine.async_copy_bytes, default=0) if copied else 0
        stored_along = _stored_along(op)
        is_copied = copied or stored_along is not None
        is_gathered = isinstance(op, LoadOp) and not is_copied and not op.is_volatile.value.data
        avoided = [axes.get(shape_of(op.operands[0].type), frozenset()) for axes in (self._repeated, self._reduced)]
        coalesced = memory_layout(op.operands[0], self._info, self._config, stored_along, least, is_gathered, avoided)
        return coalesced if is_copied else self._of_scattered(op.operands[0]) or coalesced

    def _of_scattered(self, pointer: SSAValue) -> LinearLayout | None:
        """Where addresses are that are computed of what was loaded, if no two are neighbours: no layout makes fewer
        accesses of them, and to exchange them would be to exchange 64 bits of each.
        """
        home = self.get(pointer)
        if home is None or max(self._info.of(pointer).contiguity) > 1:
            return None
        held = max(num_elements_of(pointer.type) // self._config.num_threads, 1)
        return home if home.in_size(REGISTER) <= held else None

    def _is_loaded_where_used(self, op: Operation) -> bool:
        """Asked where a load is swept: what gets a home, since its addresses have one by then, keeps it."""
        if not isinstance(op, LoadOp) or not is_tile(op.result.type):
            return False
        if op in self._placed:
            return self._placed[op] is None
        return not self._is_told_addresses(op) and self.repeated_loads.pay(op)

    def _is_told_addresses(self, load: LoadOp) -> bool:
        """Whether addresses would have to be exchanged instead of what is loaded. What a loop carries has a home in any
        case.
        """
        return self.get(load.ptr) is not None and not isinstance(load.ptr, BlockArgument)

    def _common(self, op: Operation) -> LinearLayout | None:
        """One layout for all operands: that of an elementwise result, else of the first operand that has a home."""
        if is_flexible(op) and self.get(op.results[0]) is not None:
            return self.get(op.results[0])
        tiles = [operand for operand in op.operands if is_tile(operand.type)]
        homes = [home for home in self._of_all(tiles) if home is not None]
        if homes or not tiles:
            return next(iter(homes), None)
        if isinstance(op, ReduceOp):
            return reduced_layout(tiles[0].type, op.axis.value.data, self._config)
        return default_layout(tiles[0].type, self._config)

    # -- the forward sweep ---

    def _sweep(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp | scf.WhileOp):
                self._sweep_loop(op)
            elif isinstance(op, scf.IfOp):
                self._sweep_if(op)
            elif op.results:
                self._settle(op.results, self._results(op))

    def _sweep_loop(self, loop: scf.ForOp | scf.WhileOp) -> None:
        """What comes of the same homes is remembered: each loop around it sweeps its body twice, and it would be swept
        as often as 2 to the power of their number.
        """
        tiles = _tiles_of(loop)
        before = loop, tuple(self._of_all(tiles))
        if before in self._swept:
            self._settle(tiles, self._swept[before])
            return
        if isinstance(loop, scf.ForOp):
            self._sweep_for(loop)
        else:
            self._sweep_while(loop)
        self._swept[before] = self._of_all(tiles)

    def _sweep_for(self, op: scf.ForOp) -> None:
        body = op.body.block
        self._sweep(body)
        for argument, start, next_value in zip(body.args[1:], op.iter_args, body.last_op.operands, strict=True):
            self._settle_carried(argument, [next_value, start])
        self._sweep(body)
        self._settle(op.res, self._of_all(body.args[1:]))

    def _settle_carried(self, argument: SSAValue, sources: Sequence[SSAValue]) -> None:
        if not is_tile(argument.type):
            return
        homes = [home for home in self._of_all(sources) if home is not None]
        home = homes[0] if homes else self._wanted_by_users(argument)
        self._homes[argument] = default_layout(argument.type, self._config) if home is None else home

    def _sweep_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        forwarded = before.last_op.operands[1:]
        self._sweep(before)
        self._settle(after.args, self._of_all(forwarded))
        self._sweep(after)
        for argument, start, next_value in zip(before.args, op.arguments, after.last_op.operands, strict=True):
            self._settle_carried(argument, [next_value, start])
        self._sweep(before)
        for argument, result, source in zip(after.args, op.res, forwarded, strict=True):
            self._settle_carried(argument, [source])
            self._settle([result], [self.get(argument)])
        self._sweep(after)

    def _sweep_if(self, op: scf.IfOp) -> None:
        blocks = [region.block for region in op.regions if region.blocks]
        for block in blocks:
            self._sweep(block)
        for index, result in enumerate(op.results):
            self._settle_carried(result, [block.last_op.operands[index] for block in blocks])

    def _settle(self, values: Sequence[SSAValue], homes: Layouts) -> None:
        for value, home in zip(values, homes, strict=True):
            if home is not None and is_tile(value.type):
                self._homes[value] = home

    def _results(self, op: Operation) -> Layouts:
        if is_flexible(op):
            return [self._flexible(op)]
        if isinstance(op, MEMORY_OPS):
            return [None if self._is_loaded_where_used(op) else self._memory(op)]
        if isinstance(op, DescriptorLoadOp):
            return [block_layout(op.result.type, self._config)]
        if isinstance(op, AnyDot):
            return [self._of_dot(op)[2]]
        if isinstance(op, ReduceOp):
            return [slice_axis(self._common(op), op.axis.value.data)] * len(op.results)
        if isinstance(op, ScanOp | MapElementwiseOp | ElementwiseInlineAsmOp):
            return [self._common(op)] * len(op.results)
        if isinstance(op, GatherOp):
            return [self._indices(op)]
        if isinstance(op, HistogramOp):
            return [default_layout(op.result.type, self._config)]
        if isinstance(op, JoinOp):
            return [_joined(self._common(op))]
        if isinstance(op, CatOp):
            return [self._common(op) * LinearLayout.identity(2, REGISTER, "dim0")]
        if isinstance(op, SplitOp):
            return [split_axis(self._common(op), len(self._common(op).shape) - 1)] * 2
        return [None] * len(op.results)

    def _flexible(self, op: Operation) -> LinearLayout | None:
        tiles = [operand for operand in op.operands if is_tile(operand.type)]
        homes = list(dict.fromkeys(home for home in self._of_all(tiles) if home is not None))
        if not homes or (isinstance(op, SHAPE_OPS) and not isinstance(op, (TransOp, ReshapeOp))):
            return None
        stored = self._stored_in(op.results[0]) if len(homes) > 1 and self._has_dots else None
        return result_layout(op, stored if stored in homes else homes[0])

    def _stored_in(self, value: SSAValue) -> LinearLayout | None:
        """The layout of the store for which alone a value is, or what elementwise ops make of it: there sums of dots
        are added to what is loaded, so that they are exchanged once, not what is loaded and the sum.
        """
        block = value.owner.parent
        while (use := value.get_user_of_unique_use()) is not None and use.parent is block:
            if isinstance(use, StoreOp):
                return self._memory(use) if value is use.value else None
            if not is_flexible(use) or isinstance(use, SHAPE_OPS):
                return None
            value = use.results[0]
        return None

    def _wanted_by_users(self, value: SSAValue) -> LinearLayout | None:
        """The layout in which the first memory access wants a value, what elementwise ops make of it, or what control
        flow makes it; or that of what they make of it and of others. What each thread loads for itself tells it.
        """
        seen, pending = {value}, [value]
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if isinstance(op, MEMORY_OPS):
                    where_used = self._where_used(op.result) if self._is_loaded_where_used(op) else None
                    return where_used or self._memory(op)
                fresh = [made for made in _made_from(use) if made not in seen]
                at_home = next((made for made in fresh if self.get(made) is not None), None)
                if at_home is not None:
                    return self.get(at_home)
                seen.update(fresh)
                pending.extend(fresh)
        return None

    def _where_used(self, value: SSAValue) -> LinearLayout | None:
        """The layout in which the first op at home needs a value that has no home itself."""
        seen: set[SSAValue] = set()
        pending: list[tuple[SSAValue, tuple[Use, ...]]] = [(value, ())]
        while pending:
            value, uses = pending.pop()
            for use in value.uses:
                made = use.operation.results[0] if is_flexible(use.operation) else None
                if made is None or made in seen:
                    continue
                if self.get(made) is not None:
                    return _needed_by((*uses, use), self.get(made))
                seen.add(made)
                pending.append((made, (*uses, use)))
        return None


def _tiles_of(loop: Operation) -> list[SSAValue]:
    """All tiles that the homes inside of a loop and of its results depend on, these among them."""
    ops = list(nested_ops(loop))
    arguments = (arg for op in ops for region in op.regions for block in region.blocks for arg in block.args)
    of_ops = (value for op in ops for value in (*op.operands, *op.results))
    return [value for value in dict.fromkeys((*arguments, *of_ops)) if is_tile(value.type)]


def _reduced_axes(func: FuncOp) -> dict[tuple[int, ...], frozenset[int]]:
    """The axes along which tiles of a shape are reduced."""
    axes: dict[tuple[int, ...], frozenset[int]] = {}
    for op in nested_ops(func, ReduceOp):
        shape = shape_of(op.srcs[0].type)
        axes[shape] = axes.get(shape, frozenset()) | {op.axis.value.data}
    return axes


def _repeated_axes(func: FuncOp) -> dict[tuple[int, ...], frozenset[int]]:
    """The axes along which tiles of a shape have what loops load once for them: warps along these load the same."""
    axes: dict[tuple[int, ...], frozenset[int]] = {}
    for op in nested_ops(func, BroadcastOp):
        if isinstance(op.parent_op(), scf.ForOp | scf.WhileOp) and _is_loaded(op.src):
            shape = shape_of(op.result.type)
            repeated = {axis for axis, extent in enumerate(shape_of(op.src.type)) if extent < shape[axis]}
            axes[shape] = axes.get(shape, frozenset()) | repeated
    return axes


def _is_loaded(tile: SSAValue) -> bool:
    """Whether a tile is loaded, or computed of one that is."""
    made_of = reached([tile], lambda one: one.owner.operands if _is_computed(one) else ())
    return any(isinstance(one.owner, LoadOp) and is_tile(one.type) for one in made_of)


def _is_computed(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_flexible(value.owner)


def _made_from(use: Use) -> Sequence[SSAValue]:
    """What is at home where an operand is: a result of an elementwise op, what control flow forwards it to."""
    op = use.operation
    return op.results if is_flexible(op) and not isinstance(op, SHAPE_OPS) else forwarded_to(use)


def _needed_by(uses: Sequence[Use], layout: LinearLayout) -> LinearLayout | None:
    """The layout that the first op takes an operand in, where each gives the next one its own and the last has one."""
    for use in reversed(uses):
        layout = operand_layouts(use.operation, layout)[use.index]
    return layout


def _joined(source: LinearLayout) -> LinearLayout:
    """The layout of `tt.join`: the two elements of the new last dimension in registers of one thread."""
    rank = len(source.shape)
    pair = LinearLayout.identity(2, REGISTER, f"dim{rank}")
    return (pair * source.with_axis(rank)).with_outs(dim_names(rank + 1)).with_ins(source.in_names)


def _stored_along(op: Operation) -> int | None:
    """The dimension in which the elements of what is loaded are neighbours in the shared memory that takes it."""
    uses = op.results[0].uses if isinstance(op, LoadOp) else ()
    allocs = (use.operation for use in uses if isinstance(use.operation, LocalAllocOp))
    layouts = (layout_of(alloc.result.type) for alloc in allocs)
    return next((layout.of(OFFSET)[0].index(1) for layout in layouts), None)


def _yield_targets(op: scf.YieldOp) -> Sequence[SSAValue]:
    """The values that a yield gives their next value: carried ones of a loop, results of an `scf.if`."""
    parent = op.parent_op()
    if isinstance(parent, scf.ForOp):
        return parent.body.block.args[1:]
    if isinstance(parent, scf.WhileOp):
        return parent.before_region.block.args
    return parent.results

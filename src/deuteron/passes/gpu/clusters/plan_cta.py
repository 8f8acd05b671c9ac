"""Shares a program out over the CTAs of its cluster: each of them has its part of the tiles.

    %rows = make_range 0..256                             %rank = "ttng.cluster_cta_rank"()
    %acc = "tt.dot"(%a, %b, %c) : 256x128         ->      %rows = make_range 0..128 + %rank * 128
    "tt.store"(%p, %acc)                                  %acc = "tt.dot"(%a, %b, %c) : 128x128     %b is whole
                                                          "tt.store"(%p, %acc)

What is split along which axis is `cta_split.py`'s to say, and `cta_order.py`'s where CTAs wait for each other. After
this pass a program is one of a CTA as any other, except that it knows its rank; what all CTAs load alike, warps of
their own may load for all of them (specialize_warps.py). A store that is not shared out is done by the first CTA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.hints import hints_of_part
from deuteron.ir.tt.descriptor import (
    BlockAccess,
    DescriptorLoadOp,
    MakeTensorDescriptorOp,
    TensorDescType,
    descriptor_of,
)
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.shape import MakeRangeOp, SplatOp
from deuteron.ir.ttng.cluster import ClusterBarrierOp, ClusterCTARankOp
from deuteron.ir.types import element_type_of, i32, is_tile, shape_of
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.clusters.cta_split import CTASplit, Split, operand_splits
from deuteron.passes.rewrite import replace


@dataclass(frozen=True)
class PlanCTA(ModulePass):
    """Shares programs out over the CTAs of a cluster."""

    name = "plan-cta"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.config.num_ctas == 1:
            return
        for func in functions_in(op):
            _Rewrite(func, self.config.num_ctas).rewrite()


class _Rewrite:
    """Of one function. Whole tiles stay as they are, dead where nobody needs them; parts are made beside them."""

    def __init__(self, func: FuncOp, num_ctas: int):
        self._block, self._num_ctas = func.body.block, num_ctas
        self._plan = CTASplit(func, num_ctas)
        self._rank = Builder(InsertPoint.at_start(self._block), func.location).value(ClusterCTARankOp())
        self._replaced: list[Operation] = []
        self._parts: dict[tuple[SSAValue, int], SSAValue] = {}
        self._descriptors: dict[tuple[Operation, int], SSAValue] = {}

    def rewrite(self) -> None:
        for loop in self._plan.waiting_loops:
            Builder.before(loop.body.block.last_op).insert(ClusterBarrierOp())
        self._rewrite_block(self._block)
        for op in self._replaced:
            b = Builder.before(op)  # whole tiles that are computed of what it gave have no use either
            replace(op, [b.constant(0, result.type) for result in op.results])

    def _rewrite_block(self, block: Block) -> None:
        for op in list(block.ops):
            if op in self._plan.effects:
                self._rewrite_effect(op, self._plan.effects[op])
            elif isinstance(op, scf.ForOp):
                self._rewrite_loop(op)
            elif isinstance(op, scf.IfOp):
                self._rewrite_branch(op)
            elif op.results and is_tile(op.results[0].type):
                for axis in sorted({axis for result in op.results for axis in self._plan.splits(result)}):
                    self._make_part(op, axis)

    def _at(self, value: SSAValue, split: Split) -> SSAValue:
        return value if split is None else self._parts[value, split]

    def _part_type(self, type: Attribute, axis: int) -> TensorType:
        shape = list(shape_of(type))
        shape[axis] //= self._num_ctas
        return TensorType(element_type_of(type), shape)

    def _first_index(self, b: Builder, extent: int) -> SSAValue:
        """Where this CTA's part of an axis begins."""
        return b.value(arith.MuliOp(self._rank, b.constant(extent // self._num_ctas, i32)))

    def _make_part(self, op: Operation, axis: int) -> None:
        b = Builder.after(op)
        made = [self._make_range(b, op)] if isinstance(op, MakeRangeOp) else self._clone(b, op, axis).results
        for result, part in zip(op.results, made, strict=True):
            part.name_hint = result.name_hint
            self._parts[result, axis] = part

    def _make_range(self, b: Builder, op: MakeRangeOp) -> SSAValue:
        begin, extent = op.start.value.data, shape_of(op.result.type)[0]
        numbers = b.value(MakeRangeOp(begin, begin + extent // self._num_ctas))
        first = b.value(SplatOp(self._first_index(b, extent), shape_of(numbers.type)))
        return b.value(arith.AddiOp(numbers, first))

    def _clone(self, b: Builder, op: Operation, axis: int) -> Operation:
        splits = operand_splits(op, axis)
        clone = op.clone()
        clone.operands = [self._at(value, split) for value, split in zip(op.operands, splits, strict=True)]
        for result in clone.results:
            part = Rewriter.replace_value_with_new_type(result, self._part_type(result.type, axis))
            clone.attributes = hints_of_part(op, axis, shape_of(part.type)[axis])
        if isinstance(op, arith.ConstantOp):
            clone.properties["value"] = DenseIntOrFPElementsAttr(clone.results[0].type, op.value.data)
        if isinstance(op, BlockAccess):
            self._narrow(b, clone, descriptor_of(op), axis)
        return b.insert(clone)

    def _narrow(self, b: Builder, access: BlockAccess, made: MakeTensorDescriptorOp, axis: int) -> None:
        """Let an access be of its part of the block."""
        place = axis + len(access.indices) - len(shape_of(_tile(access).type))
        first = self._first_index(b, shape_of(made.result.type.tile)[place])
        indices = list(access.indices)
        indices[place] = b.value(arith.AddiOp(indices[place], first))
        others = access.operands[1 : len(access.operands) - len(indices)]
        access.operands = [self._part_descriptor(made, place), *others, *indices]

    def _part_descriptor(self, made: MakeTensorDescriptorOp, axis: int) -> SSAValue:
        if (made, axis) not in self._descriptors:
            clone = made.clone()
            block = self._part_type(made.result.type.block, axis)
            Rewriter.replace_value_with_new_type(clone.result, TensorDescType(block))
            self._descriptors[made, axis] = Builder.after(made).value(clone)
        return self._descriptors[made, axis]

    def _rewrite_effect(self, op: Operation, split: Split) -> None:
        if split is None:
            self._let_first_do(op)
            return
        part = self._clone(Builder.before(op), op, split)
        for result, made in zip(op.results, part.results, strict=True):
            made.name_hint = result.name_hint
            self._parts[result, split] = made
        self._replaced.append(op)

    def _let_first_do(self, op: Operation) -> None:
        b, inside = Builder.before(op), Block()
        is_first = b.value(CmpIOp(self._rank, b.constant(0, i32), "eq"))
        b.insert(scf.IfOp(is_first, [], Region(inside)))
        op.detach()
        inside.add_op(op)
        Builder.at_end(inside, op.location).insert(scf.YieldOp())

    def _wanted(self, results: Sequence[SSAValue]) -> list[tuple[int, int]]:
        """Which parts of its results a loop or branch gives besides: the numbers of results, with axes."""
        return [
            (result.index, axis) for result in results if is_tile(result.type) for axis in self._plan.splits(result)
        ]

    def _rewrite_loop(self, loop: scf.ForOp) -> None:
        wanted, count, arguments = self._wanted(loop.results), len(loop.results), loop.body.block.args[1:]
        for index, axis in wanted:
            like = arguments[index]
            self._parts[like, axis] = new_argument(loop, self._part_type(like.type, axis), like.name_hint)
        self._rewrite_block(loop.body.block)
        given = loop.body.block.last_op.operands
        entering = [self._at(loop.iter_args[index], axis) for index, axis in wanted]
        new = carry(loop, entering, [self._at(given[index], axis) for index, axis in wanted])
        self._note(new, wanted, count)

    def _rewrite_branch(self, branch: scf.IfOp) -> None:
        wanted, count = self._wanted(branch.results), len(branch.results)
        for region in branch.regions:
            if region.blocks:
                self._rewrite_block(region.block)
                given = region.block.last_op.operands
                region.block.last_op.operands = [*given, *(self._at(given[index], axis) for index, axis in wanted)]
        if wanted:
            types = [self._part_type(branch.results[index].type, axis) for index, axis in wanted]
            regions = [branch.detach_region(region) for region in list(branch.regions)]
            new = Builder.before(branch).insert(
                scf.IfOp(branch.cond, [*branch.result_types, *types], *regions, dict(branch.attributes))
            )
            replace(branch, new.results[:count])
            self._note(new, wanted, count)

    def _note(self, new: Operation, wanted: Sequence[tuple[int, int]], count: int) -> None:
        for (index, axis), part in zip(wanted, new.results[count:], strict=True):
            part.name_hint = new.results[index].name_hint
            self._parts[new.results[index], axis] = part


def _tile(access: BlockAccess) -> SSAValue:
    return access.result if isinstance(access, DescriptorLoadOp) else access.src

"""The part of a function that its loads need: their addresses and masks, and the control flow around them.

    %q = "tt.load"(%pq)                                   (nothing)
    "scf.for"(%0, %n, %1, %zero, %pa) ({                  "scf.for"(%0, %n, %1, %pa) ({
    ^bb0(%k: i32, %acc: tile, %p: pointers):              ^bb0(%k: i32, %p: pointers):
      %a = "tt.load"(%p)                            ->      %a = "tt.load"(%p)
      %d = "ttng.warp_group_dot"(%q, %a, %acc)              "scf.yield"(%p + 64)
      "scf.yield"(%d, %p + 64)                            })
    })

The slice is cloned for other warps, fewer than the function has: what several warps would have had, a thread then has
in several registers, by the same rule in every layout, so that layouts fit each other as before. There is no slice
where threads would have to exchange something, or where a scalar comes from memory that the kernel stores to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from deuteron.analysis.aliasing.program_order import Writers
from deuteron.ir.builder import Builder
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.ttg.layout import layout_of, with_layout
from deuteron.ir.types import is_tile
from deuteron.layout.linear import REGISTER, WARP, LinearLayout, log2
from deuteron.passes.gpu.rings.buffered_loads import Load
from deuteron.passes.rewrite import Values

IN_REGISTERS = frozenset(
    {
        "tt.broadcast",
        "tt.expand_dims",
        "tt.get_num_programs",
        "tt.get_program_id",
        "tt.make_range",
        "tt.make_tensor_descriptor",
        "tt.reshape",
        "tt.splat",
        "tt.trans",
        "tt.unsplat",
        "ttng.cluster_cta_rank",
    }
)


def for_warps(layout: LinearLayout, num_warps: int) -> LinearLayout:
    """The layout in which that many warps have the tile: the bits of the other warps become bits of registers."""
    kept = log2(num_warps)
    registers = (*layout.of(REGISTER), *layout.of(WARP)[kept:])
    changed = {REGISTER: registers, WARP: layout.of(WARP)[:kept]}
    bases = tuple((name, changed.get(name, vectors)) for name, vectors in layout.bases)
    return LinearLayout(bases, layout.outs).without_replicated_registers()


class LoadSlice:
    """What some loads of a function need. `is_possible`: other warps can compute it by themselves."""

    def __init__(self, func: FuncOp, loads: Sequence[Load]):
        self._ops: set[Operation] = set()
        self._carried: set[tuple[Operation, int]] = set()
        # Other warps load scalars for themselves: a store that needs one has it from its own, and waits for no other.
        self._writers = Writers(func, lambda load: lambda writer: False)
        self._pending = [value for load in loads for value in load.operands]
        for load in loads:
            self._enter(load.parent)
        while self._pending:
            self._visit(self._pending.pop())
        self.is_possible = all(self._is_possible(op) for op in self._ops)

    def clone(
        self, block: Block, target: Block, num_warps: int, places: dict[Operation, Sequence[Load]]
    ) -> dict[Load, Load]:
        """Clone the slice of a function's block to the end of another one; loads go before the ops that `places`
        lists them for. Gives the clone of each load.
        """
        cloning = _Cloning(self._ops, self._carried, num_warps, places)
        cloning.block(block, target)
        return cloning.loads

    def _enter(self, block: Block) -> None:
        """Control flow around a block, and what decides it."""
        op = block.parent_op()
        while op is not None and not isinstance(op, FuncOp):
            if op not in self._ops:
                self._ops.add(op)
                self._pending += op.operands[:3] if isinstance(op, scf.ForOp) else op.operands
            op = op.parent_op()

    def _visit(self, value: SSAValue) -> None:
        if isinstance(value, BlockArgument):
            parent = value.owner.parent_op()
            if isinstance(parent, scf.ForOp) and value.index:
                self._carry(parent, value.index - 1)
            return
        op = value.owner
        if isinstance(op, scf.ForOp | scf.IfOp):
            self._enter(op.regions[0].block)
            self._carry(op, value.index)
        elif op not in self._ops:
            self._ops.add(op)
            self._pending += op.operands
            self._enter(op.parent)

    def _carry(self, op: Operation, index: int) -> None:
        """A value that control flow carries comes from where it enters, and from every end of a body."""
        if (op, index) not in self._carried:
            self._carried.add((op, index))
            self._pending += forwarded_from(op.results[index])

    def _is_possible(self, op: Operation) -> bool:
        if isinstance(op, scf.ForOp | scf.IfOp):
            return True
        if isinstance(op, LoadOp):
            return not is_tile(op.result.type) and self._writers.are_apart(op)
        return not op.regions and (is_elementwise(op) or op.name in IN_REGISTERS)


class _Cloning:
    """Clones a slice; `loads` has the clone of each load."""

    def __init__(
        self,
        ops: set[Operation],
        carried: set[tuple[Operation, int]],
        num_warps: int,
        places: dict[Operation, Sequence[Load]],
    ):
        self._ops, self._carried, self._num_warps, self._places = ops, carried, num_warps, places
        self._values = Values()
        self.loads: dict[Load, Load] = {}

    def block(self, source: Block, target: Block) -> None:
        b = Builder.at_end(target)
        for op in source.ops:
            b.location = op.location
            for load in self._places.get(op, ()):
                b.location = load.location
                self.loads[load] = self._op(b, load)
            if op not in self._ops:
                continue
            b.location = op.location
            if isinstance(op, scf.ForOp):
                self._for(b, op)
            elif isinstance(op, scf.IfOp):
                self._if(b, op)
            else:
                self._op(b, op)

    def _op(self, b: Builder, op: Operation) -> Operation:
        new = b.insert(op.clone(self._values))
        for old, result in zip(op.results, list(new.results), strict=True):
            self._values[old] = Rewriter.replace_value_with_new_type(result, self._type(old.type))
            self._values[old].name_hint = old.name_hint
        if isinstance(op, arith.ConstantOp) and is_tile(op.result.type):
            new.properties["value"] = DenseIntOrFPElementsAttr(new.result.type, op.value.data)
        return new

    def _type(self, type: Attribute) -> Attribute:
        return with_layout(type, for_warps(layout_of(type), self._num_warps)) if is_tile(type) else type

    def _for(self, b: Builder, op: scf.ForOp) -> None:
        kept = self._kept(op)
        arguments = [op.body.block.args[0], *(op.body.block.args[1 + index] for index in kept)]
        body = Block(arg_types=[self._type(argument.type) for argument in arguments])
        for old, new in zip(arguments, body.args, strict=True):
            self._values[old], new.name_hint = new, old.name_hint
        self._body(op.body.block, body, kept)
        bounds = (self._values.of(value) for value in (op.lb, op.ub, op.step))
        self._replace(b, op, scf.ForOp(*bounds, [self._values.of(op.iter_args[index]) for index in kept], body), kept)

    def _if(self, b: Builder, op: scf.IfOp) -> None:
        kept, regions = self._kept(op), []
        for region in op.regions:
            blocks = [Block()] if region.blocks else []
            for block in blocks:
                self._body(region.block, block, kept)
            regions.append(Region(blocks))
        types = [self._type(op.results[index].type) for index in kept]
        self._replace(b, op, scf.IfOp(self._values.of(op.cond), types, *regions), kept)

    def _kept(self, op: Operation) -> list[int]:
        return [index for index in range(len(op.results)) if (op, index) in self._carried]

    def _body(self, source: Block, target: Block, kept: Iterable[int]) -> None:
        self.block(source, target)
        yielded = [self._values.of(source.last_op.operands[index]) for index in kept]
        Builder.at_end(target, source.last_op.location).insert(scf.YieldOp(*yielded))

    def _replace(self, b: Builder, op: Operation, new: Operation, kept: Sequence[int]) -> None:
        new.attributes |= op.attributes
        b.insert(new)
        for index, result in zip(kept, new.results, strict=True):
            self._values[op.results[index]], result.name_hint = result, op.results[index].name_hint

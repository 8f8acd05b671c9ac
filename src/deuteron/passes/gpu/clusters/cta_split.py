"""Along which axis each tile of a program is needed, when the CTAs of a cluster share the program out.

    acc = dot(a, b, acc)                  (acc, 0), (a, 0), (b, whole)
    c = c_ptr + rows[:, None] * N + columns[None, :]
    store(c, acc)                         chosen: axis 0, as acc; (c, 0), (rows, 0), (columns, whole)

A CTA has one of `num_ctas` equal parts of a tile along the axis, or the whole tile. Demands go backwards from what has
an effect: stores, reductions into memory, atomics on tiles, assertions. The axis of each is the one for which the CTA
multiplies least, then accesses least memory. A tile may be needed in several ways; scalars are whole, so that control
flow is the same in every CTA. What no CTA has alone is refused, and so are scalar atomics and barriers, for which CTAs
would have to wait for each other; what else they wait for `cta_order.py` knows.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, OpResult, SSAValue

from deuteron.errors import UsageError
from deuteron.ir.effects import READ, own_effects
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.atomic import OPS as ATOMIC_OPS
from deuteron.ir.tt.atomic import AtomicLoadOp, AtomicOp, AtomicStoreOp, MemorySemantic
from deuteron.ir.tt.debug import AssertOp, PrintOp
from deuteron.ir.tt.descriptor import BlockAccess, DescriptorLoadOp, DescriptorReduceOp, DescriptorStoreOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp
from deuteron.ir.tt.map_elementwise import MapElementwiseOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import (
    BroadcastOp,
    ExpandDimsOp,
    JoinOp,
    MakeRangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransOp,
)
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import byte_width_of, is_tile, shape_of
from deuteron.layout.tensor_box import CHUNK_BYTES
from deuteron.passes.gpu.clusters.cta_order import Demand, Split, Unsplittable, accessed_tile, loops_to_wait_in

_ATOMICS = tuple(ATOMIC_OPS)
_EFFECTS = (StoreOp, DescriptorStoreOp, DescriptorReduceOp, *_ATOMICS, AssertOp, PrintOp)
_LOADS = (LoadOp, DescriptorLoadOp)
_SOURCES = (MakeRangeOp, SplatOp, DescriptorLoadOp)


class CTASplit:
    """The demands of a function: `splits(value)`, besides the whole, and `effects`: the axis of each. `waiting_loops`:
    those whose iterations the CTAs begin together.
    """

    def __init__(self, func: FuncOp, num_ctas: int):
        self._num_ctas = num_ctas
        self._demands: set[Demand] = set()
        self.effects: dict[Operation, Split] = {}
        try:
            for op in func.body.walk():
                self._visit(op)
            self.waiting_loops = loops_to_wait_in(func, self.effects, self._demands)
        except Unsplittable as error:
            message = f"num_ctas = {num_ctas}: {error.reason}. Compile the kernel with num_ctas = 1."
            raise UsageError(message, *from_attribute(error.op.location)) from None

    def splits(self, value: SSAValue) -> list[int]:
        """The axes along which parts of a tile are needed."""
        return [axis for axis in range(len(shape_of(value.type))) if (value, axis) in self._demands]

    def is_whole(self, value: SSAValue) -> bool:
        """Whether all of a value is needed."""
        return (value, None) in self._demands

    def _visit(self, op: Operation) -> None:
        if isinstance(op, _EFFECTS):
            self._choose(op)
        elif isinstance(op, LoadOp) and op.is_volatile.value.data:
            raise Unsplittable(op, "the CTAs of a cluster may see different values in a volatile load")
        elif any(effect.kind is not READ for effect in own_effects(op)):
            raise Unsplittable(op, f"the CTAs of a cluster cannot do '{op.name}' together")

    def _choose(self, op: Operation) -> None:
        """Take the axis that costs least; the first of several."""
        trials, obstacle = [], None
        for split in self._candidates(op):
            try:
                trials.append((split, self._with(op, split)))
            except Unsplittable as error:
                obstacle = obstacle or error
        if not trials:
            raise obstacle
        self.effects[op], self._demands = min(trials, key=lambda trial: self._cost(op, *trial))

    def _candidates(self, op: Operation) -> list[Split]:
        axes = [] if isinstance(op, PrintOp) else list(range(len(shape_of(accessed_tile(op).type))))
        return axes if axes and isinstance(op, _ATOMICS) else [*axes, None]

    def _with(self, op: Operation, split: Split) -> set[Demand]:
        """The demands, with those of an effect that is split so, and of the control flow that it is in."""
        if isinstance(op, _ATOMICS):
            self._check_atomic(op, split)
        if split is not None:
            self._check_part(op, accessed_tile(op), split)
        pending = [*zip(op.operands, self._of_operands(op, split), strict=True), *_around(op)]
        return self._spread(pending, {op: split, **self.effects})

    def _check_atomic(self, op: AtomicOp, split: Split) -> None:
        if split is None:
            raise Unsplittable(op, "an atomic of the whole program would be done by each CTA of its cluster")
        if isinstance(op, AtomicLoadOp | AtomicStoreOp) and op.sem.value.data != MemorySemantic.RELAXED:
            raise Unsplittable(op, "the CTAs of a cluster cannot acquire or release together")
        if any(value in op.results and axis != split for value, axis in self._demands):
            raise Unsplittable(op, "what an atomic gives is needed along several axes")

    def _spread(self, pending: list[Demand], effects: dict[Operation, Split]) -> set[Demand]:
        demands = set(self._demands)
        while pending:
            demand = pending.pop()
            if demand not in demands:
                demands.add(demand)
                pending += self._sources(*demand, effects)
        return demands

    def _sources(self, value: SSAValue, split: Split, effects: dict[Operation, Split]) -> list[Demand]:
        """What a value in that split is computed from."""
        if split is not None:
            self._check_part(value.op if isinstance(value, OpResult) else value.owner.parent_op(), value, split)
        carried = _control_flow_sources(value)
        if carried is not None:
            return [*((source, split) for source in carried), *_deciding(value)]
        op = value.op
        if isinstance(op, _ATOMICS):
            self._check_result(op, split, effects)
        return list(zip(op.operands, self._of_operands(op, split), strict=True))

    def _check_result(self, op: Operation, split: Split, effects: dict[Operation, Split]) -> None:
        """Whether a CTA has that part of what an atomic gives; of one further on in a loop, the axis is open still."""
        if split is None:
            raise Unsplittable(op, "what an atomic gives is needed as a whole, and each CTA has a part of it")
        if effects.get(op, split) != split:
            raise Unsplittable(op, "what an atomic gives is needed along several axes")

    def _check_part(self, op: Operation, tile: SSAValue, split: int) -> None:
        """Whether each CTA gets something of a tile that an op makes or accesses: of what TMA copies, 16 bytes."""
        is_inner = isinstance(op, BlockAccess) and split == len(shape_of(tile.type)) - 1
        least = CHUNK_BYTES // byte_width_of(tile.type) if is_inner else 1
        if shape_of(tile.type)[split] < self._num_ctas * least:
            raise Unsplittable(op, f"{self._num_ctas} CTAs cannot share axis {split} of {tile.type}")

    def _of_operands(self, op: Operation, split: Split) -> list[Split]:
        return operand_splits(op, split) if split is not None else [None] * len(op.operands)

    def _cost(self, op: Operation, split: Split, demands: set[Demand]) -> tuple[int, int, int]:
        """Multiplications of a CTA, elements that it loads, and those that it stores here."""
        made = {(value.op, axis, value) for value, axis in demands if isinstance(value, OpResult)}
        dots = [(dot, self._part(result, axis)) for dot, axis, result in made if isinstance(dot, DotOp)]
        multiplied = sum(shape_of(dot.a.type)[-1] * part for dot, part in dots)
        loads = sum(self._part(result, axis) for load, axis, result in made if isinstance(load, _LOADS))
        stored = 0 if isinstance(op, PrintOp) else self._part(accessed_tile(op), split)
        return multiplied, loads, stored

    def _part(self, value: SSAValue, split: Split) -> int:
        return prod(shape_of(value.type)) // (1 if split is None else self._num_ctas)


def operand_splits(op: Operation, split: int) -> list[Split]:
    """For each operand, how it is needed for a part of the results (or of what is stored) along an axis."""
    if isinstance(op, _SOURCES):
        return [None] * len(op.operands)
    if isinstance(op, DotOp):
        return _dot_splits(len(shape_of(op.c.type)), split)
    if isinstance(op, ExpandDimsOp | TransOp):
        return [op.source_axis(split)]
    if isinstance(op, BroadcastOp):
        return [split if shape_of(op.src.type)[split] > 1 else None]
    if isinstance(op, ReduceOp):
        return [split + (split >= op.axis.value.data)] * len(op.operands)
    if isinstance(op, GatherOp):
        return [None if split == op.axis.value.data else split, split]
    if isinstance(op, ReshapeOp) and split == 0 and op.allow_reorder is None:
        return [0]
    if _is_per_element(op, split):
        return [split if is_tile(operand.type) else None for operand in op.operands]
    raise Unsplittable(op, f"the CTAs of a cluster cannot share '{op.name}' along axis {split}")


def _dot_splits(rank: int, split: int) -> list[Split]:
    if split == rank - 2:
        return [split, None, split]
    return [None, split, split] if split == rank - 1 else [split, split, split]


def _is_per_element(op: Operation, split: int) -> bool:
    """Whether a part along that axis needs the same part of every tile."""
    if isinstance(op, ScanOp):
        return split != op.axis.value.data
    if isinstance(op, ConstantOp):
        return op.value.is_splat()
    if isinstance(op, JoinOp):
        return split < len(shape_of(op.lhs.type))
    return is_elementwise(op) or isinstance(op, (LoadOp, SplitOp, MapElementwiseOp, ElementwiseInlineAsmOp, *_EFFECTS))


def _control_flow_sources(value: SSAValue) -> list[SSAValue] | None:
    """The values that one is which a loop or branch gives, or that a loop's body is given; None for others."""
    if isinstance(value, OpResult):
        return _given(value) if isinstance(value.op, scf.ForOp | scf.IfOp) else None
    loop = value.owner.parent_op()
    return [loop.results[value.index - 1]] if isinstance(loop, scf.ForOp) and value.index else []


def _around(op: Operation) -> list[Demand]:
    """The scalars that decide the control flow that an op is in."""
    parent = op.parent_op()
    return [] if isinstance(parent, FuncOp) else [*_scalars(parent), *_around(parent)]


def _deciding(value: SSAValue) -> list[Demand]:
    """The scalars that decide what the result of a loop or branch is."""
    return _scalars(value.op) if isinstance(value, OpResult) else []


def _scalars(op: Operation) -> list[Demand]:
    return [(operand, None) for operand in op.operands if not is_tile(operand.type)]


def _given(result: OpResult) -> list[SSAValue]:
    """What is forwarded to it, and what it is within a loop."""
    within = [result.op.body.block.args[1 + result.index]] if isinstance(result.op, scf.ForOp) else []
    return [*forwarded_from(result), *within]

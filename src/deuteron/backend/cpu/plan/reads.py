"""What a root reads: the kept tiles, at which indices, the scalars that items make, and the loads it performs
(with their indices).

    y = load(p)[:, None] * kept_x          tiles {kept_x: {(0, 1)}}, loads [(load, (0,))]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Exchanged, Index, identity_index
from deuteron.backend.cpu.plan.roots import Root
from deuteron.backend.cpu.plan.tiles.storage import Storage
from deuteron.backend.cpu.plan.tiles.views import is_view, viewed_source
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS
from deuteron.ir.arith import SelectOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.types import is_float, is_tile, shape_of

VIEWED: Index = ("view",)


@dataclass
class Reads:
    """`tiles`: kept tiles with the indices at which they are read; `views`: what shows the memory of kept tiles, with
    its own indices; `scalars`: those that an item must have made.

    `quotients`: the divisions of integers that it does, with their indices. `num_computed`: how many tiles it computes,
    at how many indices: about how much code it is. `computes_floats`: whether it does more with floats than move them.
    """

    tiles: dict[SSAValue, set[Index]] = field(default_factory=dict)
    views: set[tuple[SSAValue, Index]] = field(default_factory=set)
    scalars: set[SSAValue] = field(default_factory=set)
    loads: list[tuple[Operation, Index]] = field(default_factory=list)
    quotients: list[tuple[Operation, Index]] = field(default_factory=list)
    num_computed: int = 0
    computes_floats: bool = False

    @property
    def values(self) -> set[SSAValue]:
        return self.scalars | self.tiles.keys()

    @property
    def has_exchanges(self) -> bool:
        """Whether an element is read where another one is expected (`Exchanged`)."""
        indices = chain(*self.tiles.values(), (index for _, index in self.views))
        return any(isinstance(entry, Exchanged) for index in indices for entry in index)


class Reader:
    """Finds what roots read, given what is kept."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._scalars: dict[SSAValue, frozenset[SSAValue]] = {}
        self._reads: dict[Root, Reads] = {}

    def reads(self, root: Root) -> Reads:
        if root not in self._reads:
            self._reads[root] = self._find(root)
        return self._reads[root]

    def forget(self) -> None:
        """To be called when what is kept has changed."""
        self._reads.clear()

    def _find(self, root: Root) -> Reads:
        reads = Reads()
        own = root.computed
        pending = [(source, identity_index(shape_of(source.type))) for source in root.sources]
        seen = set(pending)
        reads.scalars.update(*(self.scalars_of(value) for value in _captured(root.op)))
        while pending:
            value, index = pending.pop()
            for operand in self._operands(value, index, value is own, reads):
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
        return reads

    def _operands(self, value: SSAValue, index: Index, is_own: bool, reads: Reads) -> list[tuple[SSAValue, Index]]:
        """Enter a leaf into `reads`, or give what the value is computed from."""
        if not is_tile(value.type):
            reads.scalars |= self.scalars_of(value)
            return []
        induction = self._storage.inductions.get(value)
        if induction is not None:
            reads.scalars.add(value)
            return [(induction.initial, index)]
        op = value.owner
        if not _is_lazy(value) or is_view(op) or self._is_kept(value, is_own):
            source = viewed_source(value)
            reads.tiles.setdefault(source, set()).add(index if source is value else VIEWED)
            if source is not value:
                reads.views.add((value, index))
            return []
        declared = ops.declared(op)
        if declared.reads_memory(op):
            reads.loads.append((op, index))
        if isinstance(op, QUOTIENTS):
            reads.quotients.append((op, index))
        reads.num_computed += not (declared.forwards or declared.is_index_arithmetic)
        moves = declared.forwards or declared.reads_memory(op) or isinstance(op, ConstantOp | SelectOp)
        reads.computes_floats |= not moves and is_float(value.type)
        return declared.operands_at(op, index)

    def _is_kept(self, value: SSAValue, is_own: bool) -> bool:
        return value in self._storage.kept and not is_own

    def scalars_of(self, value: SSAValue) -> frozenset[SSAValue]:
        """The scalars made by items that a scalar is computed from."""
        return evaluate(value, self._scalars, _lazy_operands, self._compute_scalars)

    def _compute_scalars(self, value: SSAValue) -> frozenset[SSAValue]:
        if not _is_lazy(value):
            return frozenset({value})
        return frozenset().union(*(self._scalars[operand] for operand in value.owner.operands))


def _captured(op: Operation) -> Iterator[SSAValue]:
    """The scalars from outside that the region of a reduction, scan or map uses."""
    if op.regions and not op.name.startswith("scf."):
        values = (value for inner in nested_ops(op)[1:] for value in inner.operands)
        yield from (value for value in values if not op.is_ancestor(value.owner))


def _is_lazy(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and ops.declared(value.owner).is_lazy(value.owner)


def _lazy_operands(value: SSAValue) -> Sequence[SSAValue]:
    return value.owner.operands if _is_lazy(value) else ()

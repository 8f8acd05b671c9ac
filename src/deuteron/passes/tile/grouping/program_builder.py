"""Builds what several programs do together of what one does: ops of larger tiles, under masks of those that are there.

    scf.for iter_args(%s = %zero) {                 scf.for iter_args(%s = %zeros) {
      %x = tt.load %p, %m                     ->      %x = tt.load %ps, %ms & %there
      scf.yield %s + %x }                             scf.yield %s + %x }

How tiles become larger, and what becomes of other ops, subclasses say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.hints import HINTS
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp


class ProgramBuilder(ABC):
    """The ops of larger programs while they are built; `_values`: what has become of those of one program."""

    rules: ClassVar[Mapping[type[Operation], Callable[[Any, Operation], Sequence[SSAValue]]]]

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._values: dict[SSAValue, SSAValue] = {}

    def ops(self, ops: Iterable[Operation]) -> None:
        """Build what becomes of ops."""
        for op in ops:
            with self._builder.located(op.location):
                self._op(op)

    def _op(self, op: Operation) -> None:
        if not self._changes(op):
            self._builder.insert(op.clone(self._values))
            return
        rule = self.rules.get(type(op), type(self)._otherwise)
        for old, new in zip(op.results, rule(self, op), strict=True):
            new.name_hint = old.name_hint
            self._values[old] = new

    def _same(self, value: SSAValue) -> SSAValue:
        """A value that does not become larger."""
        return self._values.get(value, value)

    # -- what a subclass says ---

    @abstractmethod
    def _changes(self, op: Operation) -> bool:
        """Whether an op, or one in it, becomes another one."""

    @abstractmethod
    def _otherwise(self, op: Operation) -> Sequence[SSAValue]:
        """What becomes of an op that no rule is for."""

    @abstractmethod
    def _type_of(self, value: SSAValue) -> Attribute:
        """The type of what becomes of a value."""

    @abstractmethod
    def _operand(self, op: Operation, value: SSAValue) -> SSAValue:
        """A value as an operand of what becomes of an op."""

    @abstractmethod
    def _at(self, place: SSAValue, value: SSAValue) -> SSAValue:
        """A value that a loop or branch carries to a place."""

    @abstractmethod
    def _there(self, op: LoadOp | StoreOp) -> SSAValue:
        """Which elements of an access are of programs that are there."""

    # -- rules ---

    def _like(self, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The same op on other operands."""
        return self._builder.insert(same_op(op, operands, [self._type_of(result) for result in op.results])).results

    def _along_axis(self, op: ReduceOp | ScanOp) -> Sequence[SSAValue]:
        made = type(op).create(
            operands=[self._operand(op, operand) for operand in op.operands],
            result_types=[self._type_of(result) for result in op.results],
            properties=op.properties,
            regions=[op.combine.clone()],
        )
        return self._builder.insert(made).results

    def _mask(self, op: LoadOp | StoreOp) -> SSAValue:
        there = self._there(op)
        return there if op.mask is None else self._builder.value(arith.AndIOp(self._operand(op, op.mask), there))

    def _load(self, op: LoadOp) -> Sequence[SSAValue]:
        other = self._operand(op, op.other) if op.other is not None else None
        return self._access(op, LoadOp(self._operand(op, op.ptr), self._mask(op), other))

    def _store(self, op: StoreOp) -> Sequence[SSAValue]:
        pointer, value = self._operand(op, op.ptr), self._operand(op, op.value)
        return self._access(op, StoreOp(pointer, value, self._mask(op)))

    def _access(self, op: LoadOp | StoreOp, new: LoadOp | StoreOp) -> Sequence[SSAValue]:
        """An access that goes through the caches as another one does."""
        new.properties.update(cache=op.cache, evict=op.evict)
        return self._builder.insert(new).results

    def _for(self, op: scf.ForOp) -> Sequence[SSAValue]:
        index, *places = op.body.block.args
        first = [self._at(place, value) for place, value in zip(places, op.iter_args, strict=True)]
        block = Block(arg_types=[index.type, *(value.type for value in first)])
        loop = scf.ForOp(*map(self._same, (op.lb, op.ub, op.step)), first, Region(block))
        loop.attributes.update(op.attributes)
        self._builder.insert(loop)
        self._block(op.body.block, block, op.results)
        return loop.results

    def _if(self, op: scf.IfOp) -> Sequence[SSAValue]:
        regions = [Region([Block()] if region.blocks else []) for region in op.regions]
        types = [self._type_of(result) for result in op.results]
        branch = self._builder.insert(scf.IfOp(self._same(op.cond), types, *regions))
        for old, new in zip(op.regions, regions, strict=True):
            if old.blocks:
                self._block(old.block, new.block, op.results)
        return branch.results

    def _block(self, old: Block, new: Block, results: Sequence[SSAValue]) -> None:
        """Build a block that gives the results of a loop or branch."""
        for before, after in zip(old.args, new.args, strict=True):
            after.name_hint = before.name_hint
            self._values[before] = after
        *ops, last = old.ops
        with self._builder.at(new):
            self.ops(ops)
            given = [self._at(result, value) for result, value in zip(results, last.operands, strict=True)]
            self._builder.insert(scf.YieldOp(*given))


def same_op(op: Operation, operands: Sequence[SSAValue], types: Sequence[Attribute]) -> Operation:
    """An op on other operands, without what is promised of the dimensions of its results."""
    kept = {name: value for name, value in op.attributes.items() if name not in HINTS}
    return type(op).create(operands=operands, result_types=types, properties=op.properties, attributes=kept)


RULES: Mapping[type[Operation], Callable[[Any, Operation], Sequence[SSAValue]]] = {
    **dict.fromkeys((ReduceOp, ScanOp), ProgramBuilder._along_axis),
    LoadOp: ProgramBuilder._load,
    StoreOp: ProgramBuilder._store,
    scf.ForOp: ProgramBuilder._for,
    scf.IfOp: ProgramBuilder._if,
}

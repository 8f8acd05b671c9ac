"""Makes one access of those that both branches of an `if` do through the same pointers, under one mask.

    %r = "scf.if"(%even) ({                         %n = "arith.xori"(%even, %true)
      %a = "tt.load"(%p, %m, %zeros)                %s = "tt.splat"(%n)
      "scf.yield"(%a)                         ->    %k = "arith.ori"(%s, %m)
    }, {                                            %r = "tt.load"(%p, %k, %zeros)
      %b = "tt.load"(%p)
      "scf.yield"(%b)
    })

The load of a loop that asks whether a length is even then sits in the loop itself, where it is pipelined as others are.
What both branches compute is computed before them; masks, and what is given where they are off, come along where
that is cheap. Loads move up past other loads, stores down past what is pure. Branches of which nothing
but values is left become a select.

Volatile accesses stay, and those where one branch has wider vectors than one mask for both would leave it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.aliasing.known_effects import KnownEffects
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.arith import SelectOp
from deuteron.ir.around import is_defined_in
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure, is_speculatable
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import byte_width_of, i1, pointee_of, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.folding.memory import load_like, store_like

Access = LoadOp | StoreOp


class _Merge:
    """The rewrite of one `if`. New values are made known to the analysis, for the `if` around it."""

    def __init__(self, branch: scf.IfOp, info: AxisInfoAnalysis, effects: KnownEffects):
        self._branch, self._info, self._effects = branch, info, effects
        self._then, self._else = branch.true_region.block, branch.false_region.block

    def rewrite(self) -> None:
        self._hoist_common()
        self._merge_loads()
        self._merge_stores()
        self._replace_results()

    def _hoist_common(self) -> None:
        """Move what both branches compute before them, in order: then more of what follows is the same."""
        twins: dict[Hashable, list[Operation]] = {}
        for op in self._else.ops:
            twins.setdefault(_key(op), []).append(op)
        for op in list(self._then.ops):
            if op.regions or not op.results or not is_pure(op) or any(map(self._is_inner, op.operands)):
                continue
            if same := twins.get(_key(op)):
                twin = same.pop(0)
                users = dict.fromkeys(use.operation for result in twin.results for use in result.uses)
                self._move_before(op)
                replace(twin, op.results)
                for user in users:
                    if user.parent is self._else:
                        twins.setdefault(_key(user), []).append(user)

    def _is_inner(self, value: SSAValue) -> bool:
        return is_defined_in(value, self._branch)

    def _merge_loads(self) -> None:
        twins = list(self._first_loads(self._else))
        for load in list(self._first_loads(self._then)):
            twin = next((one for one in twins if self._are_twins(load, one)), None)
            if twin is not None:
                twins.remove(twin)
                self._merge_load(load, twin)

    def _first_loads(self, block: Block) -> Iterator[LoadOp]:
        """The loads that see memory as it is before the branches."""
        return (op for op in takewhile(self._effects.is_removable, block.ops) if isinstance(op, LoadOp))

    def _are_twins(self, access: Access, twin: Access) -> bool:
        """Whether they go through the same pointers, and what else they use is to be had before the branches."""
        if access.ptr is not twin.ptr or _modifiers(access) != _modifiers(twin):
            return False
        can_hoist = all(self._can_hoist(value) for value in (*access.operands, *twin.operands))
        return can_hoist and self._vector(access) == self._vector(twin)

    def _can_hoist(self, value: SSAValue) -> bool:
        """Whether a value is known before the branches, or may be computed there for little."""
        if not self._is_inner(value):
            return True
        op = value.owner
        is_near = isinstance(op, Operation) and op.parent_op() is self._branch and not op.regions
        if not is_near or isinstance(op, DotOp) or not is_speculatable(op):
            return False
        return all(self._can_hoist(operand) for operand in op.operands)

    def _vector(self, access: Access) -> int:
        """How many neighbours one instruction accesses, of what pointers and mask allow."""
        if not shape_of(access.ptr.type):
            return 1
        pointers, size = self._info.of(access.ptr), byte_width_of(pointee_of(access.ptr.type))
        axis = max(range(len(pointers.contiguity)), key=lambda axis: pointers.contiguity[axis])
        vector = min(pointers.contiguity[axis], pointers.divisibility[axis] // size, MAX_BYTES // size)
        return vector if access.mask is None else min(vector, self._info.of(access.mask).constancy[axis])

    def _merge_load(self, load: LoadOp, twin: LoadOp) -> None:
        mask = self._merged_mask(load, twin)
        other = self._choice(load.other, twin.other, load.location) if mask is not None else None
        merged = self._value(load_like(load, mask, other), load.location)
        replace(load, [merged])
        replace(twin, [merged])

    def _merge_stores(self) -> None:
        """From the last on, so that they keep their order."""
        while (store := self._last_store(self._then)) and (twin := self._last_store(self._else)):
            if not self._are_twins(store, twin):
                return
            mask = self._merged_mask(store, twin)
            value = self._choice(store.value, twin.value, store.location)
            Builder(InsertPoint.after(self._branch), store.location).insert(store_like(store, value, mask))
            erase(store)
            erase(twin)

    def _last_store(self, block: Block) -> StoreOp | None:
        """The store after which a branch does nothing but compute."""
        last = next((op for op in reversed(list(block.ops)) if not self._effects.is_pure(op)), None)
        return last if isinstance(last, StoreOp) else None

    def _merged_mask(self, access: Access, twin: Access) -> SSAValue | None:
        """Where the branch that is taken accesses memory; an access without a mask does so everywhere."""
        if access.mask is None and twin.mask is None:
            return None
        if access.mask is not None and twin.mask is not None:
            return self._choice(access.mask, twin.mask, access.location)
        mask, unmasked = (twin.mask, self._branch.cond) if access.mask is None else (access.mask, self._not_taken())
        self._hoist(mask)
        shape = shape_of(mask.type)
        if shape:
            unmasked = self._value(SplatOp(unmasked, shape), access.location)
        return self._value(arith.OrIOp(unmasked, mask), access.location)

    def _not_taken(self) -> SSAValue:
        true = Builder.before(self._branch).constant(True, i1)
        return self._value(arith.XOrIOp(self._branch.cond, true), self._branch.location)

    def _choice(self, value: SSAValue | None, other: SSAValue | None, location: LocationAttr) -> SSAValue | None:
        """The value of the branch that is taken; where only one has a value, it serves both."""
        for inner in filter(None, (value, other)):
            self._hoist(inner)
        if value is None or other is None or value is other:
            return value if value is not None else other
        return self._value(SelectOp(self._branch.cond, value, other), location)

    def _hoist(self, value: SSAValue) -> None:
        if self._is_inner(value):
            for operand in value.owner.operands:
                self._hoist(operand)
            self._move_before(value.owner)

    def _move_before(self, op: Operation) -> None:
        op.detach()
        self._branch.parent.insert_op_before(op, self._branch)

    def _value(self, op: Operation, location: LocationAttr) -> SSAValue:
        value = Builder(InsertPoint.before(self._branch), location).value(op)
        self._info.visit(op)
        return value

    def _replace_results(self) -> None:
        """Use a value that both branches give instead of the result, and a select where they do nothing else."""
        yields = zip(self._then.last_op.operands, self._else.last_op.operands, strict=True)
        does_nothing = self._then.first_op is self._then.last_op and self._else.first_op is self._else.last_op
        for result, (value, other) in zip(self._branch.results, list(yields), strict=True):
            if value is other or does_nothing:
                result.replace_all_uses_with(self._choice(value, other, self._branch.location))
        if does_nothing:
            erase(self._branch)


def _key(op: Operation) -> Hashable:
    return op.name, tuple(op.operands), tuple(result.type for result in op.results), _modifiers(op)


def _modifiers(op: Operation) -> Hashable:
    """How an op differs from others of its name, its operands aside."""
    properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
    return frozenset(properties.items()), frozenset(op.attributes.items())


class MergeBranches(Optimisation):
    """Merges the accesses of the branches of every `if`, inner ones first."""

    name = "merge-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            branches = [inner for inner in func.walk(region_first=True) if _has_two_branches(inner)]
            if branches:
                info, effects = AxisInfoAnalysis(func), KnownEffects()
                for branch in branches:
                    _Merge(branch, info, effects).rewrite()


def _has_two_branches(op: Operation) -> bool:
    return isinstance(op, scf.IfOp) and bool(op.false_region.blocks)

"""Every op class says what its ops touch; what says nothing counts as touching everything, wherever it is asked."""

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_result_def

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.written_arguments import is_apart, written_arguments
from deuteron.frontend import lower_function
from deuteron.ir.builder import Builder
from deuteron.ir.effects import (
    EVERYTHING,
    GLOBAL,
    ORDER,
    ORDER_OWN,
    OTHER,
    READ,
    SHARED,
    WRITE,
    effects_of,
    first_in_order,
    is_declared,
    is_pure,
    is_removable,
    is_speculatable,
)
from deuteron.ir.text import DIALECTS
from deuteron.ir.tt.atomic import AtomicKind, AtomicLoadOp, AtomicRMWOp, AtomicStoreOp, MemoryScope, MemorySemantic
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.fence import FenceOp
from deuteron.passes.gpu.pipelining.run_ahead import Ahead
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode
from deuteron.passes.tile.hoist_invariants import HoistInvariants
from deuteron.passes.tile.merge_branches import MergeBranches
from deuteron.passes.tile.merge_common_subexpressions import MergeCommonSubexpressions

# Functions and modules are no actions; calls are inlined before anybody asks; the others are in no IR of ours.
UNDECLARED = {"builtin.module", "builtin.unregistered", "tt.func", "tt.call", "scf.execute_region"}


@irdl_op_definition
class UnknownOp(IRDLOperation):
    """An op that declares nothing."""

    name = "tt.unknown"
    result = opt_result_def(i32)


def unknown() -> UnknownOp:
    return UnknownOp.create(result_types=[i32])


def test_every_op_class_declares_what_it_touches():
    classes = [op_class for dialect in DIALECTS for op_class in dialect.operations]
    assert {op_class.name for op_class in classes if not is_declared(op_class)} == UNDECLARED


def kinds(op: Operation) -> set[tuple]:
    return {(effect.kind, effect.resource) for effect in effects_of(op)}


@deuteron.jit
def accesses(a, out, n):
    x = tl.load(a)
    while x > 0:
        x -= n
    for k in range(n):
        tl.store(out + k, tl.load(a + k, volatile=True) // n)
    tl.store(out, x)


def function(kernel=accesses, **types) -> FuncOp:
    given = types or {"a": "*i32", "out": "*i32", "n": "i32"}
    return next(iter(lower_function(kernel, given, {}, {}).ops))


def ops_of(func: FuncOp, op_class: type) -> list:
    return [op for op in func.walk() if isinstance(op, op_class)]


def test_loads_stores_and_what_is_around_them():
    func = function()
    (plain, volatile), (stored, _) = ops_of(func, LoadOp), ops_of(func, StoreOp)
    (loop,), (endless,) = ops_of(func, scf.ForOp), ops_of(func, scf.WhileOp)
    assert kinds(plain) == {(READ, GLOBAL)} and is_removable(plain) and not is_pure(plain)
    assert (ORDER, GLOBAL) in kinds(volatile) and not is_removable(volatile)
    assert kinds(stored) == {(WRITE, GLOBAL)} and {effect.value for effect in effects_of(stored)} == {stored.ptr}
    assert kinds(loop) == kinds(volatile) | kinds(stored)
    assert first_in_order(func, GLOBAL) is volatile
    assert kinds(endless) == {(WRITE, OTHER)}, "it may not end"


@pytest.mark.parametrize("op_class", [arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.CeilDivUIOp])
def test_division_is_pure_and_may_run_early(op_class):
    (divided,) = ops_of(function(), arith.DivSIOp)
    op = op_class(divided.lhs, divided.rhs)
    assert is_pure(op) and is_speculatable(op)


@pytest.mark.parametrize(
    ("sem", "scope", "ordered"),
    [
        (MemorySemantic.RELAXED, MemoryScope.GPU, set()),
        (MemorySemantic.ACQUIRE, MemoryScope.GPU, {ORDER}),
        (MemorySemantic.RELEASE, MemoryScope.SYSTEM, {ORDER}),
        (MemorySemantic.ACQUIRE_RELEASE, MemoryScope.CTA, {ORDER_OWN}),
    ],
)
def test_what_atomics_keep_in_order(sem, scope, ordered):
    func = function()
    atomic = AtomicRMWOp(AtomicKind.ADD, func.args[0], func.args[2], sem=sem, scope=scope)
    assert kinds(atomic) >= {(READ, GLOBAL), (WRITE, GLOBAL)}
    assert {effect.kind for effect in effects_of(atomic)} - {READ, WRITE} == ordered
    assert kinds(BarrierOp()) >= {(ORDER_OWN, GLOBAL)}
    assert ordered <= {effect.kind for effect in effects_of(FenceOp(scope))} <= {WRITE, ORDER, ORDER_OWN}


def test_atomic_loads_stay_in_their_place():
    """Even relaxed ones: what others store meanwhile is what they are for."""
    pointer, value = function().args[0], function().args[2]
    load = AtomicLoadOp(pointer, sem=MemorySemantic.RELAXED)
    assert kinds(load) == {(READ, GLOBAL), (ORDER, GLOBAL), (ORDER, SHARED)}
    assert kinds(AtomicStoreOp(pointer, value, sem=MemorySemantic.RELAXED)) == {(WRITE, GLOBAL)}
    assert (ORDER, GLOBAL) in kinds(AtomicStoreOp(pointer, value))


def test_what_declares_nothing_touches_everything():
    assert effects_of(unknown()) == EVERYTHING
    assert not is_pure(unknown()) and not is_removable(unknown()) and not is_speculatable(unknown())


@deuteron.jit
def plain(a, out, n):
    for k in range(0, n, 16):
        x = tl.load(a + k + tl.arange(0, 16))
        if n > 3:
            y = x + tl.load(a)
        else:
            y = -tl.load(a) - x
            y -= 1
        tl.store(out + k + tl.arange(0, 16), y)


@pytest.mark.parametrize("change", [EliminateDeadCode, MergeCommonSubexpressions, HoistInvariants])
def test_it_is_neither_removed_nor_merged_nor_moved(change):
    func = function(plain)
    (loop,) = ops_of(func, scf.ForOp)
    Builder.before(loop.body.block.first_op).insert(unknown())
    Builder.before(loop.body.block.first_op).insert(unknown())
    change().apply(None, func.parent_op())
    found = ops_of(func, UnknownOp)
    assert len(found) == 2 and all(op.parent_op() is loop for op in found)


@pytest.mark.parametrize("has_unknown", [False, True])
def test_no_load_moves_over_it(has_unknown):
    """Out of a branch, or an iteration ahead."""
    func = function(plain)
    (loop,), (branch,) = ops_of(func, scf.ForOp), ops_of(func, scf.IfOp)
    tile, merged, _ = ops_of(func, LoadOp)
    if has_unknown:
        for region in branch.regions:
            Builder.before(region.block.first_op).insert(unknown())
    assert (first_in_order(loop, GLOBAL) is None) != has_unknown
    assert is_apart(tile, written_arguments(loop)) != has_unknown
    assert written_arguments(func).is_known != has_unknown
    MergeBranches().apply(None, func.parent_op())
    assert (merged.parent_op() is branch) == has_unknown


def test_an_address_that_comes_from_it_is_not_computed_ahead():
    func = function(plain)
    (loop,) = ops_of(func, scf.ForOp)
    load = ops_of(func, LoadOp)[0]
    assert Ahead(loop, [load.ptr]).obstacle is None
    offset = Builder.before(loop.body.block.first_op).insert(unknown())
    assert Ahead(loop, [offset.result]).obstacle == "its address depends on tt.unknown"

"""What dots in flight read: for how long it is in use, and when it may be written again."""

import pytest
from analysis.dot_line import SUMS, Line
from xdsl.dialects import scf
from xdsl.ir import Block

from deuteron.analysis.shared_memory.shared_hazards import HazardAnalysis
from deuteron.analysis.shared_memory.shared_liveness import Interval, shared_buffers
from deuteron.ir.arith import constant
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import ReturnOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotWaitOp
from deuteron.ir.types import i32


def waiting(line: Line) -> set:
    """The ops that need a barrier before them, once the function is complete."""
    line.b.insert(ReturnOp())
    return HazardAnalysis(line.func, {alloc: 8192 * i for i, alloc in enumerate(line.allocs)}).needs_barrier


def test_a_barrier_after_the_wait_frees_what_a_dot_read():
    line = Line()
    line.wait(line.dot(0), 0)
    assert waiting(line) == set()
    line = Line()
    line.wait(line.dot(0), 0)
    store = line.store(0)
    assert waiting(line) == {store}


def test_a_barrier_before_the_wait_does_not():
    line = Line()
    dot = line.dot(0)
    line.b.insert(BarrierOp())
    line.wait(dot, 0)
    store = line.store(0)
    assert waiting(line) == {store}


@pytest.mark.parametrize(("pendings", "is_free"), [(0, True), (1, False)])
def test_a_wait_that_leaves_dots_in_flight(pendings, is_free):
    """Two dots; the wait leaves none, or the second. Then a barrier; the second's memory is written."""
    line = Line()
    line.dot(0)
    second = line.dot(1)
    line.wait(second, pendings)
    line.b.insert(BarrierOp())
    first_store, second_store = line.store(0), line.store(1)
    assert waiting(line) == (set() if is_free else {second_store})
    assert first_store not in HazardAnalysis(line.func, {a: 8192 * i for i, a in enumerate(line.allocs)}).needs_barrier


def test_a_synchronous_dot_has_read():
    line = Line()
    line.dot(0, is_async=False)
    line.b.insert(BarrierOp())
    line.store(0)
    assert waiting(line) == set()


@pytest.mark.parametrize(("pendings", "in_flight"), [(1, False), (2, True)])
def test_memory_is_in_use_until_the_dot_is_waited_for(pendings, in_flight):
    """One more dot is issued before the wait; where it leaves two in flight, the next wait counts."""
    line = Line()
    dot = line.dot(0)
    other = line.dot(1)
    first = line.b.insert(WarpGroupDotWaitOp([dot.result], pendings))
    line.b.insert(WarpGroupDotWaitOp([other.result, *first.outputs], 0))
    ops = list(line.func.walk())
    buffer, _ = shared_buffers(line.func)
    assert buffer.interval == Interval(ops.index(line.allocs[0]), len(ops) - (1 if in_flight else 2))
    assert buffer.alignment == 1024


def test_memory_is_free_after_a_dot_that_waits_for_all_before_it():
    line = Line()
    line.wait(line.dot(0), 0)
    dot = line.dot(0)
    last = line.dot(1, is_async=False)
    line.wait(dot, 1)
    buffer, _ = shared_buffers(line.func)
    assert buffer.interval.end == list(line.func.walk()).index(last)


def test_a_dot_that_a_loop_carries_is_waited_for_after_it():
    line = Line()
    block = Block(arg_types=[i32, SUMS])
    outer, line.b = line.b, Builder.at_end(block)
    wait = line.b.insert(WarpGroupDotWaitOp([line.dot(0).result], 1))
    line.b.insert(scf.YieldOp(wait.outputs[0]))
    bound = outer.value(constant(4, i32))
    loop = outer.insert(scf.ForOp(bound, bound, bound, [line.zeros], block))
    outer.insert(BarrierOp())
    outer.insert(WarpGroupDotWaitOp([loop.res[0]], 0))
    outer.insert(ReturnOp())
    assert shared_buffers(line.func)[0].interval.end == len(list(line.func.walk())) - 2


def test_without_a_wait_memory_is_in_use_to_the_end():
    line = Line()
    line.dot(0)
    assert shared_buffers(line.func)[0].interval.end == len(list(line.func.walk()))

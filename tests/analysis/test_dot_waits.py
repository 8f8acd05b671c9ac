"""After which wait a dot is over: one that leaves few enough in flight, on every path."""

from contextlib import nullcontext

import pytest
from analysis.dot_line import SUMS, Line
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from deuteron.analysis.shared_memory.dot_waits import check_waits, wait_for
from deuteron.errors import IRError
from deuteron.ir.arith import constant
from deuteron.ir.builder import Builder
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotWaitOp
from deuteron.ir.types import i1, i32


def wait(b: Builder, values, pendings: int) -> WarpGroupDotWaitOp:
    return b.insert(WarpGroupDotWaitOp(values, pendings))


@pytest.mark.parametrize(
    ("issued", "pendings", "is_enough"), [(0, 0, True), (0, 1, False), (2, 2, True), (2, 3, False)]
)
def test_as_many_may_be_in_flight_as_were_issued_since(issued, pendings, is_enough):
    line = Line()
    dot = line.dot(0)
    for _ in range(issued):
        line.dot(1)
    found = wait(line.b, [dot.result], pendings)
    assert wait_for(dot) is (found if is_enough else None)


@pytest.mark.parametrize("in_flight", [0, 2])
def test_a_dot_that_waits_for_itself_ends_those_before_it(in_flight):
    """Whatever a wait leaves in flight after it."""
    line = Line()
    dot = line.dot(0)
    other = line.dot(1, is_async=False)
    later = line.dot(1)
    wait(line.b, [dot.result], in_flight)
    assert wait_for(dot) is other
    assert wait_for(later) is None


def test_a_dot_after_the_use_of_a_sum_is_too_late():
    line = Line()
    dot = line.dot(0)
    wait(line.b, [dot.result], 1)
    line.dot(1, is_async=False)
    assert wait_for(dot) is None


@pytest.mark.parametrize("is_async", [False, True])
def test_a_dot_that_waits_for_itself_waits_for_those_before_it(is_async):
    line = Line()
    dot = line.dot(0)
    other = line.dot(1, is_async=is_async)
    wait(line.b, [dot.result], 2)
    wait(line.b, [other.result], 0)
    with pytest.raises(IRError, match="no ttng.warp_group_dot_wait") if is_async else nullcontext():
        check_waits(ModuleOp([line.func]))


def test_what_a_wait_leaves_in_flight_the_next_may_end():
    line = Line()
    dot = line.dot(0)
    first = wait(line.b, [dot.result], 1)
    second = wait(line.b, first.outputs, 0)
    assert wait_for(dot) is second


def test_a_dot_that_nobody_waits_for():
    line = Line()
    assert wait_for(line.dot(0)) is None


def loop(line: Line, body) -> scf.ForOp:
    """A loop that carries what `body` yields, of its argument."""
    block = Block(arg_types=[i32, SUMS])
    outer, line.b = line.b, Builder.at_end(block)
    line.b.insert(scf.YieldOp(body(block.args[1])))
    line.b = outer
    bound = outer.value(constant(4, i32))
    return outer.insert(scf.ForOp(bound, bound, bound, [line.zeros], block))


@pytest.mark.parametrize("in_flight", [0, 1])
def test_a_dot_that_a_loop_carries_is_waited_for_after_it(in_flight):
    """The wait of the next iteration is another op's business; after the loop none may be in flight."""
    line, dots = Line(), []

    def body(carried):
        dots.append(line.dot(0))
        return wait(line.b, [dots[0].result], 1).outputs[0]

    after = wait(line.b, [loop(line, body).res[0]], in_flight)
    assert wait_for(dots[0]) is (after if in_flight == 0 else None)


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_wait_that_may_not_be_executed_is_none(in_loop):
    """It is in a branch, or in a loop of no iterations: on another path the dot goes on."""
    line = Line()
    dot = line.dot(0)
    if in_loop:
        loop(line, lambda carried: wait(line.b, [dot.result], 0).outputs[0])
    else:
        branch = Builder.at_end(Block())
        wait(branch, [dot.result], 0)
        branch.insert(scf.YieldOp())
        condition = line.b.value(constant(1, i1))
        line.b.insert(scf.IfOp(condition, [], Region(branch.insertion_point.block)))
    assert wait_for(dot) is None


def test_a_dot_of_a_branch_is_waited_for_after_it():
    line = Line()
    outer, block = line.b, Block()
    line.b = Builder.at_end(block)
    dot = line.dot(0)
    line.b.insert(scf.YieldOp(dot.result))
    other = Block()
    Builder.at_end(other).insert(scf.YieldOp(line.zeros))
    condition = outer.value(constant(1, i1))
    branch = outer.insert(scf.IfOp(condition, [SUMS], Region(block), Region(other)))
    found = wait(outer, [branch.results[0]], 0)
    assert wait_for(dot) is found

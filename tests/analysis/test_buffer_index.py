"""Which buffer an index means: constants, steps that wrap around, and what the next iteration calls it."""

from xdsl.dialects import scf
from xdsl.ir import Block

from deuteron.analysis.shared_memory.buffer_index import BufferIndex, after, in_next_iteration, index_of
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.types import i32


class Loop:
    """A loop of a function that carries an index, which goes `steps` further around `count` buffers."""

    def __init__(self, count: int, steps: int = 1):
        func = FuncOp("k", [i32])
        outside = Builder.at_end(func.body.block)
        self.outer = func.args[0]
        self.constant = outside.constant(2, i32)
        block = Block(arg_types=[i32, i32])
        self.carried = block.args[1]
        b = Builder.at_end(block)
        self.other = b.constant(7, i32)
        self.steps = [self.carried]
        for _ in range(max(steps, 1)):
            self.steps.append(b.value(RingNextOp(self.steps[-1], None, count)))
        b.insert(scf.YieldOp(self.steps[steps]))
        self.op = outside.insert(scf.ForOp(self.constant, self.outer, self.constant, [self.constant], block))


def test_a_constant_is_a_number():
    loop = Loop(3)
    assert index_of(loop.constant, 3) == BufferIndex(3, None, 2)
    assert index_of(loop.other, 3) == BufferIndex(3, None, 1)


def test_steps_are_counted():
    loop = Loop(3, steps=4)
    offsets = [index_of(value, 3).offset for value in loop.steps]
    assert offsets == [0, 1, 2, 0, 1]
    first, second = (index_of(value, 3) for value in loop.steps[:2])
    assert first.differs(second) and not first.differs(index_of(loop.steps[3], 3))


def test_steps_around_another_number_of_buffers_are_none():
    loop = Loop(3)
    assert index_of(loop.steps[1], 4) == BufferIndex(4, loop.steps[1], 0)
    assert not index_of(loop.steps[1], 4).differs(index_of(loop.carried, 4))


def test_the_next_iteration_is_a_step_further():
    loop = Loop(3)
    used = index_of(loop.steps[1], 3)
    assert in_next_iteration(used, loop.op) == BufferIndex(3, loop.carried, 0)
    assert in_next_iteration(index_of(loop.carried, 3), loop.op) == BufferIndex(3, loop.carried, 2)


def test_what_is_carried_in_no_known_way_has_no_name_in_the_next_iteration():
    loop = Loop(3)
    loop.op.body.block.last_op.operands[0] = loop.other
    assert in_next_iteration(index_of(loop.carried, 3), loop.op) is None
    assert in_next_iteration(index_of(loop.op.body.block.args[0], 3), loop.op) is None


def test_what_comes_from_outside_keeps_its_name():
    loop = Loop(3)
    for value in (loop.outer, loop.constant):
        index = index_of(value, 3)
        assert in_next_iteration(index, loop.op) == after(index, loop.op) == index


def test_after_the_loop_the_carried_index_is_unknown():
    loop = Loop(3)
    assert after(index_of(loop.steps[1], 3), loop.op) is None

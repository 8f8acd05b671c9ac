"""Which ops have to wait where copies run on and buffers take turns."""

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Region

from deuteron.analysis.shared_memory.copy_waits import check_copies
from deuteron.analysis.shared_memory.shared_hazards import HazardAnalysis
from deuteron.errors import IRError
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import FuncOp, ReturnOp
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.layout import LinearEncodingAttr, MemDescType, SharedLinearEncodingAttr
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.ring import RingNextOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.types import PointerType, i1, i32
from deuteron.layout.distributed import default_blocked
from deuteron.layout.shared import row_major

ENCODING = LinearEncodingAttr(default_blocked((64,), 2))
TILE, POINTERS = TensorType(i32, [64], ENCODING), TensorType(PointerType(i32), [64], ENCODING)
BUFFER = MemDescType(TensorType(i32, [64], SharedLinearEncodingAttr(row_major((64,)))))


class Loop:
    """A loop that carries the index of a buffer; ops are added to its body one after the other."""

    def __init__(self, count: int):
        self.func = FuncOp("k", [POINTERS, i32])
        self.outside = Builder.at_end(self.func.body.block)
        self.alloc = self.outside.insert(LocalAllocOp(buffers_type(BUFFER, count)))
        self.block, self.count = Block(arg_types=[i32, i32]), count
        self.body = Builder.at_end(self.block)
        self.freed = self.block.args[1]
        self.used = self.body.value(RingNextOp(self.freed, None, count))

    def copy(self, index, b=None):
        b = b or self.body
        copy = b.insert(AsyncCopyGlobalToLocalOp(self.func.args[0], self.at(index, b)))
        b.insert(AsyncCommitGroupOp([copy.token]))
        return copy

    def read(self, index):
        return self.body.insert(LocalLoadOp(self.at(index, self.body), TILE))

    def at(self, index, b):
        return b.value(MemDescIndexOp(self.alloc.result, index))

    def wait(self, num):
        self.body.insert(AsyncWaitOp(num))

    def waiting(self):
        self.body.insert(scf.YieldOp(self.used))
        start = self.func.args[1]
        self.outside.insert(scf.ForOp(start, start, start, [start], self.block))
        self.outside.insert(ReturnOp())
        return HazardAnalysis(self.func, {self.alloc: 0}).needs_barrier


@pytest.mark.parametrize("count", [2, 3, 4])
def test_one_barrier_where_copies_come_after_the_wait(count):
    loop = Loop(count)
    loop.wait(count - 2)
    copy = loop.copy(loop.freed)
    loop.read(loop.used)
    assert loop.waiting() == {copy}


@pytest.mark.parametrize("count", [2, 3, 4, 40])
def test_one_where_they_come_after_the_use(count):
    loop = Loop(count)
    loop.wait(count - 2)
    read = loop.read(loop.used)
    loop.copy(loop.freed)
    assert loop.waiting() == {read}


def test_a_copy_into_the_buffer_just_read_waits():
    loop = Loop(3)
    loop.wait(0)
    loop.read(loop.freed)
    copy = loop.copy(loop.freed)
    assert copy in loop.waiting()


@pytest.mark.parametrize(("num", "waits"), [(0, True), (1, False)])
def test_only_a_copy_that_is_done_is_there_after_a_barrier(num, waits):
    loop = Loop(8)
    loop.copy(loop.used)
    loop.wait(num)
    read = loop.read(loop.used)
    assert (read in loop.waiting()) == waits


def test_indices_of_which_nothing_is_known_may_be_equal():
    loop = Loop(3)
    loop.wait(1)
    loop.copy(loop.freed)
    loop.read(loop.block.args[0])
    copy = loop.copy(loop.func.args[1])
    assert copy in loop.waiting()


def test_a_copy_that_a_condition_begins_is_in_flight_after_the_loop():
    """The last condition is not followed by the wait of an iteration."""
    loop, asked, done = Loop(2), Block(), Block()
    index = loop.func.args[1]
    loop.outside.insert(scf.WhileOp([], [], Region(asked), Region(done)))
    condition = Builder.at_end(asked)
    loop.copy(index, condition)
    condition.insert(scf.ConditionOp(condition.constant(True, i1)))
    Builder.at_end(done).insert(AsyncWaitOp(0))
    Builder.at_end(done).insert(scf.YieldOp())
    loop.outside.insert(LocalLoadOp(loop.at(index, loop.outside), TILE))
    loop.outside.insert(ReturnOp())
    with pytest.raises(IRError, match="what a copy in flight writes"):
        check_copies(ModuleOp([loop.func]))


def test_what_copies_may_be_under_way_is_followed_once(monkeypatch):
    followed, body = [], HazardAnalysis._body

    def counted(analysis, loop, pending):
        followed.append(len(pending))
        return body(analysis, loop, pending)

    monkeypatch.setattr(HazardAnalysis, "_body", counted)
    loop = Loop(20)
    loop.wait(18)
    loop.read(loop.used)
    loop.copy(loop.freed)
    loop.waiting()
    assert max(followed) > 50 and sum(followed) < 4 * max(followed)

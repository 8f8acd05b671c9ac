"""Which ops have to wait, on ops of shared memory in order."""

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition

from deuteron.analysis.shared_memory.shared_hazards import Access, HazardAnalysis
from deuteron.analysis.shared_memory.shared_liveness import shared_buffers
from deuteron.ir.builder import Builder
from deuteron.ir.effects import READ, WRITE
from deuteron.ir.tt.function import FuncOp, ReturnOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.layout import LinearEncodingAttr, MemDescType, SharedLinearEncodingAttr
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp, LocalStoreOp
from deuteron.ir.types import i1, i32
from deuteron.layout.distributed import default_blocked
from deuteron.layout.shared import row_major

TILE = TensorType(i32, [64], LinearEncodingAttr(default_blocked((64,), 2)))
DESCRIPTOR = MemDescType(TensorType(i32, [64], SharedLinearEncodingAttr(row_major((64,)))))


class Kernel:
    """A function of a tile, with two allocations; ops are added one after the other."""

    def __init__(self):
        self.func = FuncOp("k", [TILE])
        self.builder = Builder.at_end(self.func.body.block)
        self.first, self.second = (self.add(LocalAllocOp(DESCRIPTOR)) for _ in range(2))

    def add(self, op):
        return self.builder.insert(op)

    def store(self, alloc):
        return self.add(LocalStoreOp(self.func.args[0], alloc.result))

    def load(self, alloc):
        return self.add(LocalLoadOp(alloc.result, TILE))

    def waiting(self, offsets=(0, 256)):
        self.add(ReturnOp())
        return HazardAnalysis(self.func, dict(zip((self.first, self.second), offsets, strict=True))).needs_barrier


def test_a_load_waits_for_the_store():
    kernel = Kernel()
    kernel.store(kernel.first)
    load = kernel.load(kernel.first)
    kernel.load(kernel.first)
    assert kernel.waiting() == {load}


def test_a_store_waits_for_loads_and_stores():
    kernel = Kernel()
    kernel.load(kernel.first)
    after_load = kernel.store(kernel.first)
    after_store = kernel.store(kernel.first)
    assert kernel.waiting() == {after_load, after_store}


def test_other_bytes_do_not_matter():
    kernel = Kernel()
    kernel.store(kernel.first)
    kernel.load(kernel.second)
    assert kernel.waiting() == set()


def test_a_shared_place_does():
    kernel = Kernel()
    kernel.store(kernel.first)
    load = kernel.load(kernel.second)
    assert kernel.waiting(offsets=(0, 128)) == {load}


def test_a_barrier_ends_the_wait():
    kernel = Kernel()
    kernel.store(kernel.first)
    kernel.add(BarrierOp())
    kernel.load(kernel.first)
    assert kernel.waiting() == set()


@irdl_op_definition
class UnknownOp(IRDLOperation):
    """An op that does not say what it touches."""

    name = "tt.unknown"


def test_what_a_condition_loads_is_pending_after_the_loop():
    """A barrier at the end of each iteration does not come after the last condition."""
    kernel, asked, done = Kernel(), Block(), Block()
    kernel.add(scf.WhileOp([], [], Region(asked), Region(done)))
    inside = Builder.at_end(asked)
    inside.insert(LocalLoadOp(kernel.first.result, TILE))
    inside.insert(scf.ConditionOp(inside.constant(True, i1)))
    Builder.at_end(done).insert(BarrierOp())
    Builder.at_end(done).insert(scf.YieldOp())
    store = kernel.store(kernel.first)
    assert kernel.waiting() == {store}


def test_what_is_not_known_waits_and_is_waited_for():
    kernel = Kernel()
    kernel.store(kernel.first)
    unknown = kernel.add(UnknownOp())
    load = kernel.load(kernel.second)
    assert kernel.waiting() == {unknown, load}


def test_an_allocation_lives_until_its_last_use():
    kernel = Kernel()
    kernel.store(kernel.second)
    kernel.load(kernel.first)
    kernel.add(ReturnOp())
    first, second = shared_buffers(kernel.func)
    assert (first.size, second.size) == (256, 256)
    assert first.interval.end > second.interval.end > first.interval.begin


def test_reads_do_not_conflict():
    assert not Access(READ, 0, 8).conflicts(Access(READ, 0, 8))
    assert Access(READ, 0, 8).conflicts(Access(WRITE, 4, 12))
    assert not Access(WRITE, 0, 8).conflicts(Access(WRITE, 8, 12))

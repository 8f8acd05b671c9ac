"""A function without control flow whose dots by wgmma read shared memory, for tests of when they are over."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType

from deuteron.ir.arith import constant
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.layout import LinearEncodingAttr, MemDescType, SharedLinearEncodingAttr
from deuteron.ir.ttg.shared import LocalAllocOp, LocalStoreOp
from deuteron.ir.ttg.views import MemDescTransOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp
from deuteron.ir.types import f16, f32
from deuteron.layout.distributed import default_blocked
from deuteron.layout.shared import mma_shared
from deuteron.layout.wgmma import mma_v3_accumulator

SHAPE = [64, 64]
TILE = TensorType(f16, SHAPE, LinearEncodingAttr(default_blocked(SHAPE, 4)))
SUMS = TensorType(f32, SHAPE, LinearEncodingAttr(mma_v3_accumulator(SHAPE, [4, 1])))
MEMORY = MemDescType(TensorType(f16, SHAPE, SharedLinearEncodingAttr(mma_shared(SHAPE, 1, 2), 1024)))


class Line:
    """A function without loops: two allocations of 8192 bytes, and ops one after the other."""

    def __init__(self):
        self.func = FuncOp("k", [TILE])
        self.b = Builder.at_end(self.func.body.block)
        self.zeros = self.b.value(constant(0.0, SUMS))
        self.allocs = [self.b.insert(LocalAllocOp(MEMORY)) for _ in range(2)]

    def dot(self, index: int, is_async: bool = True) -> WarpGroupDotOp:
        memory = self.allocs[index].result
        other = self.b.value(MemDescTransOp(memory, (1, 0)))
        return self.b.insert(WarpGroupDotOp(memory, other, self.zeros, is_async=is_async))

    def wait(self, dot: WarpGroupDotOp, pendings: int) -> None:
        self.b.insert(WarpGroupDotWaitOp([dot.result], pendings))

    def store(self, index: int) -> LocalStoreOp:
        return self.b.insert(LocalStoreOp(self.func.args[0], self.allocs[index].result))

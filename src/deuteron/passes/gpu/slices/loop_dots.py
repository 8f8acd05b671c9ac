"""Makes loops along K of dots that are many instructions of a thread.

    %d = tt.dot %a, %b, %c          ->      ttg.private_store of %a and %b
                                            %d = scf.for %i = 0 to 16 iter_args(%s = %c) {
                                              %x, %y = ttg.private_load of slice %i of each, along K
                                              %t = tt.dot %x, %y, %s
                                              scf.yield %t
                                            }

By multiply-adds those of which threads have whole rows and columns: operands that have no room in shared memory. fp32
128x128x128 by "ieee" is 16,384 multiply-adds in each of 128 threads, which take ptxas 20 s in a row, and whose operands
it spills. By matrix instructions those of large tiles in few warps: 64x64x64 of tf32 in one are 256, and as many
instructions that load and round. What is in shared memory is loaded there, slice by slice.

Sums are added up in the order of K as before. What is summed in fewer than 32 bits is rounded once only, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import f32
from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateStoreOp, PrivateType
from deuteron.ir.ttg.shared import LocalLoadOp
from deuteron.ir.types import bit_width_of, shape_of
from deuteron.layout.slices import sliceable_bits
from deuteron.machine.matrix import USUAL_DEPTH_BITS
from deuteron.passes.gpu.slices.costs import matrix_instructions, multiply_adds
from deuteron.passes.gpu.slices.rolled_loops import insert_loop, slice_body
from deuteron.passes.gpu.slices.shared_slices import holds_until, load_slice
from deuteron.passes.rewrite import clone_on, erase, replace

# Multiply-adds of a thread: of a dot that becomes a loop, and of an iteration. As those over slices in shared memory.
MANY, IN_ITERATION = 4096, 2048
# Matrix instructions of a warp, likewise. One of 64x64 in one warp has 32 for each step of the instruction along K.
MANY_MATRICES, MATRICES = 256, 32


def loop_dots(func: FuncOp) -> None:
    rewrite = _Rewrite()
    for dot in nested_ops(func, DotOp):
        if (count := _count(dot)) > 1:
            rewrite.loop(dot, count)


def _count(dot: DotOp) -> int:
    """Into how many slices along K."""
    if bit_width_of(dot.c.type) < bit_width_of(f32):
        return 1
    by_threads, by_warp, depth = multiply_adds(dot), matrix_instructions(dot), shape_of(dot.a.type)[-1]
    if by_threads >= MANY:
        return min(by_threads // IN_ITERATION, depth)
    if by_warp < MANY_MATRICES:
        return 1
    most = min(by_warp // MATRICES, depth * bit_width_of(dot.a.type) // USUAL_DEPTH_BITS)
    slices = min(len(sliceable_bits(layout_of(value.type), axis)) for value, axis in _operands(dot))
    return min(most, 1 << slices)


def _operands(dot: DotOp) -> list[tuple[SSAValue, int]]:
    """Both, and which of their dimensions K is."""
    rank = len(shape_of(dot.c.type))
    return [(dot.a, rank - 1), (dot.b, rank - 2)]


@dataclass
class _Rewrite:
    """What is in memory of threads already is used again."""

    memories: dict[tuple[SSAValue, int, int], SSAValue] = field(default_factory=dict)

    def loop(self, dot: DotOp, count: int) -> None:
        body = slice_body(dot.c.type)
        index, sums = body.args
        sums.name_hint = dot.result.name_hint
        inside = Builder.at_end(body, dot.location)
        here = [self._slice(inside, dot, value, axis, count, index) for value, axis in _operands(dot)]
        part = clone_on(dot, [*here, sums])
        inside.insert(scf.YieldOp(inside.value(part)))
        operands = dict.fromkeys(dot.operands[:2])
        replace(dot, [insert_loop(Builder.before(dot), count, body, [dot.c]).results[0]])
        for value in operands:
            if isinstance(value.owner, LocalLoadOp) and value.first_use is None:
                erase(value.owner)

    def _slice(self, b: Builder, dot: DotOp, value: SSAValue, axis: int, count: int, index: SSAValue) -> SSAValue:
        load = value.owner
        if isinstance(load, LocalLoadOp) and holds_until(load, dot):
            return load_slice(b, load, axis, count, index)
        return b.value(PrivateLoadOp(self._stored(value, axis, count), index))

    def _stored(self, value: SSAValue, axis: int, count: int) -> SSAValue:
        """The memory of a value, stored where that is made."""
        if (value, axis, count) not in self.memories:
            b = _after(value)
            memory = b.value(PrivateAllocOp(PrivateType(value.type, axis, count)))
            b.insert(PrivateStoreOp(value, memory))
            self.memories[value, axis, count] = memory
        return self.memories[value, axis, count]


def _after(value: SSAValue) -> Builder:
    if isinstance(value, OpResult):
        return Builder.after(value.op)
    return Builder(InsertPoint.at_start(value.block), value.block.parent_op().location)

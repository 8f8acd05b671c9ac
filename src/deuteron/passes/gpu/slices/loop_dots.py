"""Makes loops along K of dots by multiply-adds of which threads have whole rows and columns, many at that.

    %d = tt.dot %a, %b, %c          ->      ttg.private_store of %a and %b
                                            %d = scf.for %i = 0 to 16 iter_args(%s = %c) {
                                              %x, %y = ttg.private_load of slice %i of each, along K
                                              %t = tt.dot %x, %y, %s
                                              scf.yield %t
                                            }

Such are left where operands have no room in shared memory: fp32 128x128x128 by "ieee" is 16,384 multiply-adds in each
of 128 threads, which take ptxas 20 s in a row, and whose operands it spills. Sums are added up in the order of K as
before. What is summed in fewer than 32 bits is rounded once only, and stays.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.private import PrivateAllocOp, PrivateLoadOp, PrivateStoreOp, PrivateType
from deuteron.ir.types import bit_width_of, shape_of
from deuteron.passes.gpu.slices.costs import multiply_adds
from deuteron.passes.gpu.slices.rolled_loops import insert_loop, slice_body
from deuteron.passes.rewrite import replace

# Multiply-adds of a thread: of a dot that becomes a loop, and of an iteration. As those over slices in shared memory.
MANY, IN_ITERATION = 4096, 2048


def loop_dots(func: FuncOp) -> None:
    for dot in nested_ops(func, DotOp):
        if multiply_adds(dot) >= MANY and bit_width_of(dot.c.type) >= bit_width_of(f32):
            _loop(dot, min(multiply_adds(dot) // IN_ITERATION, shape_of(dot.a.type)[-1]))


def _loop(dot: DotOp, count: int) -> None:
    b = Builder.before(dot)
    rank = len(shape_of(dot.c.type))
    memories = [_stored(b, value, axis, count) for value, axis in ((dot.a, rank - 1), (dot.b, rank - 2))]
    body = slice_body(dot.c.type)
    index, sums = body.args
    sums.name_hint = dot.result.name_hint
    inside = Builder.at_end(body, dot.location)
    here = [inside.value(PrivateLoadOp(memory, index)) for memory in memories]
    part = dot.clone(dict(zip(dot.operands, (*here, sums), strict=True)))
    inside.insert(scf.YieldOp(inside.value(part)))
    replace(dot, [insert_loop(b, count, body, [dot.c]).results[0]])


def _stored(b: Builder, value: SSAValue, axis: int, count: int) -> SSAValue:
    memory = b.value(PrivateAllocOp(PrivateType(value.type, axis, count)))
    b.insert(PrivateStoreOp(value, memory))
    return memory

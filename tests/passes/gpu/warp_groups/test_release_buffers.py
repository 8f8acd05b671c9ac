"""A buffer is given back when the dots that read it are over, and not before."""

import re

import numpy as np
import pytest
from analysis.dot_line import MEMORY, SUMS
from backend.cuda.launching import compile_for, emulate_compiled
from ir_text import generic_asm, generic_text, run_filecheck
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

import deuteron
import deuteron.language as tl
from deuteron.errors import InternalError
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import FuncOp, ReturnOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import MemDescTransOp
from deuteron.ir.ttng.mbarrier import ArriveBarrierOp, barrier_type
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp
from deuteron.ir.types import i1, i32
from deuteron.passes.gpu.warp_groups.release_buffers import ReleaseBuffers


class Kernel:
    """Two barriers, two buffers, and ops in the order in which they are asked for."""

    def __init__(self):
        self.func = FuncOp("k", [i32, i1])
        self.b = Builder.at_end(self.func.body.block)
        self.count, self.pred = self.func.args
        self.count.name_hint, self.pred.name_hint = "n", "pred"
        self.zeros = self.b.constant(0.0, SUMS)
        self.empty = self.b.value(LocalAllocOp(buffers_type(barrier_type(), 2)))
        self.buffers = self.b.value(LocalAllocOp(buffers_type(MEMORY, 2)))
        self.single = self.b.value(LocalAllocOp(barrier_type()))

    def dot(self, slot: SSAValue, is_async: bool = True) -> tuple[SSAValue, SSAValue]:
        """A dot that reads a buffer; gives the buffer too."""
        buffer = self.b.value(MemDescIndexOp(self.buffers, slot))
        other = self.b.value(MemDescTransOp(buffer, (1, 0)))
        return self.b.value(WarpGroupDotOp(buffer, other, self.zeros, is_async=is_async)), buffer

    def release(self, slot: SSAValue, buffer: SSAValue, pred: SSAValue | None = None, single: bool = False) -> None:
        barrier = self.single if single else self.b.value(MemDescIndexOp(self.empty, slot))
        self.b.insert(ArriveBarrierOp(barrier, 4, pred, [buffer]))

    def wait(self, value: SSAValue, pendings: int) -> SSAValue:
        return self.b.insert(WarpGroupDotWaitOp([value], pendings)).outputs[0]

    def loop(self, body) -> SSAValue:
        """What is left of what a loop carries, in which `body` makes one of a slot and the other."""
        block = Block(arg_types=[i32, SUMS])
        block.args[0].name_hint = "i"
        outer, self.b = self.b, Builder.at_end(block)
        self.b.insert(scf.YieldOp(body(*block.args)))
        self.b = outer
        zero, one = self.b.constant(0, i32), self.b.constant(1, i32)
        return self.b.value(scf.ForOp(zero, self.count, one, [self.zeros], block))

    def text(self) -> str:
        self.b.insert(ReturnOp())
        module = ModuleOp([self.func])
        ReleaseBuffers().apply(None, module)
        module.verify()
        return re.sub(r" <\{.*", "", generic_text(module, locations=False))

    def checked(self, checks: str) -> None:
        run_filecheck(self.text(), checks)


def test_after_the_wait_for_what_reads_it():
    kernel = Kernel()
    slot = kernel.b.constant(0, i32)
    value, buffer = kernel.dot(slot)
    kernel.release(slot, buffer)
    kernel.wait(value, 0)
    kernel.checked("""
        // CHECK:      ttng.warp_group_dot"
        // CHECK-NOT:  arrive_barrier
        // CHECK:      ttng.warp_group_dot_wait
        // CHECK-NEXT: ttng.arrive_barrier""")


@pytest.mark.parametrize("is_async", [False, True])
def test_where_the_dot_is_over_it_stays(is_async):
    kernel = Kernel()
    slot = kernel.b.constant(0, i32)
    value, buffer = kernel.dot(slot, is_async)
    if is_async:
        kernel.wait(value, 0)
    kernel.b.constant(7, i32)
    kernel.release(slot, buffer)
    kernel.checked("""
        // CHECK:      arith.constant
        // CHECK:      ttng.warp_group_dot
        // CHECK:      arith.constant
        // CHECK-NEXT: ttg.memdesc_index
        // CHECK-NEXT: ttng.arrive_barrier""")


def test_after_the_last_of_several_waits():
    kernel = Kernel()
    slot = kernel.b.constant(0, i32)
    first, buffer = kernel.dot(slot)
    second, _ = kernel.dot(slot)
    other = kernel.b.value(MemDescTransOp(buffer, (1, 0)))
    third = kernel.b.value(WarpGroupDotOp(buffer, other, kernel.zeros, is_async=True))
    kernel.release(slot, buffer)
    kernel.wait(first, 2)
    kernel.wait(second, 1)
    kernel.wait(third, 0)
    kernel.checked("""
        // CHECK-NOT:  arrive_barrier
        // CHECK:      warp_group_dot_wait
        // CHECK-NEXT: warp_group_dot_wait
        // CHECK-NEXT: warp_group_dot_wait
        // CHECK-NEXT: arrive_barrier""")


def late(pred: bool = False, single: bool = False) -> Kernel:
    """A dot is in flight until that of the next iteration is."""
    kernel = Kernel()

    def body(slot, carried):
        value, buffer = kernel.dot(slot)
        kernel.release(slot, buffer, kernel.pred if pred else None, single)
        return kernel.wait(value, 1)

    kernel.wait(kernel.loop(body), 0)
    return kernel


def test_one_iteration_late_and_once_more_after_the_loop():
    late().checked(
        """
        // CHECK:      %[[LOOP:.*]] = "scf.for"(%[[LB:[0-9]+]], %n,
        // CHECK-NEXT: %read: i32
        // CHECK-NOT:  arrive_barrier
        // CHECK:      warp_group_dot_wait
        // CHECK-NEXT: %[[RUNS:.*]] = "arith.cmpi"(%[[LB]], %i)
        // CHECK-NEXT: %[[OLD:.*]] = "ttg.memdesc_index"(%{{.*}}, %read)
        // CHECK-NEXT: "ttng.arrive_barrier"(%[[OLD]], %[[RUNS]])
        // CHECK-NEXT: "scf.yield"(%{{.*}}, %i)
        // CHECK:      warp_group_dot_wait
        // CHECK-NEXT: %[[RUNS:.*]] = "arith.cmpi"(%[[LB]], %n)
        // CHECK-NEXT: %[[LAST:.*]] = "ttg.memdesc_index"
        // CHECK-NEXT: "ttng.arrive_barrier"(%[[LAST]], %[[RUNS]])
        // CHECK-NOT:  arrive_barrier"""
    )


def test_a_predicate_is_that_of_its_iteration():
    late(pred=True).checked("""
        // CHECK:      scf.for
        // CHECK:      %[[RUNS:.*]] = "arith.cmpi"
        // CHECK-NEXT: %[[BOTH:.*]] = "arith.andi"(%[[RUNS]], %read_1)
        // CHECK:      "ttng.arrive_barrier"(%{{.*}}, %[[BOTH]])
        // CHECK-NEXT: "scf.yield"(%{{.*}}, %i, %pred)
        // CHECK:      %[[RUNS:.*]] = "arith.cmpi"
        // CHECK-NEXT: %[[BOTH:.*]] = "arith.andi"(%[[RUNS]],
        // CHECK:      "ttng.arrive_barrier"(%{{.*}}, %[[BOTH]])""")


def test_a_barrier_that_is_always_the_same():
    found = late(single=True).text()
    assert found.count("ttng.arrive_barrier") == 2 and "%read" not in found


def test_a_dot_that_is_never_waited_for():
    kernel = Kernel()
    slot = kernel.b.constant(0, i32)
    _, buffer = kernel.dot(slot)
    kernel.release(slot, buffer)
    with pytest.raises(InternalError, match="a dot that is not known to end"):
        kernel.text()


def test_a_dot_of_an_iteration_that_no_wait_ends():
    """Others of the iteration are waited for, this one is in flight for ever."""
    kernel = Kernel()

    def body(slot, carried):
        _, buffer = kernel.dot(slot)
        kernel.release(slot, buffer)
        value, _ = kernel.dot(slot)
        return kernel.wait(value, 0)

    kernel.loop(body)
    with pytest.raises(InternalError, match="a dot that is not known to end"):
        kernel.text()


def test_after_a_dot_that_waits_for_all_before_it():
    kernel = Kernel()

    def body(slot, carried):
        first, buffer = kernel.dot(slot)
        kernel.release(slot, buffer)
        kernel.dot(slot, is_async=False)
        last, _ = kernel.dot(slot)
        kernel.wait(first, 2)
        return kernel.wait(last, 0)

    kernel.loop(body)
    kernel.checked("""
        // CHECK:      scf.for
        // CHECK:      warp_group_dot"
        // CHECK-NOT:  arrive_barrier
        // CHECK:      warp_group_dot"
        // CHECK-NEXT: arrive_barrier
        // CHECK:      warp_group_dot"
        // CHECK-NOT:  arrive_barrier
        // CHECK:      scf.yield""")


@deuteron.jit
def matmul(a, b, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in tl.range(n, warp_specialize=True):
        acc = tl.dot(tl.load(a + step * N * N + square), tl.load(b + step * N * N + square), acc)
    tl.store(out + square, acc)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_kernel_whose_dots_are_in_flight(rng, n):
    a, b = (rng.standard_normal((8, 64, 64)).astype(np.float16) for _ in range(2))
    out = np.full((64, 64), np.nan, np.float32)
    kernel = compile_for("cuda:90", matmul, a, b, out, n, N=64, num_stages=3)
    assert "ttng.arrive_barrier" in generic_asm(kernel, "ttgir")
    emulate_compiled(kernel, a, b, out, n, asynchronous="random")
    expected = sum((x.astype(np.float64) @ y for x, y in zip(a[:n], b[:n], strict=True)), np.zeros((64, 64)))
    np.testing.assert_allclose(out, expected, rtol=1e-2, atol=1e-2)

"""mbarriers: initialised, arrived at and waited for.

    W: mbarrier.try_wait.parity.shared::cta.b64 P, [%bar], %phase; @P bra D; bra W; D:

A wait is a loop around try_wait, which sleeps for a while by itself. Of the threads that arrive, each whose number is a
multiple of threads / count does; at the barriers of all CTAs of a cluster its neighbours do it with it, each at one.
"""

from __future__ import annotations

from functools import reduce

from xdsl.ir import Operation

from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.shared_tile import SharedTile
from deuteron.backend.llvm.builder import Touches
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import CompilationError

_ASSEMBLY = "convergent nounwind"
_WAIT = "{ .reg .pred P; W: mbarrier.try_wait.parity.shared::cta.b64 P, [$0], $1; @P bra D; bra W; D: }"
_INIT = "@GUARD mbarrier.init.shared::cta.b64 [$0], {count};"
_INVAL = "@GUARD mbarrier.inval.shared::cta.b64 [$0];"
_ARRIVE = "@GUARD mbarrier.arrive.shared::cta.b64 _, [$0];"
_ARRIVE_AT = (
    "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, $0, $1; "
    "@GUARD mbarrier.arrive.shared::cluster.b64 _, [remote]; }"
)
_EXPECT = "@GUARD mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {size};"


def init_barrier(ctx: CUDAContext, op: Operation, barrier: SharedTile) -> None:
    _where(ctx, [ctx.threads.owner(None)], _INIT.format(count=op.count.value.data), barrier.address)


def inval_barrier(ctx: CUDAContext, op: Operation, barrier: SharedTile) -> None:
    _where(ctx, [ctx.threads.owner(None)], _INVAL, barrier.address)


def fence_mbarrier_init(ctx: CUDAContext, op: Operation) -> None:
    ctx.b.intrinsic("llvm.nvvm.fence.mbarrier_init.release.cluster", "void", overloads=())


def barrier_expect(ctx: CUDAContext, op: Operation, barrier: SharedTile, pred: Value) -> None:
    text = _EXPECT.format(size=op.size.value.data)
    with ctx.in_first_warp(pred) as elected:
        _where(ctx, [elected], text, barrier.address)


def wait_barrier(ctx: CUDAContext, op: Operation, barrier: SharedTile, phase: Value, *deps: SharedTile) -> None:
    ctx.b.assembly(Touches.MEMORY, "void", _WAIT, "r,r", barrier.address, phase, attributes=_ASSEMBLY)


def arrive_barrier(ctx: CUDAContext, op: Operation, barrier: SharedTile, *others: Value | SharedTile) -> None:
    count, threads, num_ctas = op.count.value.data, ctx.threads.count, op.num_ctas
    if threads % (count * num_ctas):
        raise CompilationError(f"{op.name}: {threads} threads cannot arrive {count} times at {num_ctas} barriers.")
    if threads // count > 1:
        ctx.warp_barrier()
    pred = others[0] if op.pred is not None else None
    conditions = [ctx.threads.zero_bits((threads // count - 1) & ~(num_ctas - 1)), pred]
    if num_ctas == 1:
        _where(ctx, conditions, _ARRIVE, barrier.address)
    else:
        rank = ctx.b.and_(ctx.threads.lane, const("i32", num_ctas - 1))
        _where(ctx, conditions, _ARRIVE_AT, barrier.address, rank)


def _where(ctx: CUDAContext, conditions: list[Value | None], text: str, *operands: Value) -> None:
    """Assembly in the threads where all conditions hold: a predicate, so that no branch comes between dots."""
    given = [condition for condition in conditions if condition is not None]
    guards = [reduce(ctx.b.and_, given)] if given else []
    text = text.replace("@GUARD ", f"@${len(operands)} " if guards else "")
    constraints = ",".join([*["r"] * len(operands), *["b"] * len(guards)])
    ctx.b.assembly(Touches.MEMORY, "void", text, constraints, *operands, *guards, attributes=_ASSEMBLY)


def async_copy_mbarrier_arrive(ctx: CUDAContext, op: Operation, barrier: SharedTile) -> None:
    increment = ".noinc" if op.no_increment is not None else ""
    name = f"llvm.nvvm.cp.async.mbarrier.arrive{increment}.shared"
    ctx.b.intrinsic(name, "void", barrier.address, overloads=())


RULES: dict[str, Rule] = {
    "ttng.init_barrier": init_barrier,
    "ttng.inval_barrier": inval_barrier,
    "ttng.fence_mbarrier_init_release_cluster": fence_mbarrier_init,
    "ttng.barrier_expect": barrier_expect,
    "ttng.wait_barrier": wait_barrier,
    "ttng.arrive_barrier": arrive_barrier,
    "ttng.async_copy_mbarrier_arrive": async_copy_mbarrier_arrive,
}

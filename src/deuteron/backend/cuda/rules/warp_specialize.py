"""ttg.warp_specialize: each region is a branch for its warps, with threads, barriers and registers of its own.

    bar.sync 0                                all warps
    warp = shfl(tid / 32)                     a branch that ptxas knows to be uniform
    warp < 8:    setmaxnreg.inc 232; the default region, threads 0 to 255, bar.sync 1, 256
    else:        setmaxnreg.dec 40; the partition, threads 256 to 383, bar.sync 2, 128

A kernel is launched with the registers of a multiprocessor divided by its threads, or with `maxnreg`; what partitions
give back, the default region takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region

from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.llvm.types import const
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.machine.gpu import GPU


def warp_specialize(ctx: CUDAContext, op: WarpSpecializeOp) -> None:
    default = ctx.num_warps - sum(op.launched_warps)
    b, launched, counts = ctx.b, [default, *op.launched_warps], [default, *op.num_warps]
    ctx.barrier()
    warp, end, first = ctx.threads.uniform_warp, b.block("joined"), 0
    at_launch, registers = _registers(ctx, launched, op.registers) if op.registers else (0, [])
    for number, (count, region) in enumerate(zip(counts, op.regions, strict=True)):
        mine, others = b.block("partition"), b.block("others") if number + 1 < len(counts) else end
        if others is end:
            b.br(mine)
        else:
            b.cond_br(b.icmp("ult", warp, const("i32", first + launched[number])), mine, others)
        b.position(mine)
        if op.registers:
            _set_registers(ctx, at_launch, registers[number])
        if count < launched[number]:
            working = b.block("working")
            b.cond_br(b.icmp("ult", warp, const("i32", first + count)), working, end)
            b.position(working)
        _run(ctx, region, Threads(b, ctx.isa, ctx.machine.warp_size, count, first, number + 1))
        b.br(end)
        b.position(others)
        first += launched[number]


def _registers(ctx: CUDAContext, counts: Sequence[int], requested: Sequence[int]) -> tuple[int, list[int]]:
    """The registers of each thread at launch, and those of each region; together never more than at launch: whoever
    asked for more would wait for ever.
    """
    machine = ctx.machine
    threads = [machine.warp_size * count for count in counts]
    at_launch = registers_at_launch(machine, sum(counts), ctx.options.maxnreg)
    left = at_launch * sum(threads) - sum(x * y for x, y in zip(threads[1:], requested, strict=True))
    most = min(left // threads[0], machine.registers.max_per_thread)
    return at_launch, [_rounded(machine, most), *requested]


def registers_at_launch(machine: GPU, num_warps: int, limit: int | None) -> int:
    """Of each thread, where a multiprocessor has one such CTA."""
    shared_out = machine.registers.count // (machine.warp_size * num_warps)
    return _rounded(machine, min(shared_out, machine.registers.allowed(limit)))


def _rounded(machine: GPU, registers: int) -> int:
    return registers // machine.register_move_unit * machine.register_move_unit


def _set_registers(ctx: CUDAContext, at_launch: int, wanted: int) -> None:
    action = "inc" if wanted > at_launch else "dec"
    name = f"llvm.nvvm.setmaxnreg.{action}.sync.aligned.u32"
    ctx.b.intrinsic(name, "void", const("i32", wanted), overloads=())


def _run(ctx: CUDAContext, region: Region, threads: Threads) -> None:
    """What depends on the thread goes to a block of its own, before the region's."""
    first, body = ctx.b.current_block, ctx.b.block("body")
    ctx.b.position(body)
    with ctx.on(threads):
        ctx.run(region.block, [])
    last = ctx.b.current_block
    ctx.b.position(first)
    ctx.b.br(body)
    ctx.b.position(last)


RULES: dict[str, Rule] = {"ttg.warp_specialize": warp_specialize}

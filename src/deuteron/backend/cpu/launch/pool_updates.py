"""The machine code by which atomics need no lock while nobody else of the process updates anything, as LLVM IR.

    begin_updating(pool)        of each thread that is going to run programs with atomics: waits until none is alone
    begin_alone(pool, watch)    before a chunk of programs that look in their loops: `watch` says whether their atomics
                                may be plain updates
    end_alone(pool, watch)      after it, and before anything but the kernel runs on this thread
    make_room(pool, watch)      the same, if others wait

    A: begin_updating  begin_alone  plain updates ...  end_alone   begin_alone: B is there   locked updates ...
    B:                              begin_updating  waits |  begin_alone: A is there         locked updates ...

Whoever comes is counted first and looks then; whoever is alone says so first and counts then: one of them sees the
other. So at most one thread is alone, and only while no other is counted. A helper never is: its programs may wait for
those of a thread that comes. Nor is a thread whose process may share memory with one that it forked, or with one of
multiprocessing's: these count as another for ever (`thread_pool.py`). A locked instruction takes 5 ns, whatever it
does: additions to 16 elements at random took 110 ns, and 20 without locks.
"""

from __future__ import annotations

from deuteron.backend.cpu.launch.pool_layout import ALONE, POOL, WATCH
from deuteron.backend.cpu.launch.pool_words import PoolCode
from deuteron.backend.launcher.records import WORD
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

_LOOKS = 64  # until others come first, which may be who is waited for


def define_updates(module: Module) -> None:
    _define_begin_updating(module)
    _define_begin_alone(module)
    _define_end_alone(module)
    _define_make_room(module)


def _define_begin_updating(module: Module) -> None:
    """Who is alone ends its chunk, or looks in a loop (`ask`) and gives it up."""
    c = module.function("begin_updating", "void", [("ptr", "pool")], "external", kind=PoolCode)
    (pool,) = c.parameters
    look, done = c.block("look"), c.block("done")
    c.add_to(pool, POOL, "updating", c.word(1))
    c.br(look)
    c.position(look)
    with c.repeat(c.word(_LOOKS)):
        c.leave_if(c.is_null(c.read(pool, POOL, "alone")), done)
        c.pause()
    c.call("i32", "sched_yield")
    c.br(look)
    c.position(done)
    c.ret()


def _define_begin_alone(module: Module) -> None:
    c = module.function("begin_alone", "void", [("ptr", "pool"), ("ptr", "watch")], kind=PoolCode)
    pool, watch = c.parameters
    done = c.block("done")
    c.leave_if(c.is_not_null(c.field(watch, WATCH, "alone")), done)
    c.leave_if(_are_others(c, pool), done)
    c.leave_if(c.xor(c.exchange(pool, POOL, "alone", c.word(0), c.word(1)), const("i1", 1)), done)
    c.store(c.word(ALONE), c.part(watch, WATCH, "alone"), align=WORD)
    c.call("void", "make_room", pool, watch)
    c.br(done)
    c.position(done)
    c.ret()


def _are_others(c: PoolCode, pool: Value) -> Value:
    return c.differ(c.read(pool, POOL, "updating"), c.word(1))


def _define_end_alone(module: Module) -> None:
    c = module.function("end_alone", "void", [("ptr", "pool"), ("ptr", "watch")], kind=PoolCode)
    pool, watch = c.parameters
    with c.when(c.equal(c.field(watch, WATCH, "alone"), c.word(ALONE))):
        c.store(c.word(0), c.part(watch, WATCH, "alone"), align=WORD)
        c.write(pool, POOL, "alone", c.word(0))
    c.ret()


def _define_make_room(module: Module) -> None:
    c = module.function("make_room", "void", [("ptr", "pool"), ("ptr", "watch")], kind=PoolCode)
    pool, watch = c.parameters
    with c.when(_are_others(c, pool)):
        c.call("void", "end_alone", pool, watch)
    c.ret()

"""The machine code by which a launch runs on the threads of torch's operations, as LLVM IR.

    has_team(pool, job)                     whether it may, and is worth it
    run_in_team(pool, job, time, watch)     all programs of the job

These threads are a team of an OpenMP runtime. After each operation they look for the next one for some milliseconds,
and take the cores from the pool's threads meanwhile: of launches that alternate with operations on 16 cores those of
47 us took 323, those of 205 us 2,227. In the team they take as long as alone.

    caller     GOMP_parallel -> share: runs programs, waits for who runs some -> until all have come -> goes on
    another    looks for work -> share: helps -> looks for work

Where other processes have the cores, all wait for a thread that comes late. A launch that waited so is the last in the
team for a while (`_REST`), that such waiting takes a small part of the time.

Only one thread launches there, Python's main thread, since each thread that does has a team of its own. What a signal
handler launches meanwhile is in the pool, as `omp_in_parallel` says that the team is taken. A handler may fork: the
child, in which the team does not exist, leaves `share` by a jump past what waits for it.
"""

from __future__ import annotations

from deuteron.backend.cpu.launch.pool_code import is_forked
from deuteron.backend.cpu.launch.pool_layout import JOB, POOL
from deuteron.backend.cpu.launch.pool_words import PoolCode
from deuteron.backend.launcher.records import WORD, Record
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

# What the threads of a team are given: `ended` is when no program was left, `jump` where the child of a fork goes on.
_SHARED = Record("pool job time watch ended jump")
_JUMP_WORDS = 64  # of a jmp_buf: 200 bytes with glibc on x86-64, 312 on AArch64
_REST = 32  # times as long as a late thread was waited for
_ALL, _NO_FLAGS = const("i32", 0), const("i32", 0)


def define_team(module: Module) -> None:
    _define_share(module)
    _define_run_in_team(module)
    _define_has_team(module)


def _define_has_team(module: Module) -> None:
    """The job is worth waking threads, and a team of so many would be there.

    Not where the system gives no more threads: the runtime would end the process.
    """
    c = module.function("has_team", "i32", [("ptr", "pool"), ("ptr", "job")], kind=PoolCode)
    pool, job = c.parameters
    no = c.block("no")
    c.leave_if(c.is_null(c.field(pool, POOL, "parallel")), no)
    c.leave_if(c.is_not_null(c.field(pool, POOL, "is_full")), no)
    c.leave_if(c.is_null(c.field(job, JOB, "wakes")), no)
    c.leave_if(c.differ(c.field(pool, POOL, "owner"), c.call("i64", "pthread_self")), no)
    c.leave_if(c.icmp("ult", c.now(pool), c.field(pool, POOL, "team_from")), no)
    c.leave_if(c.is_not_null(_ask(c, pool, "in_parallel")), no)
    most = c.zext(_ask(c, pool, "max_threads"), "i64")
    c.ret(c.zext(c.icmp("uge", most, c.field(job, JOB, "num_threads")), "i32"))
    c.position(no)
    c.ret(const("i32", 0))


def _ask(c: PoolCode, pool: Value, function: str) -> Value:
    return c.call_pointer("i32", c.field(pool, POOL, function, "ptr"))


def _define_run_in_team(module: Module) -> None:
    given = [("ptr", "pool"), ("ptr", "job"), ("ptr", "time"), ("ptr", "watch")]
    c = module.function("run_in_team", "void", given, kind=PoolCode)
    pool, job, time, watch = c.parameters
    shared, jump = c.alloca("i64", len(_SHARED), align=WORD), c.alloca("i64", _JUMP_WORDS, align=16)
    done = c.block("done")
    for name, value in (("pool", pool), ("job", job), ("time", time), ("watch", watch), ("jump", jump)):
        c.store(value, c.part(shared, _SHARED, name), align=WORD)
    has_jumped = c.call_pointer("i32", c.field(pool, POOL, "set_jump", "ptr"), jump, attributes="returns_twice")
    c.leave_if(c.is_not_null(has_jumped), done)
    c.call_pointer("void", c.field(pool, POOL, "parallel", "ptr"), Value("ptr", "@share"), shared, _ALL, _NO_FLAGS)
    now = c.now(pool)
    late = c.sub(now, c.field(shared, _SHARED, "ended"))
    with c.when(c.icmp("ugt", late, c.field(pool, POOL, "spin"))):
        c.store(c.add(now, c.mul(late, c.word(_REST))), c.part(pool, POOL, "team_from"), align=WORD)
    c.br(done)
    c.position(done)
    c.ret()


def _define_share(module: Module) -> None:
    """What each thread of the team does; thread 0 is who launches."""
    c = module.function("share", "void", [("ptr", "shared")], kind=PoolCode)
    (shared,) = c.parameters
    pool, job, time, watch = (c.field(shared, _SHARED, name, "ptr") for name in _SHARED.names[:4])
    number = c.zext(_ask(c, pool, "thread_num"), "i64")
    with c.when(c.is_null(number)):
        c.call("void", "run_programs", pool, job, time, c.word(0), watch)
        c.call("void", "await_helpers", pool, job, watch)
        with c.when(is_forked(c, pool, job)):
            jump = c.field(shared, _SHARED, "jump", "ptr")
            c.call_pointer("void", c.field(pool, POOL, "long_jump", "ptr"), jump, const("i32", 1))
        c.store(c.now(pool), c.part(shared, _SHARED, "ended"), align=WORD)
        c.ret()
    with c.when(c.icmp("ult", number, c.field(job, JOB, "num_threads"))):
        c.add_to(job, JOB, "balance", c.word(-1))
        c.call("i64", "help", pool, job)
        c.call("void", "leave", pool, job)
    c.ret()

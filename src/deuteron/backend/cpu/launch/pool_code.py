"""The machine code of the thread pool, as LLVM IR: how a launch gets help, and what its helpers do.

    invite(pool, job, wanted)           ask idle workers to help, until so many have been asked; wakes some
    run_chunks(pool, job, until, watch) run programs until none is left, or that time has come; how many were run
    help(pool, job)                     the same of a helper, until none is left
    leave(pool, job)                    the last that a helper does to a job
    close(pool, job, watch)             after this nobody touches the job
    await_helpers(pool, job, watch)     until those that run programs have left
    work(pool, worker)                  what the thread of a worker runs; it never returns
    own_scratch(key, bytes)             scratch memory of the calling thread

A worker has a mailbox, the word `job` of its record. Whoever launches puts its job there, if the worker is idle, and
takes it out again if it is still there when all programs have been taken: no launch waits for a thread to wake up. A
worker that has nothing to do looks at its mailbox for a while (`spin`), then sleeps. The caller wakes some of those
that sleep, and each of them some more. Many threads may launch at once: each gets the workers that are idle, and asks
again while it runs.

The last that a helper does to a job is to add 1 to its balance: it is on the stack of its caller, who returns then.
"""

from __future__ import annotations

from deuteron.backend.cpu.launch.interrupt_code import BETWEEN_SIGNALS, new_watch, set_watch
from deuteron.backend.cpu.launch.pool_layout import BUSY, JOB, LINE, LOOKING, POOL, WORKER
from deuteron.backend.cpu.launch.pool_updates import define_updates
from deuteron.backend.cpu.launch.pool_words import PoolCode
from deuteron.backend.launcher.code import NULL, Code
from deuteron.backend.launcher.records import WORD
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

_WOKEN_AT_ONCE = 4  # by each that is awake: with 2 helpers come later on 16 cores, with 16 the caller does
_LOOKS = 32  # at a mailbox, between two looks at the clock
_MONOTONIC = 1  # CLOCK_MONOTONIC
_SCRATCH_HEADER = 64  # bytes before the memory: its size, and so much that it is aligned


def define_pool(module: Module) -> None:
    """Add the functions above, and `nanoseconds(clock)`."""
    _define_nanoseconds(module)
    _define_own_scratch(module)
    define_updates(module)
    _define_wake_some(module)
    _define_invite(module)
    _define_run_chunks(module)
    _define_help(module)
    _define_leave(module)
    _define_await_helpers(module)
    _define_close(module)
    _define_next_job(module)
    _define_work(module)


def _define_nanoseconds(module: Module) -> None:
    c = module.function("nanoseconds", "i64", [("ptr", "clock")], kind=PoolCode)
    time = c.alloca("i64", 2, align=WORD)
    c.call_pointer("i32", c.parameters[0], const("i32", _MONOTONIC), time)
    c.ret(c.add(c.mul(c.at(time, c.word(0)), c.word(10**9)), c.at(time, c.word(1))))


def _define_own_scratch(module: Module) -> None:
    """Grows to what the largest kernel so far needs; freed when the thread ends. NULL where there is no memory."""
    c = module.function("own_scratch", "ptr", [("i64", "key"), ("i64", "bytes")], "external", kind=PoolCode)
    key, num_bytes = c.parameters
    place, fail = c.variable("ptr", NULL), c.block("fail")
    block = c.call("ptr", "pthread_getspecific", key)
    with c.when(c.is_not_null(block)):
        with c.when(c.icmp("uge", c.at(block, c.word(0)), num_bytes)):
            c.ret(c.gep("i8", block, c.word(_SCRATCH_HEADER)))
        c.call("i32", "pthread_setspecific", key, NULL)
        c.call("void", "free", block)
    size = c.add(num_bytes, c.word(_SCRATCH_HEADER))
    c.leave_if(c.is_not_null(c.call("i32", "posix_memalign", place, c.word(_SCRATCH_HEADER), size)), fail)
    made = c.load("ptr", place)
    c.put(made, c.word(0), num_bytes)
    with c.when(c.is_null(c.call("i32", "pthread_setspecific", key, made))):
        c.ret(c.gep("i8", made, c.word(_SCRATCH_HEADER)))
    c.call("void", "free", made)
    c.br(fail)
    c.position(fail)
    c.ret(NULL)


def _define_wake_some(module: Module) -> None:
    """Wake workers that sleep and are invited to a job, in whose `cursor` it is written how many were looked at."""
    c = module.function("wake_some", "void", [("ptr", "pool"), ("ptr", "job")], kind=PoolCode)
    pool, job = c.parameters
    woken = c.variable("i64", c.word(0))
    look, done = c.block("look"), c.block("done")
    num_workers = c.read(pool, POOL, "num_workers")
    c.br(look)
    c.position(look)
    index = c.add_to(job, JOB, "cursor", c.word(1))
    c.leave_if(c.icmp("uge", index, num_workers), done)
    worker = c.worker(pool, index)
    c.leave_if(c.differ(c.read(worker, WORKER, "job"), c.ptrtoint(job)), look)
    c.leave_if(c.is_null(c.read(worker, WORKER, "is_asleep")), look)
    c.wake(c.part(worker, WORKER, "sleep"))
    c.increase(woken)
    c.cond_br(c.icmp("ult", c.load("i64", woken), c.word(_WOKEN_AT_ONCE)), look, done)
    c.position(done)
    c.ret()


def _define_invite(module: Module) -> None:
    given = [("ptr", "pool"), ("ptr", "job"), ("i64", "wanted")]
    c = module.function("invite", "void", given, kind=PoolCode)
    pool, job, wanted = c.parameters
    before, wakes, wake = c.field(job, JOB, "invited"), c.field(job, JOB, "wakes"), c.block("wake")
    invited = c.part(job, JOB, "invited")
    with c.repeat(c.read(pool, POOL, "num_workers")) as index:
        c.leave_if(c.icmp("uge", c.load("i64", invited), wanted), wake)
        worker = c.worker(pool, index)
        is_asleep = c.is_not_null(c.read(worker, WORKER, "is_asleep"))
        with (
            c.when(c.is_null(c.read(worker, WORKER, "job"))),
            c.when(c.or_(c.is_not_null(wakes), c.xor(is_asleep, const("i1", 1)))),
            c.when(c.exchange(worker, WORKER, "job", c.word(0), c.ptrtoint(job))),
        ):
            c.increase(invited)
    c.br(wake)
    c.position(wake)
    with c.when(c.differ(c.load("i64", invited), before)):
        c.write(job, JOB, "cursor", c.word(0))
        c.call("void", "wake_some", pool, job)
    c.ret()


def _define_run_chunks(module: Module) -> None:
    """-1 where there is no scratch memory. A chunk is half of a thread's share of what is left: what one thread runs is
    near in memory, and yet all end at about the same time. A thread alone takes all.
    """
    given = [("ptr", "pool"), ("ptr", "job"), ("i64", "until"), ("ptr", "watch")]
    c = module.function("run_chunks", "i64", given, kind=PoolCode)
    pool, job, until, watch = c.parameters
    count, scratch = c.variable("i64", c.word(0)), c.variable("ptr", NULL)
    take, again, run, done = (c.block(name) for name in ("take", "again", "run", "done"))
    names = ("function", "values", "num_arguments", "grid", "total", "num_threads", "scratch_bytes", "least", "most")
    job_word = {name: c.field(job, JOB, name) for name in names}
    with c.when(c.is_not_null(job_word["scratch_bytes"])):
        function, key = c.field(pool, POOL, "scratch", "ptr"), c.field(pool, POOL, "key")
        c.store(c.call_pointer("ptr", function, key, job_word["scratch_bytes"]), scratch)
        with c.when(c.is_null(c.load("ptr", scratch))):
            c.ret(c.word(-1))
    addresses = _addresses(c, c.inttoptr(job_word["values"]), job_word["num_arguments"], watch)
    atomics = c.field(job, JOB, "atomics")
    with c.when(c.is_not_null(atomics)):
        c.call("void", "begin_updating", pool)
    c.br(take)
    c.position(take)
    begin = c.read(job, JOB, "taken")
    c.leave_if(c.icmp("uge", begin, job_word["total"]), done)
    rest = c.sub(job_word["total"], begin)
    is_alone = c.equal(job_word["num_threads"], c.word(1))
    share = c.select(is_alone, rest, c.udiv(rest, c.shl(job_word["num_threads"], c.word(1))))
    for opcode, limit in (("llvm.umax", job_word["least"]), ("llvm.umin", job_word["most"]), ("llvm.umin", rest)):
        share = c.intrinsic(opcode, "i64", share, limit)
    end = c.add(begin, share)
    c.cond_br(c.exchange(job, JOB, "taken", begin, end), run, again)
    c.position(again)
    c.pause()
    c.br(take)
    c.position(run)
    grid, memory = c.inttoptr(job_word["grid"]), c.load("ptr", scratch)
    with c.when(c.equal(atomics, c.word(LOOKING))):
        c.call("void", "begin_alone", pool, watch)
    c.call_pointer("void", c.inttoptr(job_word["function"]), addresses, grid, begin, end, memory)
    c.call("void", "end_alone", pool, watch)
    c.increase(count, share)
    c.leave_if(c.is_null(until), take)
    c.cond_br(c.icmp("ult", c.now(pool), until), take, done)
    c.position(done)
    with c.when(c.is_not_null(atomics)):
        c.add_to(pool, POOL, "updating", c.word(-1))
    c.ret(c.load("i64", count))


def _addresses(c: Code, values: Value, count: Value, watch: Value) -> Value:
    """The array of the slots' addresses, on the stack; after them what the loops of the kernel look at."""
    addresses = c.alloca("ptr", c.add(count, c.word(1)), align=16)
    with c.repeat(count) as index:
        c.put(addresses, index, c.gep("i64", values, index))
    c.put(addresses, count, watch)
    return addresses


def _define_help(module: Module) -> None:
    c = module.function("help", "i64", [("ptr", "pool"), ("ptr", "job")], "external", kind=PoolCode)
    pool, job = c.parameters
    watch = set_watch(c, new_watch(c), "hear", job, pool)
    c.ret(c.call("i64", "run_chunks", pool, job, c.word(0), watch))


def _define_leave(module: Module) -> None:
    c = module.function("leave", "void", [("ptr", "pool"), ("ptr", "job")], kind=PoolCode)
    pool, job = c.parameters
    balance = c.add_to(job, JOB, "balance", c.word(1))
    with c.when(c.equal(balance, c.word(-1))):
        c.wake(c.part(pool, POOL, "left"))
    c.ret()


def _define_await_helpers(module: Module) -> None:
    """Until the balance is 0. In a process that was forked meanwhile, by a signal handler, there are none."""
    c = module.function("await_helpers", "void", [("ptr", "pool"), ("ptr", "job"), ("ptr", "watch")], kind=PoolCode)
    pool, job, watch = c.parameters
    time = c.alloca("i64", 2, align=WORD)
    done = c.block("done")
    c.leave_if(is_forked(c, pool, job), done)
    _spin(c, pool, lambda: c.is_null(c.read(job, JOB, "balance")), done)
    left, look = c.part(pool, POOL, "left"), c.block("look")
    c.br(look)
    c.position(look)
    c.lock(left)
    with c.when(c.is_not_null(c.read(job, JOB, "balance"))):
        c.wait_until(left, c.add(c.now(pool), c.word(BETWEEN_SIGNALS)), time)
    c.unlock(left)
    c.leave_if(c.is_null(c.read(job, JOB, "balance")), done)
    c.call("i32", "ask", watch)
    c.cond_br(is_forked(c, pool, job), done, look)
    c.position(done)
    c.ret()


def _define_close(module: Module) -> None:
    """All programs have been taken: take invitations back, and wait for those that have accepted one."""
    c = module.function("close", "void", [("ptr", "pool"), ("ptr", "job"), ("ptr", "watch")], kind=PoolCode)
    pool, job, watch = c.parameters
    address, done = c.ptrtoint(job), c.block("done")
    awaited = c.part(job, JOB, "invited")
    c.leave_if(is_forked(c, pool, job), done)
    c.leave_if(c.is_null(c.load("i64", awaited)), done)
    with c.repeat(c.read(pool, POOL, "num_workers")) as index:
        worker = c.worker(pool, index)
        with (
            c.when(c.equal(c.read(worker, WORKER, "job"), address)),
            c.when(c.exchange(worker, WORKER, "job", address, c.word(0))),
        ):
            c.increase(awaited, -1)
    count = c.load("i64", awaited)
    c.add_to(job, JOB, "balance", c.sub(c.word(0), count))
    c.call("void", "await_helpers", pool, job, watch)
    c.br(done)
    c.position(done)
    c.ret()


def is_forked(c: PoolCode, pool: Value, job: Value) -> Value:
    """Whether this process is a child that was made while the job ran."""
    return c.differ(
        c.load_atomic("i64", c.part(pool, POOL, "generation"), "monotonic"), c.field(job, JOB, "generation")
    )


def _spin(c: PoolCode, pool: Value, is_there, found) -> None:
    """Look again and again for as long as `spin` says; leave for `found` if it is there.

    After a quarter of that other threads come first, of which one may be what it waits for: where there are fewer cores
    than threads they share one.
    """
    begin, spin = c.now(pool), c.field(pool, POOL, "spin")
    end, patience = c.add(begin, spin), c.add(begin, c.lshr(spin, c.word(2)))
    again, over = c.block("again"), c.block("over")
    c.br(again)
    c.position(again)
    with c.repeat(c.word(_LOOKS)):
        c.leave_if(is_there(), found)
        c.pause()
    now = c.now(pool)
    with c.when(c.icmp("uge", now, patience)):
        c.call("i32", "sched_yield")
    c.cond_br(c.icmp("ult", now, end), again, over)
    c.position(over)


def _define_next_job(module: Module) -> None:
    """The job that a worker is invited to, once there is one."""
    c = module.function("next_job", "i64", [("ptr", "pool"), ("ptr", "worker")], kind=PoolCode)
    pool, worker = c.parameters
    found, sleep = c.block("found"), c.part(worker, WORKER, "sleep")
    _spin(c, pool, lambda: c.is_not_null(c.read(worker, WORKER, "job")), found)
    look, wait, awake = c.block("look"), c.block("wait"), c.block("awake")
    c.lock(sleep)
    c.write(worker, WORKER, "is_asleep", c.word(1))
    c.br(look)
    c.position(look)
    c.cond_br(c.is_null(c.read(worker, WORKER, "job")), wait, awake)
    c.position(wait)
    c.wait(sleep)
    c.br(look)
    c.position(awake)
    c.write(worker, WORKER, "is_asleep", c.word(0))
    c.unlock(sleep)
    c.br(found)
    c.position(found)
    c.ret(c.read(worker, WORKER, "job"))


def _define_work(module: Module) -> None:
    c = module.function("work", "void", [("ptr", "pool"), ("ptr", "worker")], "external", kind=PoolCode)
    pool, worker = c.parameters
    again, wake = c.block("again"), c.block("wake")
    c.br(again)
    c.position(again)
    address = c.call("i64", "next_job", pool, worker)
    c.leave_if(c.icmp("ule", address, c.word(BUSY)), again)  # it was taken back
    accepted = c.exchange(worker, WORKER, "job", address, c.word(BUSY))
    c.cond_br(accepted, wake, again)
    c.position(wake)
    job = c.inttoptr(address)
    c.call("void", "wake_some", pool, job)
    c.call("i64", "help", pool, job)
    c.write(worker, WORKER, "job", c.word(0))  # first: whoever launches again at once finds it idle
    c.call("void", "leave", pool, job)
    c.br(again)


assert LINE % WORD == 0 and len(WORKER) * WORD % LINE == 0

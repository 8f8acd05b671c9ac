"""The machine code of `trampoline.py`, as LLVM IR.

trampoline_module()         the functions run_here, run_with_python and those of `pool_code.py`

run_grid(target, num_arguments, grid, total, values)
    how many helpers are worth it -> invite them, or the team of torch -> run chunks -> close
                                     now and then: invite again; has an interrupt come?
"""

from __future__ import annotations

from deuteron.backend.cpu.launch.interrupt_code import BETWEEN_SIGNALS, define_interrupts, new_watch, set_watch
from deuteron.backend.cpu.launch.pool_code import define_pool
from deuteron.backend.cpu.launch.pool_layout import JOB, LINE, NO_MEMORY, POOL, TARGET, UNITS
from deuteron.backend.cpu.launch.pool_words import PoolCode
from deuteron.backend.cpu.launch.team_code import define_team
from deuteron.backend.launcher.records import WORD
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value
from deuteron.backend.native_launch import PYTHON_LAUNCHES

_MOST_EXTENT = 1 << 20  # the product of three fits a word
_MOST_FACTOR = 1 << 31  # the product of two does, and is long
# Nanoseconds. What is worth a thread more, which looks for work, and what is worth waking threads: on 16 cores grids of
# 50 us take as long with it as alone, those of 20 us twice as long. A chunk at least: some of what handing it out
# takes; and at most, for kernels that do not look in their loops. How often a launch asks for more help.
WORTH_A_THREAD, _WORTH_WAKING = 5_000, 50_000
_SHORTEST_CHUNK, _LONGEST_CHUNK = 1_000, 50_000_000
_BETWEEN_INVITATIONS = 100_000


def trampoline_module() -> Module:
    module = Module("trampolines")
    define_pool(module)
    define_interrupts(module)
    _define_run_alone(module)
    _define_run_programs(module)
    define_team(module)
    _define_run_job(module)
    _define_run_grid(module)
    _define_run_here(module)
    _define_run_with_python(module)
    return module


def _define_run_alone(module: Module) -> None:
    """A job of one program, without looking at the clock."""
    c = module.function("run_alone", "i64", [("ptr", "pool"), ("ptr", "job")], kind=PoolCode)
    pool, job = c.parameters
    watch = set_watch(c, new_watch(c), "ask", job, pool)
    count = c.call("i64", "run_chunks", pool, job, c.word(0), watch)
    c.ret(c.select(c.icmp("slt", count, c.word(0)), c.word(NO_MEMORY), c.read(job, JOB, "stop")))


def _define_run_grid(module: Module) -> None:
    given = [("ptr", "target"), ("i64", "num_arguments"), ("ptr", "grid"), ("i64", "total"), ("ptr", "values")]
    c = module.function("run_grid", "i64", given, kind=PoolCode)
    target, num_arguments, grid, total, values = c.parameters
    job = c.alloca("i64", len(JOB), align=LINE)
    word = {name: c.field(target, TARGET, name) for name in TARGET.names}
    pool = c.inttoptr(word["pool"])
    time = c.load_atomic("i64", c.inttoptr(word["time"]), "monotonic")
    is_known = c.is_not_null(time)
    helpers, wakes = _helpers(c, word["num_threads"], total, time)
    fields = {name: word[name] for name in ("function", "scratch_bytes", "atomics")}
    fields |= {"values": c.ptrtoint(values), "grid": c.ptrtoint(grid), "num_arguments": num_arguments, "total": total}
    fields |= {name: c.word(0) for name in ("invited", "taken", "balance", "cursor", "stop", "signals")}
    limits = {"least": _SHORTEST_CHUNK, "most": _LONGEST_CHUNK}
    fields |= {name: _programs(c, is_known, time, limit) for name, limit in limits.items()}
    fields |= {"num_threads": c.add(helpers, c.word(1)), "wakes": wakes}
    fields |= {"generation": c.field(pool, POOL, "generation")}
    for name, value in fields.items():
        c.store(value, c.part(job, JOB, name), align=WORD)
    with c.when(c.equal(total, c.word(1))):
        c.ret(c.call("i64", "run_alone", pool, job))
    c.ret(c.call("i64", "run_job", pool, job, c.inttoptr(word["time"]), helpers))


def _programs(c: PoolCode, is_known: Value, time: Value, nanoseconds: int) -> Value:
    """How many programs take so long, as far as it is known; at least 1."""
    time = c.select(is_known, time, c.word(nanoseconds * UNITS))
    return c.intrinsic("llvm.umax", "i64", c.udiv(c.word(nanoseconds * UNITS), time), c.word(1))


def _helpers(c: PoolCode, num_threads: Value, total: Value, time: Value) -> tuple[Value, Value]:
    """How many threads to invite, and whether to wake them.

    Each has a program, and one of several has something to do, where it is known how much that is.
    """
    others = c.sub(c.intrinsic("llvm.umin", "i64", num_threads, total), c.word(1))
    expected = c.mul(*(c.intrinsic("llvm.umin", "i64", factor, c.word(_MOST_FACTOR)) for factor in (time, total)))
    worth = c.udiv(expected, c.word(WORTH_A_THREAD * UNITS))
    is_long = c.icmp("uge", expected, c.word(_WORTH_WAKING * UNITS))
    is_unknown = c.is_null(time)
    helpers = c.intrinsic("llvm.umin", "i64", others, c.select(is_unknown, others, worth))
    return helpers, c.zext(c.or_(is_unknown, is_long), "i64")


def _define_run_programs(module: Module) -> None:
    """Of who launches: run programs until none is left, and ask so many helpers now and then. Writes down how long one
    takes: the time of those that ran on this thread.
    """
    given = [("ptr", "pool"), ("ptr", "job"), ("ptr", "time"), ("i64", "wanted"), ("ptr", "watch")]
    c = module.function("run_programs", "void", given, kind=PoolCode)
    pool, job, time, wanted, watch = c.parameters
    count, until = c.variable("i64", c.word(0)), c.variable("i64", c.word(0))
    total = c.field(job, JOB, "total")
    run, further, over = (c.block(name) for name in ("run", "further", "over"))
    begin = c.now(pool)
    c.store(begin, until)
    c.store(c.add(begin, c.word(BETWEEN_SIGNALS)), c.part(job, JOB, "signals"))
    c.br(run)
    c.position(run)
    c.increase(until, _BETWEEN_INVITATIONS)
    ran = c.call("i64", "run_chunks", pool, job, c.load("i64", until), watch)
    with c.when(c.icmp("slt", ran, c.word(0))):
        c.call("void", "stop", job, c.word(NO_MEMORY))
        c.br(over)
    c.increase(count, ran)
    c.cond_br(c.icmp("uge", c.read(job, JOB, "taken"), total), over, further)
    c.position(further)
    _invite(c, pool, job, wanted)
    c.store(c.now(pool), until)
    c.cond_br(c.is_null(c.call("i32", "ask", watch)), run, over)
    c.position(over)
    end = c.now(pool)
    with c.when(c.and_(c.is_not_null(c.load("i64", count)), c.is_null(c.read(job, JOB, "stop")))):
        took = c.udiv(c.mul(c.sub(end, begin), c.word(UNITS)), c.load("i64", count))
        c.store_atomic(c.add(took, c.word(1)), time, "monotonic")
    c.ret()


def _define_run_job(module: Module) -> None:
    """The launch of several programs."""
    given = [("ptr", "pool"), ("ptr", "job"), ("ptr", "time"), ("i64", "wanted")]
    c = module.function("run_job", "i64", given, kind=PoolCode)
    pool, job, time, wanted = c.parameters
    watch = set_watch(c, new_watch(c), "ask", job, pool)
    in_team, over = c.block("in_team"), c.block("over")
    has_helpers = c.is_not_null(wanted)
    with c.when(has_helpers):
        c.leave_if(c.is_not_null(c.call("i32", "has_team", pool, job)), in_team)
        _wake_for_others(c, pool, job)
        c.call("void", "invite", pool, job, wanted)
    c.call("void", "run_programs", pool, job, time, wanted, watch)
    c.call("void", "close", pool, job, watch)
    with c.when(has_helpers):
        c.store_atomic(c.now(pool), c.part(pool, POOL, "last_launch"), "monotonic")
    c.br(over)
    c.position(in_team)
    c.call("void", "run_in_team", pool, job, time, watch)
    c.br(over)
    c.position(over)
    c.ret(c.read(job, JOB, "stop"))


def _wake_for_others(c: PoolCode, pool: Value, job: Value) -> None:
    """Wake helpers though this launch is not worth it if one has just ended: the next one will find them awake."""
    since = c.sub(c.now(pool), c.load_atomic("i64", c.part(pool, POOL, "last_launch"), "monotonic"))
    with c.when(c.icmp("ult", since, c.field(pool, POOL, "spin"))):
        c.put(c.part(job, JOB, "wakes"), c.word(0), c.word(1))


def _invite(c: PoolCode, pool: Value, job: Value, wanted: Value) -> None:
    with c.when(c.icmp("ult", c.field(job, JOB, "invited"), wanted)):
        c.call("void", "invite", pool, job, wanted)


def _define_run_here(module: Module) -> None:
    """What compiled launchers call. In Python is the launch of a grid that is huge, or has too few workers to ask."""
    given = [("ptr", "target"), ("ptr", "extents"), ("ptr", "values"), ("i64", "stream")]
    c = module.function("run_here", "i64", given, "external", kind=PoolCode)
    target, extents, values, _ = c.parameters
    in_python = c.block("in_python")
    sizes = [c.at(extents, c.word(axis)) for axis in range(3)]
    grid = c.alloca("i32", 3, align=WORD)
    for axis, size in enumerate(sizes):
        c.store(c.trunc(size, "i32"), c.gep("i32", grid, c.word(axis)))
    c.leave_if(c.icmp("uge", c.or_(c.or_(*sizes[:2]), sizes[2]), c.word(_MOST_EXTENT)), in_python)
    total = c.mul(c.mul(*sizes[:2]), sizes[2])
    pool = c.field(target, TARGET, "pool", "ptr")
    threads = c.intrinsic("llvm.umin", "i64", c.field(target, TARGET, "num_threads"), total)
    has_few = c.icmp("ugt", threads, c.add(c.read(pool, POOL, "num_workers"), c.word(1)))
    c.leave_if(c.and_(has_few, c.is_null(c.field(pool, POOL, "is_full"))), in_python)
    c.ret(c.call("i64", "run_grid", target, c.field(target, TARGET, "num_arguments"), grid, total, values))
    c.position(in_python)
    c.ret(c.word(PYTHON_LAUNCHES))


def _define_run_with_python(module: Module) -> None:
    """The same of Python, which holds its lock: no signal handler runs between this and what it waits for."""
    given = [("ptr", "target"), ("i64", "num_arguments"), ("ptr", "grid"), ("i64", "total"), ("ptr", "values")]
    c = module.function("run_with_python", "i64", given, "external", kind=PoolCode)
    thread = c.python("PyEval_SaveThread")
    status = c.call("i64", "run_grid", *c.parameters)
    c.python("PyEval_RestoreThread", thread)
    c.ret(status)

"""The machine code by which a launch ends before all of it has run, as LLVM IR.

    stop(job, why)                      no further program begins; those that have begun end when they look next
    ask(watch)                          of who launches: whether it is to end; an interrupt may have come
    hear(watch)                         of a helper: whether it is to end

Both are called now and then by the loops of kernels (`countdown.py`), which get the WATCH of their thread after all
arguments; `ask` between programs, too, and while helpers are waited for. A handler of Python's runs in it, in the
middle of a program: it may launch kernels, for which there is other scratch memory, and which do not find its thread
alone (`pool_updates.py`), nor does who waits for it.
"""

from __future__ import annotations

from deuteron.backend.cpu.launch.pool_layout import INTERRUPTED, JOB, NEVER_ALONE, POOL, WATCH
from deuteron.backend.cpu.launch.pool_words import PoolCode
from deuteron.backend.launcher.code import NULL
from deuteron.backend.launcher.records import WORD
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const

BETWEEN_SIGNALS = 50_000_000  # nanoseconds
_ON, _ENDS = const("i32", 0), const("i32", 1)


def define_interrupts(module: Module) -> None:
    _define_stop(module)
    _define_interrupted(module)
    _define_hear(module)
    _define_ask(module)


def new_watch(c: PoolCode) -> Value:
    """Memory for one, in the entry block."""
    return c.alloca("i64", len(WATCH), align=WORD)


def set_watch(c: PoolCode, watch: Value, look: str, job: Value, pool: Value) -> Value:
    """Whoever looks at it does so by the function of that name."""
    alone = c.word(0 if look == "ask" else NEVER_ALONE)
    fields = {"look": Value("ptr", f"@{look}"), "job": job, "pool": pool, "alone": alone, "has_packed": c.word(0)}
    for name, value in fields.items():
        c.store(value, c.part(watch, WATCH, name), align=WORD)
    return watch


def _define_stop(module: Module) -> None:
    c = module.function("stop", "void", [("ptr", "job"), ("i64", "why")], kind=PoolCode)
    job, why = c.parameters
    c.write(job, JOB, "stop", why)
    c.write(job, JOB, "taken", c.field(job, JOB, "total"))
    c.ret()


def _define_interrupted(module: Module) -> None:
    """Whether a signal handler of Python has raised; the exception is set then. Called without Python's lock."""
    c = module.function("interrupted", "i32", [], kind=PoolCode)
    state = c.python("PyGILState_Ensure")
    raised = c.python("PyErr_CheckSignals")
    c.python("PyGILState_Release", state)
    c.ret(raised)


def _define_hear(module: Module) -> None:
    c = module.function("hear", "i32", [("ptr", "watch")], kind=PoolCode)
    job = c.field(c.parameters[0], WATCH, "job", "ptr")
    c.ret(c.zext(c.is_not_null(c.read(job, JOB, "stop")), "i32"))


def _define_ask(module: Module) -> None:
    """An exception is set at most once: after that the launch ends."""
    c = module.function("ask", "i32", [("ptr", "watch")], kind=PoolCode)
    (watch,) = c.parameters
    job, pool = (c.field(watch, WATCH, name, "ptr") for name in ("job", "pool"))
    c.call("void", "make_room", pool, watch)
    signals, key = c.part(job, JOB, "signals"), c.field(pool, POOL, "key")
    with c.when(c.is_not_null(c.read(job, JOB, "stop"))):
        c.ret(_ENDS)
    now, time = c.now(pool), c.load("i64", signals)
    with c.when(c.or_(c.is_null(time), c.icmp("ult", now, time))):
        with c.when(c.is_null(time)):
            c.store(c.add(now, c.word(BETWEEN_SIGNALS)), signals)
        c.ret(_ON)
    c.call("void", "end_alone", pool, watch)
    scratch = c.call("ptr", "pthread_getspecific", key)
    _set_scratch(c, key, NULL)
    raised = c.call("i32", "interrupted")
    own = c.call("ptr", "pthread_getspecific", key)
    _set_scratch(c, key, scratch)
    c.call("void", "free", own)
    c.store(c.add(c.now(pool), c.word(BETWEEN_SIGNALS)), signals)
    with c.when(c.is_null(raised)):
        c.ret(_ON)
    c.call("void", "stop", job, c.word(INTERRUPTED))
    c.ret(_ENDS)


def _set_scratch(c: PoolCode, key: Value, memory: Value) -> None:
    """The thread has had some, so that this takes no memory and does not fail; or has none now and had none before."""
    c.call("i32", "pthread_setspecific", key, memory)

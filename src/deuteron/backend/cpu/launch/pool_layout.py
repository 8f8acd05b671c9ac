"""What the machine code of the thread pool and Python have in common in memory, as records of words.

    POOL      one for the process; WORKER records follow, from WORKERS bytes on, one for each thread that helps
    JOB       a launch, on the stack of its caller, or in memory of Python's
    WATCH     what a thread that runs programs of it looks at now and then: `interrupt_code.py`
    TARGET    what `run_here` is given of a kernel

What several threads write has cache lines of its own, LINE bytes: the processor fetches them in pairs.
"""

from __future__ import annotations

from deuteron.backend.launcher.records import WORD, Record

LINE = 128
MOST_HELPERS = 1023


def _on_lines(*parts: str) -> Record:
    """A record each of whose parts begins with a line; what fills them has names of its own."""
    names: list[str] = []
    for part in parts:
        names += part.split()
        names += [f"unused{len(names) + number}" for number in range(-len(names) % (LINE // WORD))]
    return Record(" ".join(names))


# `scratch` is a function (key, bytes) that gives the thread's scratch memory; `key` that of pthread_getspecific.
# `generation` counts forks; `is_full` says that the system gives no more threads. `left` has a mutex and a condition:
# whoever waits for helpers to leave sleeps there.
# `last_launch` is when one ended that had use for helpers.
# `updating` counts threads that run programs with atomics; `alone`: whether one of them updates without locks.
# `parallel` to `long_jump` are functions of an OpenMP runtime and the C library, 0 where there is no runtime; `owner`
# is the thread that may launch on its team, not before `team_from` (`team_code.py`).
POOL = _on_lines(
    "num_workers is_full key clock scratch spin generation "
    "parallel thread_num max_threads in_parallel set_jump long_jump owner",
    "last_launch team_from",
    "updating alone",
    "left",
)
# `job` is 0 of a worker that waits, BUSY, or the address of the JOB that it is invited to.
WORKER = _on_lines("job", "is_asleep", "sleep")
BUSY = 1
WORKERS = len(POOL) * WORD
# Programs are handed out in order: `taken` of `total`, `least` to `most` at a time; there are `num_threads` for them.
# `wakes`: whether helpers that sleep are invited, too. `stop`: 0, or why programs that have begun are to end;
# `signals`: when the caller looks next whether a signal has come, 0 before it has looked at the clock.
# `balance` is what helpers that have left add 1 to, and the caller takes off how many it invited.
# `atomics`: whether its programs update what others do, and may do so alone (`pool_updates.py`): 0, LOCKED, or LOOKING.
JOB = _on_lines(
    "function values num_arguments grid total num_threads scratch_bytes least most wakes invited generation "
    "stop signals atomics",
    "taken",
    "balance cursor",
)
# `look(watch)`: whether the launch is to end. `alone`:
# whether atomics of the thread need no lock: 0, ALONE, or, of a helper, NEVER_ALONE. `has_packed`: whether the thread's
# scratch memory has what programs of the launch have packed in it (`rules/reused.py`).
WATCH = Record("look job pool alone has_packed")
ALONE, NEVER_ALONE = 1, 2
LOCKED, LOOKING = 1, 2
# `time` points to the time that a program takes, which `run_here` writes.
TARGET = Record("function num_arguments scratch_bytes time pool num_threads atomics")

MUTEX_BYTES = 64  # of a pthread_mutex_t, and of a pthread_cond_t: Linux and macOS need at most 64
POOL_BYTES = WORKERS + MOST_HELPERS * len(WORKER) * WORD

UNITS = 1024  # of a nanosecond, in which the time of a program is kept
# What `run_grid` returns besides 0 and PYTHON_LAUNCHES; `stop` of a job.
INTERRUPTED, NO_MEMORY = 1, 2

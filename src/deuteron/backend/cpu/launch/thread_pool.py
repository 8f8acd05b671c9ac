"""The threads that help the one that launches a kernel. What they do is machine code: `pool_code.py`.

    pool = thread_pool()
    pool.start(3)                   see to it that there are three helpers, if the system has so many threads to give
    pool.address                    the POOL record
    pool.join_torch()               launches of the main thread may run on the threads of torch's operations

Helpers are started when they are first needed and stay; they are daemons of Python, which are in machine code, without
Python's lock, for as long as they live. In a forked child they are started anew. Any number of threads may use the pool
at once.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from deuteron.backend.cpu.launch.pool_layout import LINE, MOST_HELPERS, MUTEX_BYTES, POOL, POOL_BYTES, WORKER, WORKERS
from deuteron.backend.cpu.launch.torch_team import RUNTIME, torch_runtime
from deuteron.backend.cpu.launch.trampoline import trampolines
from deuteron.backend.launcher.records import WORD
from deuteron.once import once

# For how long a helper looks for the next job, and a caller for helpers to leave, before it sleeps.
_SPIN_NANOSECONDS = 50_000
_MANY = 1 << 32  # threads, of which one more or less changes nothing


class ThreadPool:
    """The pool's memory, which lives as long as the process, and its threads."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._memory = ctypes.create_string_buffer(POOL_BYTES + LINE)
        self.address = -(-ctypes.addressof(self._memory) // LINE) * LINE
        self._words = (ctypes.c_uint64 * len(POOL)).from_address(self.address)
        self._libc.pthread_key_create(ctypes.c_void_p(self._place("key")), self._libc.free)
        clock, scratch = _address(self._libc.clock_gettime), trampolines().own_scratch
        self._set(clock=clock, scratch=scratch, spin=_SPIN_NANOSECONDS)
        self._begin()
        self._has_forked = False
        if _is_one_of_several():
            self._set(updating=_MANY)
        os.register_at_fork(before=self._count_child, after_in_child=self._start_anew)

    @property
    def num_workers(self) -> int:
        return self._words[POOL.index("num_workers")]

    def start(self, num_workers: int) -> None:
        """See to it that there are so many helpers, or those that can be had."""
        if self._is_enough(num_workers):
            return
        with self._lock:
            if self._is_starting:  # by this thread: a signal handler launches with those that there are
                return
            self._is_starting = True
            try:
                while not self._is_enough(num_workers):
                    self._start_worker()
            finally:
                self._is_starting = False

    def _is_enough(self, num_workers: int) -> bool:
        return self.num_workers >= num_workers or bool(self._words[POOL.index("is_full")])

    def join_torch(self) -> None:
        """Once torch is loaded, and its operations run on threads of an OpenMP runtime."""
        has_joined, generation = (self._words[POOL.index(name)] for name in ("parallel", "generation"))
        runtime = None if has_joined or generation else torch_runtime()
        if runtime:
            self.join(runtime)

    def join(self, runtime: ctypes.CDLL) -> None:
        """Let launches of the main thread run on the team of this OpenMP runtime."""
        functions = {name: _address(getattr(runtime, function)) for name, function in RUNTIME.items()}
        jumps = {"set_jump": _address(self._libc._setjmp), "long_jump": _address(self._libc.longjmp)}
        self._set(owner=threading.main_thread().ident or 0, **jumps, **functions)

    def leave_team(self) -> None:
        self._set(parallel=0)

    def set_scratch(self, function: int) -> int:
        """Let another function give threads their scratch memory, the same in all of a launch, whose programs find
        there what others have packed; the address of the one before.
        """
        before = self._words[POOL.index("scratch")]
        self._set(scratch=function)
        return before

    def _start_worker(self) -> None:
        """Its record counts before there is a thread, which may be interrupted as it starts: a record without one is
        nothing but an invitation that nobody accepts.
        """
        number = self.num_workers
        if number == MOST_HELPERS:
            self._set(is_full=1)
            return
        worker = self.address + WORKERS + number * len(WORKER) * WORD
        ctypes.memset(worker, 0, len(WORKER) * WORD)
        self._make_mutex(worker + WORKER.index("sleep") * WORD)
        self._set(num_workers=number + 1)
        work = trampolines().work
        try:
            threading.Thread(target=work, args=(self.address, worker), name="deuteron", daemon=True).start()
        except RuntimeError:  # no more threads can be had: those there are, or the caller alone, do the work
            self._set(is_full=1)

    def _begin(self) -> None:
        self._lock, self._is_starting = threading.RLock(), False
        self._make_mutex(self._place("left"))
        self._set(num_workers=0, is_full=0)

    def _count_child(self) -> None:
        """It may share memory with this process, and counts as a thread that updates for ever; nobody is alone then."""
        if not self._has_forked:
            self._has_forked = True
            trampolines().begin_updating(self.address)

    def _start_anew(self) -> None:
        """In a forked child, which has none of the threads. There atomics are locked, since a handler that forks may be
        in the middle of a launch, which goes on.
        """
        self._set(generation=self._words[POOL.index("generation")] + 1, updating=_MANY, alone=0)
        self.leave_team()
        self._begin()

    def _make_mutex(self, place: int) -> None:
        """And its condition, which follows; waits for it are until a time of the clock that the machine code reads."""
        ctypes.memset(place, 0, 2 * MUTEX_BYTES)
        self._libc.pthread_mutex_init(ctypes.c_void_p(place), None)
        clock = ctypes.create_string_buffer(MUTEX_BYTES)
        self._libc.pthread_condattr_init(clock)
        self._libc.pthread_condattr_setclock(clock, time.CLOCK_MONOTONIC)
        self._libc.pthread_cond_init(ctypes.c_void_p(place + MUTEX_BYTES), clock)

    def _place(self, name: str) -> int:
        return self.address + POOL.index(name) * WORD

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self._words[POOL.index(name)] = value


def _is_one_of_several() -> bool:
    """Whether multiprocessing started this process, which may share memory with others then."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


thread_pool = once(ThreadPool)

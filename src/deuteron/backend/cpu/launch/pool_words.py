"""Functions of the thread pool's machine code, as LLVM IR: words that several threads write, their mutexes, the clock.

c = module.function("close", "void", [("ptr", "pool"), ("ptr", "job")], kind=PoolCode)
taken = c.read(job, JOB, "taken")           a word that another thread may write at any time
c.lock(mutex); c.wait(mutex); c.unlock(mutex)
"""

from __future__ import annotations

from deuteron.backend.cpu.launch.pool_layout import MUTEX_BYTES, POOL, WORKER, WORKERS
from deuteron.backend.launcher.code import Code
from deuteron.backend.launcher.records import WORD, Record
from deuteron.backend.llvm.intrinsics import PAUSE
from deuteron.backend.llvm.targets import machine
from deuteron.backend.llvm.types import Value

_SECOND = 10**9  # nanoseconds


class PoolCode(Code):
    """With words that several threads write, and their mutexes."""

    def part(self, record: Value, layout: Record, name: str) -> Value:
        """The address of a word of a record."""
        return self.after(record, layout.index(name))

    def read(self, record: Value, layout: Record, name: str) -> Value:
        """A word that another thread may write at any time."""
        return self.load_atomic("i64", self.part(record, layout, name), "seq_cst")

    def write(self, record: Value, layout: Record, name: str, value: Value) -> None:
        self.store_atomic(value, self.part(record, layout, name), "seq_cst")

    def add_to(self, record: Value, layout: Record, name: str, value: Value) -> Value:
        """The value before."""
        return self.atomicrmw("add", self.part(record, layout, name), value, "seq_cst")

    def exchange(self, record: Value, layout: Record, name: str, expected: Value, value: Value) -> Value:
        """Whether the word was the expected one, and now is the other."""
        place = self.part(record, layout, name)
        return self.equal(self.cmpxchg(place, expected, value, "seq_cst", "seq_cst"), expected)

    def now(self, pool: Value) -> Value:
        """Nanoseconds."""
        return self.call("i64", "nanoseconds", self.field(pool, POOL, "clock", "ptr"))

    def pause(self) -> None:
        """Leave the core to the other thread that shares it, where that can be said."""
        if machine() == "x86_64":
            self.call("void", PAUSE)

    def lock(self, mutex: Value) -> None:
        self.call("i32", "pthread_mutex_lock", mutex)

    def unlock(self, mutex: Value) -> None:
        self.call("i32", "pthread_mutex_unlock", mutex)

    def wait(self, mutex: Value) -> None:
        """Of the condition after the mutex, which is held."""
        self.call("i32", "pthread_cond_wait", self._condition(mutex), mutex)

    def wait_until(self, mutex: Value, nanoseconds: Value, time: Value) -> None:
        """The same, and no longer than until then; `time` is memory of two words."""
        self.put(time, self.word(0), self.udiv(nanoseconds, self.word(_SECOND)))
        self.put(time, self.word(1), self.urem(nanoseconds, self.word(_SECOND)))
        self.call("i32", "pthread_cond_timedwait", self._condition(mutex), mutex, time)

    def wake(self, mutex: Value) -> None:
        """All that wait at the condition after the mutex; what they wait for has been written.

        One that has looked before, with the mutex, waits by the time that this has it.
        """
        self.lock(mutex)
        self.unlock(mutex)
        self.call("i32", "pthread_cond_broadcast", self._condition(mutex))

    def _condition(self, mutex: Value) -> Value:
        return self.after(mutex, MUTEX_BYTES // WORD)

    def worker(self, pool: Value, index: Value) -> Value:
        return self.after(pool, self.add(self.mul(index, self.word(len(WORKER))), self.word(WORKERS // WORD)))

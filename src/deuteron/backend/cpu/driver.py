"""Loads a compiled kernel and runs it over a grid on this machine's cores.

    launch = load_kernel(obj, metadata)
    launch((8, 1, 1), [x.ctypes.data, 1000])        the runtime parameters: addresses and numbers

Programs that may wait for one another run at the same time, whatever DEUTERON_NUM_THREADS is (`together.py`). When an
assertion fails no further program begins, and the launch raises AssertionFailure; where an access is out of bounds that
is checked, MemoryAccessError (`control.py`).

A launch has ended when it returns. Programs are handed out in chunks, so that a core that is late takes fewer. A grid
of one program, and any grid where DEUTERON_NUM_THREADS is 1, runs on the caller's thread. Each thread has scratch
memory that it keeps. Measured on two cores: 1.7 us for one empty program with 5 arguments, 8 us for any number of
them up to 10,000 on both.

A launch that will take longer than 0.3 s by what is known of its programs can be interrupted (Ctrl-C): its caller
waits, and other threads run it. A single program cannot, unless the kernel asserts or checks: its loops then look
whether they are to stop, which they also do after a failure in another program.

Compiled launchers run a grid on the caller's thread that is shorter than that. How long a program takes is measured:
by them, and now and then of the first program of a grid that is launched from Python, which others then wait for.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from deuteron.backend.arguments import SLOT_BYTES, ArgumentSlots
from deuteron.backend.cpu.control import CALLED_OFF, Control, pack_spans
from deuteron.backend.cpu.control import SIZE as CONTROL_SIZE
from deuteron.backend.cpu.native_target import MOST_SCRATCH, UNITS
from deuteron.backend.cpu.thread_pool import run_on_threads
from deuteron.backend.cpu.together import MOST_TOGETHER, run_together
from deuteron.backend.cpu.trampoline import target_words, trampolines
from deuteron.backend.llvm.loader import LoadedObject, load_object
from deuteron.backend.metadata import KernelMetadata, Param
from deuteron.backend.native_launch import NativeLaunch
from deuteron.backend.spans import Span
from deuteron.errors import LaunchError
from deuteron.options import settings

_MAX_PROGRAMS = 2**63 - 1
_CHUNKS_PER_THREAD = 16  # so that programs of unequal length spread evenly; not measured
# Nanoseconds: of a launch from which on it can be interrupted, and of the programs that it then still waits for.
_LONG, _INTERRUPTIBLE = 300_000_000, 50_000_000
_TIMED_FIRST, _TIMED_EVERY = 3, 64  # launches of several programs from Python of which the first is timed


class Scratch(threading.local):
    """Memory of the calling thread, which grows to what the largest kernel so far needs."""

    size = 0
    address: int | None = None

    def at_least(self, size: int) -> int | None:
        """The address, a multiple of 64, of `size` bytes; None where no kernel has needed any."""
        if size > self.size:
            self.memory = ctypes.create_string_buffer(size + 63)
            self.address = (ctypes.addressof(self.memory) + 63) & ~63
            self.size = size
        return self.address


_scratch = Scratch()


class LoadedKernel:
    """A kernel's code in memory; called with a grid and arguments, it runs."""

    def __init__(self, loaded: LoadedObject, metadata: KernelMetadata):
        self._loaded = loaded  # the code is freed with it
        self.function = loaded.address(metadata.symbol)
        self._name = metadata.name
        self._slots = ArgumentSlots(metadata.name, metadata.runtime_params)
        self._scratch_bytes = metadata.scratch_bytes
        self._waiting_line = metadata.waiting_line
        self._assertions = metadata.assertions
        self._checked = _named_pointers(metadata.runtime_params) if metadata.is_checked else []
        self._run_range, self._run_shared, self._run_here = trampolines()
        self._time = ctypes.c_uint64(0)  # of a program
        self._num_launches = 0

    def __call__(self, grid: Sequence[int], values: Sequence[Any], stream: int = 0) -> None:
        """Run the programs of a grid. There is no queue: `stream` is what a GPU is told.

        A kernel that checks what it accesses is told the span of each address that has one (`spans.py`).
        """
        spans = [(name, getattr(values[number], "span", None)) for number, name in self._checked]
        self.run_packed(grid, self._slots.pack(values), stream, spans)

    def run_packed(
        self,
        grid: Sequence[int],
        packed: bytes,
        stream: int | None = None,
        spans: Sequence[tuple[str, Span | None]] = (),
    ) -> None:
        """Launch with the arguments as `ArgumentSlots` packs them."""
        extents, total = self._check_grid(grid)
        if not total:
            return
        count = len(packed) // SLOT_BYTES
        if self._waiting_line or self._assertions:
            self._run_controlled(packed, count, extents, total, spans)
        else:
            self._run(packed, count, extents, total)

    def prepare(self) -> None:
        """Do what else a first launch would have to: nothing."""

    def native_launch(self) -> NativeLaunch | None:
        """How compiled launchers run a grid that is short; None where more has to be done for it."""
        if self._waiting_line or self._assertions or self._scratch_bytes > MOST_SCRATCH:
            return None
        fixed = (self.function, self._slots.count, self._scratch_bytes)
        return NativeLaunch(self._run_here, target_words(*fixed, ctypes.addressof(self._time)))

    def _run(self, slots: Any, count: int, extents: bytes, total: int) -> None:
        begin = self._run_first(slots, count, extents) if total > 1 else 0
        num_threads = min(settings.num_threads, total) if total > 1 else 1
        if total > 1 and self._time.value * total > _LONG * UNITS * num_threads:
            self._run_interruptibly(slots, count, extents, total, begin)
            return
        if num_threads == 1:
            scratch = _scratch.at_least(self._scratch_bytes)
            self._run_range(self.function, slots, count, extents, begin, total, scratch)
            return
        chunk = max(1, total // (num_threads * _CHUNKS_PER_THREAD))
        run_on_threads(self._shared_task(slots, count, extents, total, chunk, begin)[0], num_threads)

    def _run_interruptibly(self, slots: Any, count: int, extents: bytes, total: int, begin: int) -> None:
        """On other threads only, so that Ctrl-C reaches the caller; programs that have not begun then do not."""
        chunk = max(1, _INTERRUPTIBLE * UNITS // self._time.value)
        run, counter = self._shared_task(slots, count, extents, total, chunk, begin)

        def stop() -> None:
            counter.value = total

        run_together(run, min(settings.num_threads, total), stop)

    def _run_first(self, slots: Any, count: int, extents: bytes) -> int:
        """Run the first program and note its time, if it is to be noted; how many programs have run."""
        self._num_launches += 1
        if self._num_launches > _TIMED_FIRST and self._num_launches % _TIMED_EVERY:
            return 0
        scratch = _scratch.at_least(self._scratch_bytes)
        start = time.perf_counter_ns()
        self._run_range(self.function, slots, count, extents, 0, 0, scratch)
        middle = time.perf_counter_ns()
        self._run_range(self.function, slots, count, extents, 0, 1, scratch)
        took = time.perf_counter_ns() - middle - (middle - start)
        self._time.value = max(took, 1) * UNITS
        return 1

    def _run_controlled(
        self, packed: bytes, count: int, extents: bytes, total: int, spans: Sequence[tuple[str, Span | None]]
    ) -> None:
        """With the control block after the arguments."""
        words = packed + bytes(CONTROL_SIZE) + pack_spans([span for _, span in spans])
        slots = ctypes.create_string_buffer(words, len(words))
        control = Control.from_buffer(slots, len(packed))
        if self._waiting_line:
            self._run_together(slots, count + 1, extents, total, control)
        else:
            self._run_stoppable(slots, count + 1, extents, total, control)
        control.raise_failure(self._name, self._assertions, spans)

    def _run_stoppable(self, slots: Any, count: int, extents: bytes, total: int, control: Control) -> None:
        """Programs that look in their loops whether to stop: on other threads unless the last launch was short."""
        begin = time.perf_counter_ns()
        num_threads = min(settings.num_threads, total)
        expected = self._time.value * total / num_threads
        if 0 < expected < _LONG * UNITS:
            self._run(slots, count, extents, total)
        else:
            chunk = max(1, total // (num_threads * _CHUNKS_PER_THREAD))
            run, _ = self._shared_task(slots, count, extents, total, chunk)
            run_together(run, num_threads, lambda: _call_off(control))
        self._time.value = max(1, (time.perf_counter_ns() - begin) * num_threads * UNITS // total)

    def _run_together(self, slots: Any, count: int, extents: bytes, total: int, control: Control) -> None:
        """A thread for each program, as far as there may be so many."""

        subject = f"kernel '{self._name}', which waits in line {self._waiting_line},"
        run, _ = self._shared_task(slots, count, extents, total, 1)
        run_together(run, min(total, MOST_TOGETHER), lambda: _call_off(control), subject)

    def _shared_task(
        self, slots: Any, count: int, extents: bytes, total: int, chunk: int, begin: int = 0
    ) -> tuple[Callable[[], None], ctypes.c_uint64]:
        """What each of several threads calls: it runs chunks of the programs from `begin` on until none are left. And
        the counter of those that have begun.
        """
        counter = ctypes.c_uint64(begin)

        def run() -> None:
            scratch = _scratch.at_least(self._scratch_bytes)
            self._run_shared(self.function, slots, count, extents, total, scratch, chunk, ctypes.addressof(counter))

        return run, counter

    def _check_grid(self, grid: Sequence[int]) -> tuple[bytes, int]:
        """The extents as the kernel reads them, and how many programs there are."""
        total = grid[0] * grid[1] * grid[2]
        if min(grid) < 0 or max(grid) > 2**31 - 1 or total > _MAX_PROGRAMS:
            raise LaunchError(
                f"the grid of kernel '{self._name}' is {tuple(grid)}: an extent goes from 0 to {2**31 - 1}, "
                f"and there are at most 2**63 - 1 programs"
            )
        return struct.pack("<3I", *grid), total


def _call_off(control: Control) -> None:
    """Make the programs end that look whether to stop."""
    control.stop = control.stop or CALLED_OFF


def _named_pointers(params: Sequence[Param]) -> list[tuple[int, str]]:
    """Which of the arguments are pointers, in order."""
    return [(number, param.name) for number, param in enumerate(params) if param.kind == "pointer"]


def load_kernel(obj: bytes, metadata: KernelMetadata) -> Callable[[Sequence[int], Sequence[Any]], None]:
    """The function that launches a kernel: `launch(grid, values)`, with the three extents of the grid."""
    is_announced = bool(metadata.options.get("line_info"))
    return LoadedKernel(load_object(obj, [metadata.symbol], is_announced), metadata)

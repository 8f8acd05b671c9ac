"""Loads a compiled kernel and runs it over a grid on this machine's cores.

    launch = load_kernel(obj, metadata)
    launch((8, 1, 1), [x.ctypes.data, 1000])        the runtime parameters: addresses and numbers

Programs that may wait for one another run at the same time, whatever DEUTERON_NUM_THREADS is (`together.py`). When an
assertion fails no further program begins, and the launch raises AssertionFailure; where an access is out of bounds that
is checked, MemoryAccessError (`control.py`).

A launch has ended when it returns. All of it is one call of machine code (`trampoline.py`), in which helpers take
programs in chunks, so that a core that is late takes fewer. A grid of one program, one that is short, and any grid
where DEUTERON_NUM_THREADS is 1, runs on the caller's thread. Each thread has scratch memory that it keeps.

How long a program takes is known from the last launch. Ctrl-C ends a launch at the next chunk, which takes 50 ms or is
one program, and in the middle of a program where the kernel is compiled for it, as those are that Python launches: its
loops look now and then (`countdown.py`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from deuteron.backend.arguments import SLOT_BYTES, ArgumentSlots
from deuteron.backend.cpu.launch.control import CALLED_OFF, Control, pack_spans
from deuteron.backend.cpu.launch.control import SIZE as CONTROL_SIZE
from deuteron.backend.cpu.launch.pool_layout import JOB, LOCKED, LOOKING, NO_MEMORY, TARGET
from deuteron.backend.cpu.launch.thread_pool import thread_pool
from deuteron.backend.cpu.launch.together import MOST_TOGETHER, Waiting, run_together
from deuteron.backend.cpu.launch.trampoline import trampolines
from deuteron.backend.llvm.loader import LoadedObject, load_object
from deuteron.backend.metadata import KernelMetadata, Param
from deuteron.backend.native_launch import MISSING, NativeLaunch
from deuteron.backend.spans import Span
from deuteron.errors import LaunchError
from deuteron.settings import environment_entry, settings
from deuteron.tracebacks import api_boundary

_MAX_PROGRAMS = 2**63 - 1


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
        self._atomics = _atomics_of(metadata)
        self._checked = _named_pointers(metadata.runtime_params) if metadata.is_checked else []
        self._time = ctypes.c_uint64(0)  # of a program
        self._target: Any = (0, None)  # for how many threads, and the words
        self._num_together = 0  # threads that a launch took whose programs wait

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
        """How compiled launchers run a grid; None where more has to be done for it."""
        threads = environment_entry("DEUTERON_NUM_THREADS")
        if self._waiting_line or self._assertions or threads is None:
            return None
        variables, key = threads
        condition = variables, key, variables.get(key, MISSING)
        target = self._target_words(settings.num_threads)
        return NativeLaunch(trampolines().run_here, tuple(target), self._fail, conditions=(condition,))

    def _run(self, slots: Any, count: int, extents: bytes, total: int) -> None:
        num_threads = settings.num_threads
        thread_pool().start(min(num_threads, total) - 1)
        known, target = self._target
        if known != num_threads:
            target = (ctypes.c_uint64 * len(TARGET))(*self._target_words(num_threads))
            self._target = num_threads, target
        status = trampolines().run_with_python(ctypes.addressof(target), count, extents, total, slots)
        if status:
            self._fail(status, ())

    def _target_words(self, num_threads: int) -> list[int]:
        thread_pool().join_torch()
        return TARGET.pack(
            function=self.function,
            num_arguments=self._slots.count,
            scratch_bytes=self._scratch_bytes,
            time=ctypes.addressof(self._time),
            pool=thread_pool().address,
            num_threads=num_threads,
            atomics=self._atomics,
        )

    @api_boundary
    def _fail(self, number: int, extents: Sequence[int]) -> None:
        """Raise what a launch returned; after an interrupt its exception is set."""
        assert number == NO_MEMORY
        raise MemoryError(f"no memory for {self._scratch_bytes} bytes that a program of kernel '{self._name}' takes")

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
            self._run(slots, count + 1, extents, total)
        control.raise_failure(self._name, self._assertions, spans)

    def _run_together(self, slots: Any, count: int, extents: bytes, total: int, control: Control) -> None:
        """On as many threads as it takes; the next launch begins with so many."""
        subject = f"kernel '{self._name}', which waits in line {self._waiting_line},"
        job, kept = self._job(slots, count, extents, total)

        def run() -> None:
            if trampolines().help(thread_pool().address, ctypes.addressof(job)) < 0:
                self._fail(NO_MEMORY, ())

        def call_off() -> None:
            """Make programs leave the loops in which they wait, and those that take long; begin no other."""
            control.stop = control.stop or CALLED_OFF
            job[JOB.index("stop")], job[JOB.index("taken")] = CALLED_OFF, total

        run.kept = kept  # type: ignore[attr-defined]
        waiting = Waiting(subject, min(total, MOST_TOGETHER), lambda: max(0, total - job[JOB.index("taken")]))
        num_threads = min(total, max(settings.num_threads, self._num_together))
        self._num_together = run_together(run, num_threads, call_off, waiting)

    def _job(self, slots: Any, count: int, extents: bytes, total: int) -> tuple[ctypes.Array, object]:
        """The record of a launch that hands out one program at a time, and what has to be kept for it."""
        grid = ctypes.create_string_buffer(extents, len(extents))
        fields = {"function": self.function, "values": ctypes.addressof(slots), "num_arguments": count, "total": total}
        fields |= {"grid": ctypes.addressof(grid), "scratch_bytes": self._scratch_bytes}
        fields |= {"atomics": self._atomics}
        words = JOB.pack(**fields, least=1, most=1, num_threads=1)
        return (ctypes.c_uint64 * len(JOB))(*words), (grid, slots)

    def _check_grid(self, grid: Sequence[int]) -> tuple[bytes, int]:
        """The extents as the kernel reads them, and how many programs there are."""
        total = grid[0] * grid[1] * grid[2]
        if min(grid) < 0 or max(grid) > 2**31 - 1 or total > _MAX_PROGRAMS:
            raise LaunchError(
                f"the grid of kernel '{self._name}' is {tuple(grid)}: an extent goes from 0 to {2**31 - 1}, "
                f"and there are at most 2**63 - 1 programs"
            )
        return struct.pack("<3I", *grid), total


def _named_pointers(params: Sequence[Param]) -> list[tuple[int, str]]:
    """Which of the arguments are pointers, in order."""
    return [(number, param.name) for number, param in enumerate(params) if param.kind == "pointer"]


def _atomics_of(metadata: KernelMetadata) -> int:
    """Whether there are any, and whether others that come have not to wait until a program ends."""
    if not metadata.has_atomics:
        return 0
    return LOOKING if metadata.options.get("interruptible") else LOCKED


def load_kernel(obj: bytes, metadata: KernelMetadata) -> Callable[[Sequence[int], Sequence[Any]], None]:
    """The function that launches a kernel: `launch(grid, values)`, with the three extents of the grid."""
    is_announced = bool(metadata.options.get("line_info"))
    return LoadedKernel(load_object(obj, [metadata.symbol], is_announced), metadata)

"""Runs a kernel: arguments into memory, the grid in waves of blocks, each wave by a scheduler.

    launch(ptx, "add", grid=(8,), block=(128,), shared_bytes=0, args=(x, y, out, np.int32(1000)))

Arrays are read and written in place; scalars are packed by the type of the kernel's parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.ma  # noqa: F401  (np.unique imports it at its first call, in the middle of which another thread may fork)

from deuteron.emulator.arguments import pack_arguments
from deuteron.emulator.loading import load_program
from deuteron.emulator.machine.group import Group
from deuteron.emulator.machine.launch_state import LaunchState
from deuteron.emulator.machine.scheduler import Scheduler
from deuteron.emulator.machine.wave import Wave
from deuteron.emulator.machine.windows import SHARED_WINDOW
from deuteron.emulator.options import EmulatorOptions
from deuteron.emulator.program import Program
from deuteron.emulator.types import TYPES
from deuteron.errors import LaunchError, OutOfResources
from deuteron.ptx.syntax import Immediate, Variable

Dim = int | Sequence[int]
_SHARED_LIMITS = {80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
_DEFAULT_THREADS = 512


def launch(
    ptx: str,
    kernel_name: str | None,
    grid: Dim,
    block: Dim,
    shared_bytes: int = 0,
    args: Sequence[object] = (),
    cluster: Dim | None = None,
    options: EmulatorOptions | None = None,
) -> None:
    """Run a kernel of a PTX module (None: its only one) on NumPy arrays; raises EmulatorError where it is at fault.

    Other arrays are accepted where `numpy.asarray` gives a view of them (torch CPU tensors). A tensor map is an
    argument made by `deuteron.emulator.TensorMap`.
    """
    program = load_program(ptx, kernel_name)
    run = Launch(program, as_dim(grid), as_dim(block), shared_bytes, args, cluster, options or EmulatorOptions())
    run.run()


def as_dim(value: Dim) -> tuple[int, int, int]:
    sizes = (value,) if isinstance(value, int) else tuple(int(size) for size in value)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise LaunchError(f"a grid or block has one to three positive sizes, got {value}")
    return (*sizes, 1, 1)[:3]


class Launch:
    """One launch of a program; `state` is what all its waves share."""

    def __init__(
        self,
        program: Program,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_shared: int,
        args: Sequence[object],
        cluster: Dim | None,
        options: EmulatorOptions,
    ):
        self.program = program
        given = cluster or program.function.directives.get("reqnctapercluster")
        size, layout = as_dim(given or 1), program.layout
        granules = program.shared_granule, program.global_granule
        self.state = LaunchState(grid, block, size, given is not None, dynamic_shared, layout, *granules, options)
        self._check()
        self.state.addresses.update(pack_arguments(program.function.name, layout, self.state.memory, args))
        for variable in layout.module_variables:
            self._add_variable(variable)

    def run(self) -> None:
        with np.errstate(all="ignore"):
            for blocks in self._waves():
                self._run_wave(blocks)

    def _waves(self) -> list[np.ndarray]:
        state = self.state
        total = prod(state.grid)
        at_once = state.options.blocks_at_once or max(_DEFAULT_THREADS // state.block_size, 1)
        at_once = -(-at_once // state.cluster_size) * state.cluster_size
        return [np.arange(start, min(start + at_once, total)) for start in range(0, total, at_once)]

    def _run_wave(self, blocks: np.ndarray) -> None:
        wave = Wave(self.state, blocks)
        scheduler = Scheduler(self.program, wave.asynchronous.deliver)
        threads = np.arange(wave.num_threads)
        group = Group(wave, scheduler, threads, len(self.program.function.registers))
        scheduler.run(group)
        with scheduler.reporting(group):
            wave.asynchronous.finish()

    def _check(self) -> None:
        state = self.state
        required = self.program.function.directives.get("reqntid")
        if required and as_dim(required) != state.block:
            raise LaunchError(f"the kernel requires blocks of {as_dim(required)} threads, got {state.block}")
        if state.block_size > 1024:
            raise LaunchError(f"a block has at most 1024 threads, got {state.block_size}")
        if any(g % c for g, c in zip(state.grid, state.cluster, strict=True)):
            raise LaunchError(f"the grid {state.grid} is no multiple of the cluster {state.cluster}")
        arch = int("".join(c for c in self.program.module.target.removeprefix("sm_") if c.isdigit()) or 90)
        limit = state.options.shared_limit or _SHARED_LIMITS.get(arch, 232448)
        if state.shared_bytes > limit:
            raise OutOfResources(state.shared_bytes, limit, "shared memory")

    def _add_variable(self, variable: Variable) -> None:
        is_writable = variable.space == "global"
        address, data = self.state.memory.add_bytes(
            variable.size, max(variable.alignment, 16), variable.name, is_writable
        )
        self.state.addresses[variable.name] = address
        view = data.view(np.dtype(TYPES[variable.type]))
        for index, value in enumerate(variable.initial):
            number = value.value if isinstance(value, Immediate) else self._symbol_address(value.name) + value.offset
            view[index : index + 1].view(_bits(view.dtype))[0] = number & (1 << 8 * view.dtype.itemsize) - 1

    def _symbol_address(self, name: str) -> int:
        layout = self.program.layout
        return layout.shared[name] + SHARED_WINDOW if name in layout.shared else self.state.address_of(name)


def _bits(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")

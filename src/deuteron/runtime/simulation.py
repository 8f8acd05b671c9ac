"""Launches that no processor runs as compiled for it: in the interpreter (tile IR), on the emulator (PTX).

    simulation = Simulation(add)
    simulation.interpret(bound, (8, 1, 1))          DEUTERON_INTERPRET=1, @jit(interpret=True)
    simulation.emulate(bound, (8, 1, 1))            DEUTERON_EMULATE=1

What was made for arguments of some types is kept for the life of the kernel, as compiled kernels are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deuteron.backend import get_backend
from deuteron.backend.devices import CPU, device_target
from deuteron.backend.overlaps import overlap_of
from deuteron.backend.tensor_map import are_copied
from deuteron.compiler import CompiledKernel
from deuteron.forking import undivided
from deuteron.interruptions import uninterpreted
from deuteron.language.functions.source_functions import SourceFunction
from deuteron.runtime.binding import Binding
from deuteron.runtime.interpret import interpret, lower
from deuteron.runtime.placement import check_devices, named_target
from deuteron.settings import settings

if TYPE_CHECKING:
    from deuteron.runtime.jit import JITFunction


class Simulation:
    """The modules and the kernels of PTX of one function, by the types that they are for."""

    def __init__(self, fn: JITFunction):
        self.fn = fn
        self._made: dict[Any, Any] = {}

    @uninterpreted()
    def interpret(self, bound: Binding, grid: tuple[int, int, int]) -> None:
        fn = self.fn
        check_devices(fn, bound, device_target(CPU))
        options = fn.options_of(get_backend(named_target() or device_target(CPU)), bound)
        key = (bound.tokens, options, SourceFunction.num_updates)
        if key not in self._made:
            with fn.watching(bound):
                self._made[key] = lower(fn.source_of(bound), options)
        interpret(self._made[key], bound.runtime_values(), grid)

    @uninterpreted()
    def emulate(self, bound: Binding, grid: tuple[int, int, int]) -> CompiledKernel:
        with undivided():
            from deuteron.runtime import emulate as emulator  # deferred: brings NumPy

        check_devices(self.fn, bound, device_target(CPU))
        kernel = self.emulated_kernel(bound)
        given = bound.runtime_values()
        if overlap_of(kernel.metadata, bound.flat_values(), given) is not None:
            bound = bound.for_overlapping()
            kernel = self.emulated_kernel(bound)
        if not are_copied(kernel.metadata.tensor_maps, bound.flat_values()):
            kernel = self.emulated_kernel(bound.with_option("plain_loads"))
        if grid[0] and grid[1] and grid[2]:
            emulator.emulate(kernel, given, grid)
        return kernel

    def emulated_kernel(self, bound: Binding) -> CompiledKernel:
        """What the emulator runs, of which the PTX is the last stage."""
        from deuteron.runtime import emulate as emulator  # deferred: brings NumPy

        fn = self.fn
        asked = (settings.target, settings.option_texts, SourceFunction.num_updates)
        key = ("emulated", bound.tokens, tuple(bound.options.items()), *asked)
        if key not in self._made:
            options = fn.options_of(emulator.BACKEND, bound)
            with fn.watching(bound):
                self._made[key] = emulator.compile_for_emulator(fn.source_of(bound), options)
        return self._made[key]

"""Kernels as Inductor generates them: compiled as Inductor does, launched on the emulator as torch's launchers do.

    kernels = EmulatedKernels(90)
    kernel = kernels.make("triton_poi_fused_add_0", source)         for every configuration that would be tuned
    kernel.run(*arguments, stream=0)                                the first one
    kernels.times                                                   {"triton_poi_fused_add_0": [0.21, ...]}

The launch passes what those launchers do, and nothing else: the arguments of the signature that are not known, and
32 * num_warps threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import triton
from processor_time import used
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_compat import ASTSource
from torch._inductor.runtime.triton_helpers import get_constexprs
from torch._inductor.runtime.triton_heuristics import CachingAutotuner, CompileResult
from triton.compiler.compiler import GPUTarget

from deuteron.emulator import launch


@dataclass
class EmulatedKernels:
    """Compiles for one compute capability. `times` has the seconds of each compile, `launches` what ran."""

    capability: int
    times: dict[str, list[float]] = field(default_factory=dict)
    launches: list[str] = field(default_factory=list)

    def make(self, name: str, source: str) -> EmulatedKernel:
        tuner = getattr(PyCodeCache.load(source), name)
        results = [self._compile(name, tuner, config) for config in tuner.configs]
        return EmulatedKernel(name, results[0], self.launches)

    def _compile(self, name: str, tuner: CachingAutotuner, config: Any) -> _Result:
        meta = tuner._create_compile_meta(config)
        source = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
        target = GPUTarget("cuda", self.capability, 32)
        begin = used()
        kernel = triton.compile(source, target=target, options=tuner._create_compile_options(config, meta))
        self.times.setdefault(name, []).append(used() - begin)
        return _Result(kernel, config, meta, tuner.inductor_meta)


class _Result(CompileResult):
    """Torch's writer of launchers, for the emulator."""

    def make_launcher(self) -> Callable:
        fn = self.kernel.src.fn
        known = {index for (index, *_) in self.kernel.src.constants}
        _, parameters, absent = self._get_arg_lists(fn.arg_names, get_constexprs(fn))
        passed = [name for index, name in enumerate(fn.arg_names) if index not in known and name not in absent]
        return self._gen_launcher_code({"runner": self._run}, parameters, ["grid_0", "grid_1", "grid_2", *passed])

    def _run(self, x: int, y: int, z: int, *args: Any) -> None:
        metadata = self.kernel.metadata
        threads = 32 * metadata.num_warps
        launch(self.kernel.asm["ptx"], metadata.name, (x, y, z), threads, metadata.shared, args)


@dataclass
class EmulatedKernel:
    """What Inductor's code calls a kernel."""

    name: str
    result: _Result
    launches: list[str]

    def run(self, *args: Any, stream: int, **kwargs: Any) -> None:
        self.launches.append(self.name)
        self.result.make_launcher()(*args, stream=stream, **kwargs)

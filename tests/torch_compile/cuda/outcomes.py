"""What becomes of a program on the emulator in the place of a GPU.

    outcome_of(ALL["softmax"], 90)      {"program": "softmax", "launches": 2, "seconds": {kernel: [...]}, "error": ""}

To be imported after `fake_gpu.pretend`: torch's compiler looks for devices when it is imported.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

import torch
from processor_time import slowness
from torch._inductor import config
from torch_compile import running
from torch_compile.cuda.backend import emulated_gpu
from torch_compile.cuda.kernels import EmulatedKernels
from torch_compile.declaration import Program

SEED = 7


def outcome_of(program: Program, capability: int) -> dict[str, Any]:
    """How often kernels were launched, what each of their compiles took, and the traceback of an error.

    The seconds are of a processor, as on a machine of known speed.
    """
    kernels, error = EmulatedKernels(capability), ""
    try:
        running.compare(program, SEED, _emulated_outcome(program, kernels), "cpu")
    except Exception:
        error = traceback.format_exc()
    factor = slowness()
    seconds = {name: [time / factor for time in times] for name, times in kernels.times.items()}
    return {"program": program.name, "launches": len(kernels.launches), "seconds": seconds, "error": error}


def _emulated_outcome(program: Program, kernels: EmulatedKernels) -> list[torch.Tensor]:
    torch._dynamo.reset()
    with config.patch(_for_gpu(program.config)), emulated_gpu(kernels.make) as backend:

        def compile(function: Callable, fullgraph: bool = True) -> Callable:
            return torch.compile(function, fullgraph=fullgraph, dynamic=program.dynamic, backend=backend)

        return running.outcome(program, SEED, compile)


def _for_gpu(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a program, without those that choose among the templates for the CPU."""
    return {name: value for name, value in options.items() if not name.startswith("test_configs")}

"""Lets torch's CPU build believe in a GPU, so that Inductor generates code for one; what is on it lies in CPU memory.

    pretend(capability=90)      for the rest of the process

torch asks for a device's properties, streams, seeds and memory; each answer below is one that it needed.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.utils._triton

MULTIPROCESSORS = 132


def pretend(capability: int) -> None:
    """Patch torch. The properties are those of an H100, but for the compute capability."""
    properties = SimpleNamespace(
        name="NVIDIA H100",
        major=capability // 10,
        minor=capability % 10,
        multi_processor_count=MULTIPROCESSORS,
        total_memory=80 << 30,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        warp_size=32,
        gcnArchName=f"sm_{capability}",
        L2_cache_size=50 << 20,
        shared_memory_per_block_optin=232448,
        shared_memory_per_block=49152,
        shared_memory_per_multiprocessor=233472,
        clock_rate=1980000,
        memory_clock_rate=2619000,
        memory_bus_width=5120,
        is_integrated=False,
    )
    torch.version.cuda = "13.0"
    answers = {
        "is_available": True,
        "_is_compiled": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "set_device": None,
        "synchronize": None,
        "_lazy_init": None,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "memory_allocated": 0,
        "get_device_properties": properties,
        "get_device_capability": (properties.major, properties.minor),
        "get_device_name": properties.name,
        "set_rng_state": None,
    }
    _patch_all(torch.cuda, answers)
    torch.cuda.get_rng_state = lambda device=None: torch.random.get_rng_state()
    torch.cuda.default_generators = (torch.default_generator,)
    torch.cuda.current_stream = lambda device=None: _Stream()
    torch.cuda.device = torch.cuda._DeviceGuard = _DeviceGuard
    native = {"getCurrentRawStream": 0, "getDevice": 0, "setDevice": None, "getDeviceCount": 1}
    _patch_all(torch._C, {f"_cuda_{name}": answer for name, answer in native.items()})
    guards = torch._C._dynamo.guards
    guards._empty_strided_cuda = guards._empty_strided_cpu
    _load_device_guard()


def _load_device_guard() -> None:
    """Tell torch's C++ part of the device."""
    root, source = Path(torch.__file__).parent, Path(__file__).with_name("device_guard.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "device_guard.so")
        flags = ["-std=c++20", "-O0", "-shared", "-fPIC", f"-I{root}/include", f"-L{root}/lib", "-lc10"]
        subprocess.run(["g++", source, *flags, "-o", library], check=True)
        ctypes.CDLL(str(library))


def _patch_all(owner: Any, answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        setattr(owner, name, lambda *args, answer=answer, **kwargs: answer)


class _Stream:
    device_index = stream_id = cuda_stream = 0
    device_type = 1
    device = torch.device("cuda", 0)

    def synchronize(self) -> None:
        pass


class _DeviceGuard(nullcontext):
    """Entered with the number of a device."""

    def __init__(self, *args: Any):
        super().__init__()
        self.idx = 0

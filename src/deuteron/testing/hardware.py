"""What a GPU can do at most, from its properties: for rooflines.

    get_dram_gbps(0)                                   4917 GB/s of an H200's memory
    get_max_tensorcore_tflops(torch.float16, 1.83e6)    989 of an H100 at 1.83 GHz
    get_max_simd_tflops(torch.float32, 1.83e6)           62

Sources: CUDA C++ Programming Guide, "Arithmetic Instructions", and NVIDIA's papers on each architecture.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from deuteron.backend.arrays import element_type
from deuteron.backend.cuda.launch.libcuda import cuda_driver, num_devices
from deuteron.backend.cuda.launch.streams import current_device
from deuteron.errors import UsageError

_TOLERANCE = 10  # MHz, between the clock that was asked for and that which a GPU has

# By compute capability: operations of a multiprocessor in a clock, a multiply-add is two. Dense matrices of 16-bit
# floats, accumulated in fp32; vectors of fp32, fp16 and fp64.
_TENSOR_CORE_OPS = {80: 2048, 86: 512, 87: 1024, 89: 512, 90: 4096, 100: 8192, 103: 8192, 120: 512}
_VECTOR_OPS = {
    80: {"fp32": 128, "fp16": 512, "fp64": 64},
    86: {"fp32": 256, "fp16": 256, "fp64": 4},
    87: {"fp32": 256, "fp16": 256, "fp64": 4},
    89: {"fp32": 256, "fp16": 256, "fp64": 4},
    90: {"fp32": 256, "fp16": 512, "fp64": 128},
    100: {"fp32": 256, "fp16": 512, "fp64": 128},
    103: {"fp32": 256, "fp16": 512, "fp64": 4},
    120: {"fp32": 256, "fp16": 256, "fp64": 4},
}
_SPEED_UP = {"fp32": 0.5, "fp16": 1, "bf16": 1, "i8": 2, "u8": 2, "fp8e4nv": 2, "fp8e5": 2}  # of the tensor cores


def get_dram_gbps(device: int | None = None) -> float:
    """Gigabytes a second between a GPU and its memory."""
    device = _device(device)
    attribute = cuda_driver().attribute
    kilohertz, bits = attribute("MEMORY_CLOCK_RATE", device), attribute("GLOBAL_MEMORY_BUS_WIDTH", device)
    return kilohertz * bits * 2 / 8 / 1e6


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """10^12 operations a second of dots of a dtype; `clock_rate` is in kilohertz."""
    type = element_type(dtype)
    if type not in _SPEED_UP:
        raise UsageError(f"tensor cores have no dots of {dtype}")
    ops = _of_capability(_TENSOR_CORE_OPS, _device(device)) * _SPEED_UP[type]
    return _tflops(ops, clock_rate, device)


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """10^12 operations a second without tensor cores; `clock_rate` is in kilohertz."""
    ops = _of_capability(_VECTOR_OPS, _device(device))
    type = element_type(dtype).replace("bf16", "fp16")
    if type not in ops:
        raise UsageError(f"the rate is known of fp16, bf16, fp32 and fp64, not of {dtype}")
    return _tflops(ops[type], clock_rate, device)


def nvsmi(attributes: Sequence[str]) -> list[int]:
    """What `nvidia-smi --query-gpu` says of the first GPU, such as of `clocks.max.sm`."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attributes)}", "--format=csv,noheader,nounits"]
    return [int(text) for text in subprocess.check_output(command, text=True).split(",")]


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Iterator[tuple[float, float]]:
    """Lock the clocks of the first GPU within, in MHz: what it takes a right for is asked of `nvidia-smi`.

    Gives the 10^12 operations a second of an A100's tensor cores and its 10^9 bytes a second at these clocks, as Triton
    does. Raises UsageError where the clocks are not what was asked for.
    """
    _set_clocks("-pm", "1")
    try:
        _set_clocks(f"--lock-gpu-clocks={ref_sm_clock},{ref_sm_clock}")
        _set_clocks(f"--lock-memory-clocks={ref_mem_clock},{ref_mem_clock}")
        found = nvsmi(["clocks.current.sm", "clocks.current.memory"])
        wanted = [ref_sm_clock, ref_mem_clock]
        if any(abs(clock - asked) >= _TOLERANCE for clock, asked in zip(found, wanted, strict=True)):
            raise UsageError(f"the GPU's clocks are {found} MHz, not {wanted}")
        yield 1e-6 * 2 * 108 * 4 * 256 * ref_sm_clock, 640 * 2 * ref_mem_clock * 1e-3
    finally:
        for reset in (("-pm", "0"), ("-rgc",), ("-rmc",)):
            _set_clocks(*reset)


def _set_clocks(*arguments: str) -> None:
    subprocess.check_output(["nvidia-smi", "-i", "0", *arguments])


def _device(device: int | None) -> int:
    if not num_devices():
        raise UsageError("this asks about a GPU, and there is none")
    return current_device(cuda_driver()) if device is None else device


def _of_capability(table: dict[int, Any], device: int) -> Any:
    capability = cuda_driver().capability(device)
    if capability not in table:
        raise UsageError(f"the rates of GPUs of compute capability {capability / 10} are not known")
    return table[capability]


def _tflops(ops: float, kilohertz: float, device: int | None) -> float:
    return ops * cuda_driver().attribute("MULTIPROCESSOR_COUNT", _device(device)) * kilohertz * 1e3 / 1e12

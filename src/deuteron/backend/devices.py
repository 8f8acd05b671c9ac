"""The devices of this machine, and the target that code for each of them has.

    machine_target()                         Target("cuda", 90), or Target("cpu", "native", 1) without a GPU
    Device("cuda", 1)                        the device of an array; printed as cuda:1
    device_target(Device("cuda", 1))         Target("cuda", 80)

Without an NVIDIA driver nothing of CUDA is imported.
"""

from __future__ import annotations

from typing import NamedTuple

from deuteron.backend.cuda.launch.libcuda import cuda_driver, num_devices
from deuteron.backend.cuda.launch.streams import current_device
from deuteron.errors import UsageError
from deuteron.options import Target


class Device(NamedTuple):
    """The memory that an array is in: the name of a backend, and which of its devices; None is the current one."""

    backend: str
    index: int | None = None

    def __str__(self) -> str:
        return self.backend if self.index is None else f"{self.backend}:{self.index}"


CPU = Device("cpu")


def device_target(device: Device) -> Target:
    """What to compile for so that a kernel runs there; raises LaunchError where no driver is, UsageError for a GPU
    that Deuteron has no code for."""
    if device.backend == "cpu":
        return Target("cpu", "native", 1)
    from deuteron.backend.cuda.target import architecture_for_device  # deferred: what is true of GPUs

    driver = cuda_driver()
    index = current_device(driver) if device.index is None else device.index
    return Target("cuda", architecture_for_device(driver.capability(index)).capability)


def machine_target() -> Target:
    """The current GPU where there is one that Deuteron compiles for, else the processor."""
    try:
        return device_target(Device("cuda") if num_devices() else CPU)
    except UsageError:
        return device_target(CPU)

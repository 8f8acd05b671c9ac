"""Executes PTX on the CPU, and checks while executing what a GPU never checks.

    from deuteron.emulator import launch

    launch(kernel.asm["ptx"], "add", grid=(8,), block=(128,), shared_bytes=0, args=(x, y, out, 1000))

Arguments are NumPy arrays (read and written in place), numbers and `TensorMap`s. A fault of the kernel raises
`EmulatorError` with the PTX line, the source line, the block and the threads. docs/emulator.md says what is modelled.
"""

from deuteron.emulator.asynchronous.tensor_map import TensorMap
from deuteron.emulator.faults import EmulatorError, UnknownInstruction
from deuteron.emulator.kernels import run_kernel
from deuteron.emulator.launch import launch
from deuteron.emulator.options import EmulatorOptions
from deuteron.emulator.profile import Profile, profile

__all__ = [
    "EmulatorError",
    "EmulatorOptions",
    "Profile",
    "TensorMap",
    "UnknownInstruction",
    "launch",
    "profile",
    "run_kernel",
]

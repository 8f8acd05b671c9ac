"""From Python: kernels that compile when they are launched, and what chooses their configuration.

    jit.py           @jit, JITFunction: bind, specialise, compile or look up, launch
    fast_launch.py   launches like one before, in machine code
    async_compile.py   compiles by an executor of the program's own
    prepared.py      a launch of which only the arguments are left to be given
    recompiles.py    what launches have compiled, and why
    specialise.py    a token for each argument
    grid.py          the grid's extents           mock.py        arrays that are only types, or of another type
    autotuning/      @autotune, Config            heuristics.py  @heuristics
    interpret.py     launching in the NumPy interpreter
    driver.py        the device that kernels run on, as Triton's programs ask for it

Nothing here tests which target it is, or imports the compiler before a kernel is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deuteron.lazy import lazy_names
from deuteron.runtime.driver import driver as driver
from deuteron.runtime.heuristics import Heuristics as Heuristics
from deuteron.runtime.heuristics import heuristics as heuristics
from deuteron.runtime.interface import KernelInterface as KernelInterface
from deuteron.runtime.jit import JITFunction as JITFunction
from deuteron.runtime.mock import MockTensor as MockTensor
from deuteron.runtime.mock import TensorWrapper as TensorWrapper
from deuteron.runtime.mock import reinterpret as reinterpret
from deuteron.runtime.sizes import cdiv as cdiv
from deuteron.runtime.sizes import next_power_of_2 as next_power_of_2

if TYPE_CHECKING:
    from deuteron.runtime.autotuning.autotuner import Autotuner as Autotuner
    from deuteron.runtime.autotuning.config import Config as Config
    from deuteron.runtime.autotuning.decorator import autotune as autotune

_NAMES = {
    "deuteron.runtime.autotuning.autotuner": "Autotuner",
    "deuteron.runtime.autotuning.config": "Config",
    "deuteron.runtime.autotuning.decorator": "autotune",
}

__getattr__, __dir__ = lazy_names(globals(), _NAMES, "autotuning")

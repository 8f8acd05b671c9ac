"""What is asked of a device's driver; Triton's programs make classes of their own of it, for `driver.set_active`.

class MyDriver(DriverBase):
    def get_current_target(self): return Target("cuda", 90)
    ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from deuteron import testing
from deuteron.dtypes import C_NAMES
from deuteron.errors import UsageError
from deuteron.options import Target


class DriverBase(ABC):
    """`utils.get_device_properties(device)` has `max_shared_mem`, `max_num_regs`, `multiprocessor_count`, `warpSize`,
    `sm_clock_rate`, `mem_clock_rate` (kilohertz) and `mem_bus_width` (bits)."""

    utils: Any = None
    c_pointer = "void*"

    @abstractmethod
    def get_current_target(self) -> Target:
        """What is compiled for."""

    @abstractmethod
    def get_active_torch_device(self) -> Any:
        """The device as torch has it."""

    @staticmethod
    @abstractmethod
    def is_active() -> bool:
        """Whether kernels can run: asked of the class, too, before one is made."""

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of what a launcher passes to a kernel with `plain_arguments` for a type of its signature."""
        if ty.startswith("*"):
            return self.c_pointer
        if ty not in C_NAMES:
            raise UsageError(f"no launcher passes the type {ty}: numbers are {', '.join(C_NAMES)}")
        return C_NAMES[ty]

    def get_benchmarker(self) -> Callable[..., Any]:
        """`bench(fn, quantiles=)` returns milliseconds."""
        return testing.do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer that `clear_cache` writes, so that nothing else is left in the caches."""
        raise NotImplementedError

    def clear_cache(self, cache: Any) -> None:
        """Write a buffer of `get_empty_cache_for_benchmark`."""
        raise NotImplementedError

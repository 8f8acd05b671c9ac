"""`triton.backends`: a target's backend as Triton's programs ask for it.

backends["nvidia"].compiler, backends["nvidia"].driver        CUDABackend, CUDADriver: classes
backend = make_backend(GPUTarget("cuda", 90, 32))             CUDABackend(target)
backend.hash()                                                "sm_90a ptxas 13.3"
backend.parse_options({"num_warps": 8, "kpack": 2})           CUDAOptions(num_warps=8, ...)
backend.parse_attr("D")                                       [["tt.divisibility", 16]]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deuteron.backend import get_backend
from deuteron.compiler import resolve_target
from deuteron.options import Target, option_names
from deuteron.runtime.cuda_device import CUDADriver
from deuteron.runtime.driver import Driver
from deuteron.runtime.driver_base import DriverBase


class Context:
    """`triton._C.libtriton.ir.context`: what holds IR in Triton. Deuteron's holds itself."""


def load_dialects(context: Context) -> None:
    """`triton._C.libtriton.ir.load_dialects`: nothing is to be loaded."""


IR_NAMES = {"context": Context, "load_dialects": load_dialects}


class BaseBackend:
    """The compiler for one target. `name` is Deuteron's backend."""

    name = ""
    binary_ext = ""
    supports_native_tensor_specialization = True

    def __init__(self, target: Target):
        self.target = resolve_target(target)
        self._backend = get_backend(self.target)

    @classmethod
    def supports_target(cls, target: Target) -> bool:
        return target.backend == cls.name

    def load_dialects(self, context: Context) -> None:
        """Nothing: the dialects of a target are there when they are needed."""

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """Triton's frontend asks a backend for functions; Deuteron's asks none."""
        return {}

    def get_module_map(self) -> dict[str, Any]:
        """Triton's frontend replaces modules, such as libdevice, by those of a backend; Deuteron's are for all."""
        return {}

    def hash(self) -> str:
        """What code depends on besides the source and Deuteron's version, which `triton_key` has."""
        return self._backend.fingerprint(self.target)

    def parse_options(self, options: Mapping[str, Any]) -> Any:
        """The target's options object; what is no option of the target is left out."""
        known = option_names(self._backend.options_class)
        return self._backend.make_options({name: value for name, value in options.items() if name in known})

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes that a text stands for: `D` for divisible by 16."""
        return [["tt.divisibility", 16]] if "D" in desc else []


class CPUBackend(BaseBackend):
    """The compiler for processors."""

    name = "cpu"
    binary_ext = "obj"


class CUDABackend(BaseBackend):
    """The compiler for NVIDIA's GPUs."""

    name = "cuda"
    binary_ext = "cubin"


class Backend(NamedTuple):
    """The classes of a backend."""

    compiler: type[BaseBackend]
    driver: type[DriverBase]


BACKENDS = {"nvidia": Backend(CUDABackend, CUDADriver), "cpu": Backend(CPUBackend, Driver)}


def make_backend(target: Target) -> BaseBackend:
    """The compiler for a target; raises UsageError for a target that Deuteron does not compile for."""
    resolved = resolve_target(target)
    found = [backend.compiler for backend in BACKENDS.values() if backend.compiler.supports_target(resolved)]
    return found[0](resolved)

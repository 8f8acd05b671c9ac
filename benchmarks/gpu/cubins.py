"""Kernels that another Triton compiled, from a folder, launched through the driver.

    peer = CubinPeer(Path("build/triton-3.9"))
    peer.launcher(case, config, problem)()

`peer_cubins.py` makes the folder: for each code a cubin, and what a launch needs to know as JSON.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.gpu.case import Case, Config, Problem, code_key

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def file_name(key: tuple[Any, ...]) -> str:
    """Of the code with this key (`case.code_key`), without an ending."""
    return f"{key[1]}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class CubinPeer:
    """The cubins of a folder, which is the name of the peer in tables."""

    folder: Path

    def launcher(self, case: Case, config: Config, problem: Problem) -> Callable[[], None]:
        """Launches the kernel on torch's current stream."""
        path = self.folder / file_name(code_key(case, config))
        facts = json.loads(path.with_suffix(".json").read_text())
        if "error" in facts:
            raise RuntimeError(facts["error"])
        grid = (*case.grid(dict(config.constants)), 1, 1)[:3]
        function = _load(path.with_suffix(".cubin"), facts["name"], facts["shared"])
        passed = [*_passed(case, problem), _scratch(facts["global_scratch_size"] * prod(grid)), ctypes.c_void_p(0)]
        return _Launch(function, (*grid, 32 * facts["num_warps"], 1, 1, facts["shared"]), passed)


class _Launch:
    """A launch; it keeps the values that the driver is given pointers to."""

    def __init__(self, function: ctypes.c_void_p, sizes: tuple[int, ...], passed: list[Any]):
        self._function, self._sizes, self._passed = function, sizes, passed
        self._pointers = (ctypes.c_void_p * len(passed))(*(ctypes.addressof(value) for value in passed))

    def __call__(self) -> None:
        _call("cuLaunchKernel", self._function, *self._sizes, _stream(), self._pointers, None)


def _passed(case: Case, problem: Problem) -> list[Any]:
    """The arguments of a cubin: without those that are 1, which are compiled into it."""
    arrays = iter(problem.arrays)
    passed: list[Any] = []
    for parameter in case.parameters:
        if isinstance(parameter, str):
            passed.append(ctypes.c_void_p(next(arrays).data_ptr()))
        elif isinstance(parameter, float):
            passed.append(ctypes.c_float(parameter))
        elif not isinstance(parameter, int):
            raise NotImplementedError("descriptors that the host makes are not passed to cubins")
        elif parameter != 1:
            passed.append((ctypes.c_int64 if parameter.bit_length() > 31 else ctypes.c_int32)(parameter))
    return passed


@functools.cache
def _scratch(num_bytes: int) -> ctypes.c_void_p:
    """Memory for descriptors that a kernel makes, which is never freed."""
    import torch  # deferred: as in `cases`

    if not num_bytes:
        return ctypes.c_void_p(0)
    scratch = ctypes.c_void_p()
    torch.cuda.current_stream()  # the driver is initialised
    _call("cuMemAlloc_v2", ctypes.byref(scratch), ctypes.c_size_t(num_bytes))
    return scratch


@functools.cache
def _load(path: Path, name: str, shared: int) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuModuleLoadData", ctypes.byref(module), path.read_bytes())
    _call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    _call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
    return function


def _stream() -> ctypes.c_void_p:
    import torch  # deferred: as above

    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status:
        raise RuntimeError(f"{name} gave {status}")

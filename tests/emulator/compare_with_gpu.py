"""Runs the hand-written PTX of `cases` on the emulator and on the machine's GPU, and compares both with NumPy.

    PYTHONPATH=src:tests python -m emulator.compare_with_gpu

Integers have to be equal bit for bit, floats within the error of the approximations (`gpu_tolerance` of a case).
It needs an NVIDIA driver, called through ctypes, and nothing else. docs/emulator.md has the output of a run.
"""

from __future__ import annotations

import copy
import ctypes
import os
import sys

import numpy as np
from emulator.case import Case, Run, check
from emulator.cases import ALL_CASES

from deuteron.emulator import TensorMap, launch

_TYPES = {"u1": 0, "u2": 1, "u4": 2, "i4": 3, "u8": 4, "i8": 5, "f2": 6, "f4": 7, "f8": 8, "i2": 1, "i1": 0}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


class GPU:
    """A context on the first device; every call is checked."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *args: object) -> None:
        status = getattr(self.cuda, name)(*args)
        if status:
            raise RuntimeError(f"{name} failed with status {status}")

    def function(self, ptx: str) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        keys = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 4096)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode(), 2, keys, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {log.value.decode()}") from error
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        return function

    def upload(self, array: np.ndarray) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(array.nbytes, 16)))
        self.call("cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return pointer

    def encode(self, tensor: TensorMap, pointer: ctypes.c_uint64) -> ctypes.Array:
        """The CUtensorMap of an emulated map."""
        raw = ctypes.create_string_buffer(256)
        start = -ctypes.addressof(raw) % 64
        encoded = (ctypes.c_char * 128).from_buffer(raw, start)
        array, dims = tensor.array, tensor.array.ndim
        sizes = (ctypes.c_uint64 * dims)(*reversed(array.shape))
        strides = (ctypes.c_uint64 * dims)(*reversed(array.strides[:-1]), 0)
        box = (ctypes.c_uint32 * dims)(*reversed(tensor.box))
        steps = (ctypes.c_uint32 * dims)(*[1] * dims)
        kind = _TYPES[array.dtype.str[1:]]
        self.call(
            "cuTensorMapEncodeTiled",
            encoded,
            kind,
            dims,
            pointer,
            sizes,
            strides,
            box,
            steps,
            0,
            _SWIZZLES[tensor.swizzle],
            0,
            0,
        )
        return encoded

    def run(self, case: Case, run: Run) -> None:
        """Like `launch`: arrays are changed in place."""
        uploaded: dict[int, tuple[np.ndarray, ctypes.c_uint64]] = {}
        values = [self._argument(arg, uploaded) for arg in run.args]
        params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        grid, block = ((*case.grid, 1, 1)[:3], (*case.block, 1, 1)[:3])
        config, attribute = _config(grid, block, case.shared, case.cluster)
        function = self.function(case.ptx)
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, params, None)
        self.call("cuCtxSynchronize")
        for array, pointer in uploaded.values():
            self.call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(array.nbytes))
            self.call("cuMemFree_v2", pointer)
        assert attribute is not None

    def _argument(self, arg: object, uploaded: dict) -> ctypes._SimpleCData | ctypes.Array:
        array = arg.array if isinstance(arg, TensorMap) else arg
        if not isinstance(array, np.ndarray):
            return ctypes.c_uint64(array)
        if id(array) not in uploaded:
            uploaded[id(array)] = array, self.upload(array)
        pointer = uploaded[id(array)][1]
        return self.encode(arg, pointer) if isinstance(arg, TensorMap) else pointer


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")],
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
    ]


def _config(grid: tuple, block: tuple, shared: int, cluster: tuple | None) -> tuple[_Config, _Attribute]:
    attribute = _Attribute(4)  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value[:3] = (*(cluster or ()), 1, 1, 1)[:3]
    return _Config(*grid, *block, shared, None, ctypes.addressof(attribute), 1 if cluster else 0), attribute


def compare(case: Case, gpu: GPU, seed: int) -> str | None:
    """None where both agree, else what is wrong."""
    try:
        emulated, real = (case.make(np.random.default_rng(seed)) for _ in range(2))
        launch(case.ptx, "k", case.grid, case.block, case.shared, emulated.args, case.cluster)
        check(case, emulated)
        gpu.run(case, real)
        tolerance = case.tolerance if case.gpu_tolerance is None else case.gpu_tolerance
        check(case, real, tolerance)
        both = Run(real.args, {position: copy.copy(emulated.args[position]) for position in real.expected})
        check(case, both, tolerance)
    except (AssertionError, RuntimeError) as error:
        return str(error)
    return None


def run_from(start: int, seed: int, done: int) -> None:
    """Compare cases in this process until one loses the context; writes one byte to the pipe `done` for each."""
    gpu = GPU()
    for case in ALL_CASES[start:]:
        problem = compare(case, gpu, seed)
        print(f"{case.name:32} {'equal' if problem is None else 'DIFFERS: ' + problem}", flush=True)
        os.write(done, b"+" if problem is None else b"-")
        if problem and "status 7" in problem:
            break
    os._exit(0)


def main() -> int:
    """A fault on the GPU ends a CUDA context for good, so the cases run in child processes."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(f"this needs a GPU: {error}")
    seed, results = int(np.random.default_rng().integers(2**31)), b""
    while len(results) < len(ALL_CASES):
        read, write = os.pipe()
        if os.fork() == 0:
            run_from(len(results), seed, write)
        os.close(write)
        os.wait()
        found = os.read(read, len(ALL_CASES) + 1)
        results += found or b"-"
    equal = results.count(b"+")
    print(f"seed {seed}: {equal} of {len(ALL_CASES)} equal")
    return equal < len(ALL_CASES)


if __name__ == "__main__":
    sys.exit(main())

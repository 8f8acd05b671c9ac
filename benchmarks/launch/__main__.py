"""What enqueuing a kernel costs from Python, beside a bare loop of cuLaunchKernel in C, Triton, torch's `x.add_(1)`.

    python -m benchmarks.launch                     on a GPU, and on the CPU: half a minute
    python -m benchmarks.launch --device cpu        only one of them
    python -m benchmarks.launch --batches 50

The kernels do nothing (`kernels.py`); arrays are torch's, or NumPy's where there is no torch. All take turns, a batch
each, so that what changes with time changes for all; the GPU is waited for between batches that fit into its queue.
Printed are the median and the fastest batch, in us a launch, and the median as a multiple of the bare loop's.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
BATCH = 500  # launches: a GPU's queue holds some 1,000
Launches = Callable[[int], None]


def load_kernels(package: str) -> types.ModuleType:
    """kernels.py with the package of that name for `triton`."""
    text = (FOLDER / "kernels.py").read_text()
    text = text.replace("import triton.language as", f"import {package}.language as")
    text = text.replace("import triton\n", f"import {package} as triton\n")
    module = types.ModuleType(f"benchmarks.launch.kernels_{package}")
    module.__file__ = str(FOLDER / "kernels.py")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


def arguments_of(case: str, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Of the kernel `few` 5, of `many` 20; of six arrays."""
    return (*arrays[:3], 7, 0.5) if case == "few" else (*arrays, *range(7, 20), 0.5)


def subscripted(kernel: Any, arguments: tuple[Any, ...]) -> Launches:
    """The launch as programs write it."""

    def launches(count: int) -> None:
        for _ in range(count):
            kernel[(1,)](*arguments)

    return launches


def with_grid_function(kernel: Any, arguments: tuple[Any, ...]) -> Launches:
    """The same, with a grid that is computed of the arguments."""

    def launches(count: int) -> None:
        for _ in range(count):
            kernel[lambda meta: (1,)](*arguments)

    return launches


def tuned(kernel: Any) -> Any:
    """The kernel with an autotuner that has nothing to choose, and one number as its key."""
    deuteron = importlib.import_module("deuteron")
    return deuteron.autotune(configs=[deuteron.Config({})], key=["n"])(kernel)


def called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Launches:
    def launches(count: int) -> None:
        for _ in range(count):
            function(*arguments)

    return launches


def bare(case: str, arguments: tuple[Any, ...]) -> Launches | None:
    """The loop in C, of the machine code that Deuteron made; None without a C compiler."""
    library = Path(tempfile.mkdtemp()) / "bare.so"
    compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
    command = [compiler, "-O2", "-shared", "-fPIC", FOLDER / "bare.c", "-o", library]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no bare loop: {error}")
        return None
    kernel = getattr(load_kernels("deuteron"), case)[(1,)](*arguments)
    cuda = ctypes.CDLL("libcuda.so.1")
    loaded, handle = ctypes.c_void_p(), ctypes.c_void_p()
    symbol = kernel.metadata.symbol.encode()
    assert cuda.cuModuleLoadData(ctypes.byref(loaded), kernel.asm["cubin"]) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(handle), loaded, symbol) == 0
    slots = (ctypes.c_uint64 * len(arguments))(*[1] * len(arguments))
    places = [ctypes.addressof(slots) + 8 * index for index in range(len(arguments))]
    pointers = (ctypes.c_void_p * len(arguments))(*places)
    run = ctypes.CDLL(str(library)).bare_launches
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    launch = ctypes.cast(cuda.cuLaunchKernel, ctypes.c_void_p)

    def launches(count: int) -> None:
        assert run(launch, handle, kernel.metadata.num_threads, None, pointers, count) == 0

    launches.kept = slots
    return launches


def contenders(case: str, arrays: Sequence[Any], is_gpu: bool) -> dict[str, Launches]:
    """What is timed, by name."""
    arguments = arguments_of(case, arrays)
    found: dict[str, Launches | None] = {}
    if is_gpu:
        found["bare cuLaunchKernel in C"] = bare(case, arguments)
    kernel = getattr(load_kernels("deuteron"), case)
    found["deuteron"] = subscripted(kernel, arguments)
    found["deuteron, one array for all"] = subscripted(kernel, arguments_of(case, [arrays[0]] * len(arrays)))
    found["deuteron, grid a function"] = with_grid_function(kernel, arguments)
    if hasattr(kernel, "prepare"):
        found["deuteron, autotuned"] = subscripted(tuned(kernel), arguments)
        found["deuteron, prepared"] = called(kernel.prepare(*arguments, grid=(1,)).launch, arguments)
    if is_gpu and triton_version():
        found["triton"] = subscripted(getattr(load_kernels("triton"), case), arguments)
    if hasattr(arrays[0], "add_"):
        found["torch's x.add_(1)"] = called(arrays[0].add_, (1,))
    return {name: launches for name, launches in found.items() if launches}


def triton_version() -> str | None:
    """None where it is not installed, or is Deuteron under that name."""
    try:
        triton = importlib.import_module("triton")
    except ImportError:
        return None
    return None if "deuteron" in str(getattr(triton, "__file__", "")) else triton.__version__


def measure(named: dict[str, Launches], batches: int, synchronize: Callable[[], Any]) -> dict[str, list[float]]:
    """Microseconds a launch, of each batch."""
    times: dict[str, list[float]] = {name: [] for name in named}
    for batch in range(-2, batches):
        for name, launches in named.items():
            synchronize()
            begin = time.perf_counter()
            launches(BATCH)
            took = time.perf_counter() - begin
            if batch >= 0:
                times[name].append(took / BATCH * 1e6)
    synchronize()
    return times


def report(title: str, times: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(found) for name, found in times.items()}
    first = medians.get("bare cuLaunchKernel in C")
    print(f"\n{title:<36}   median  fastest" + ("   of bare" if first else ""))
    for name, median in medians.items():
        times_bare = f"{median / first:9.2f}x" if first else ""
        print(f"{name:<36} {median:8.2f} {min(times[name]):8.2f}{times_bare}", flush=True)


def gpu_arrays() -> tuple[list[Any], Callable[[], Any]] | None:
    """Arrays there and what waits for the GPU; None where torch finds none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton_version()}, ", end="")
    print(f"Python {sys.version.split()[0]}")
    return [torch.zeros(1024, device="cuda") for _ in range(6)], torch.cuda.synchronize


def cpu_arrays() -> list[Any]:
    try:
        zeros = importlib.import_module("torch").zeros
    except ImportError:
        zeros = partial(importlib.import_module("numpy").zeros, dtype="float32")
    return [zeros(1024) for _ in range(6)]


def main() -> int:
    parser = argparse.ArgumentParser(description="What a launch from Python costs on the host.")
    parser.add_argument("--device", choices=["gpu", "cpu", "both"], default="both")
    parser.add_argument("--batches", type=int, default=200)
    given = parser.parse_args()
    gpu = gpu_arrays() if given.device != "cpu" else None
    for case, count in (("few", 5), ("many", 20)):
        if gpu:
            arrays, synchronize = gpu
            report(f"{count} arguments, GPU", measure(contenders(case, arrays, True), given.batches, synchronize))
        if given.device != "gpu":
            named = contenders(case, cpu_arrays(), False)
            report(f"{count} arguments, CPU, one program", measure(named, given.batches, lambda: None))
    return 0


if __name__ == "__main__":
    sys.exit(main())

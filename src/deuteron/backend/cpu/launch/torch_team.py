"""The OpenMP runtime on whose threads torch's operations run, on Linux: GNU's, or another that has GNU's entries.

torch_runtime()     where the functions of RUNTIME are found; None before torch is loaded, or where it has no such
"""

from __future__ import annotations

import ctypes
import os
import sys

# Words of the pool (`pool_layout.py`) and the functions of the runtime. `parallel`, which says that all are there, is
# the last to be written.
RUNTIME = {
    "thread_num": "omp_get_thread_num",
    "max_threads": "omp_get_max_threads",
    "in_parallel": "omp_in_parallel",
    "parallel": "GOMP_parallel",
}


def torch_runtime() -> ctypes.CDLL | None:
    """torch's library itself, by which the functions are found in what it was linked to."""
    file = getattr(sys.modules.get("torch"), "__file__", None)
    if file is None or sys.platform != "linux":
        return None
    library = os.path.join(os.path.dirname(file), "lib", "libtorch_cpu.so")
    try:
        runtime = ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:  # torch is being imported, or built in another way
        return None
    return runtime if all(hasattr(runtime, name) for name in RUNTIME.values()) else None

"""Where a launch goes when nobody says so: the device and stream that are current in the program's array library.

    current_device(driver)     torch's, else that of the thread's CUDA context, else 0
    current_stream(0)          torch's, else CuPy's, else the default stream: the handle as a number

Neither library is imported for it, and torch is asked only once it uses CUDA.
"""

from __future__ import annotations

import sys
from typing import Any

from deuteron.backend.cuda.libcuda import CudaDriver

DEFAULT_STREAM = 0


def torch_with_cuda() -> Any:
    """The module torch if the program has imported it and it has initialised CUDA, else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return sys.modules["torch"] if cuda is not None and cuda.is_initialized() else None


def current_device(driver: CudaDriver) -> int:
    torch = torch_with_cuda()
    if torch is not None:
        return torch.cuda.current_device()
    return driver.current_device() or 0


def current_stream(device: int) -> int:
    torch = torch_with_cuda()
    stream = _torch_stream(torch, device) if torch is not None else DEFAULT_STREAM
    cupy = sys.modules.get("cupy")
    if stream == DEFAULT_STREAM and cupy is not None:
        return cupy.cuda.get_current_stream().ptr
    return stream


def _torch_stream(torch: Any, device: int) -> int:
    # A tenth of the time that torch.cuda.current_stream takes, which makes a Python object.
    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw_stream(device) if raw_stream else torch.cuda.current_stream(device).cuda_stream

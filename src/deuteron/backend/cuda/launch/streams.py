"""Where a launch goes when nobody says so: the device and stream that are current in the program's array library.

    current_device(driver)     torch's, else that of the thread's CUDA context, else 0
    current_stream(0)          torch's, else CuPy's, else the default stream: the handle as a number
    native_stream()            the same for the compiled launcher
    with on_device(1): ...     makes a device current

Neither library is imported for it, and torch is asked only once it uses CUDA.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deuteron.backend.cuda.launch.libcuda import CudaDriver, cuda_driver
from deuteron.backend.native_launch import MISSING

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


@contextmanager
def on_device(device: int) -> Iterator[None]:
    """Within it a device is current, for torch and for the driver."""
    torch = torch_with_cuda()
    with torch.cuda.device(device) if torch is not None else cuda_driver().context_of(device):
        yield


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


def native_stream() -> tuple[Any, tuple[tuple[dict, Any, Any], ...]]:
    """What the compiled launcher asks for the stream, None where it is the default one, and what that holds under: the
    dictionaries, keys and objects of `backend/native_launch.py`.
    """
    modules = sys.modules
    if "cupy" in modules:
        return current_stream, ()
    no_cupy = (modules, "cupy", MISSING)
    if "torch" not in modules:
        return None, (no_cupy, (modules, "torch", MISSING))
    cuda = getattr(modules["torch"], "cuda", None)
    same_torch = (modules, "torch", modules["torch"])
    raw_stream = getattr(getattr(modules["torch"], "_C", None), "_cuda_getCurrentRawStream", None)
    if cuda is None or raw_stream is None or "_initialized" not in vars(cuda):
        return current_stream, ()
    if torch_with_cuda() is None:
        return None, (no_cupy, same_torch, (vars(cuda), "_initialized", False))
    return raw_stream, (no_cupy, same_torch)

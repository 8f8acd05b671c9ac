"""torch's tensors, as the launcher's code reads them: through the stable C functions of torch's library.

    is_tensor(x)                 whether x is a tensor or a parameter, of no subclass
    functions().addresses        the words of SHARED for them
    functions().place(x)         (0, 6): the CPU, and the number of its dtype; None for what the code does not read

The functions take the address of the C++ object within Python's one. Where it lies is found out on two tensors, of
which torch tells it, and looked up again on others; so is the word of the C++ object that says whether its elements
are in memory with the other sign (`x.is_neg()`), for which there is no function.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

from deuteron.backend.launcher.records import TORCH_DEVICES, TORCH_DTYPES

_FUNCTIONS = {
    "tensor_data": "aoti_torch_get_data_ptr",
    "tensor_dtype": "aoti_torch_get_dtype",
    "tensor_device_type": "aoti_torch_get_device_type",
    "tensor_device": "aoti_torch_get_device_index",
    "tensor_layout": "aoti_torch_get_layout",
    "tensor_dim": "aoti_torch_get_dim",
    "tensor_sizes": "aoti_torch_get_sizes",
    "tensor_strides": "aoti_torch_get_strides",
}
_NARROW = ("tensor_dtype", "tensor_device_type", "tensor_device", "tensor_layout")  # of 32 bits
_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll")
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_MOST_WORDS = 16  # of a tensor's Python object that are looked through
_MOST_OF_CXX = 24  # and of the C++ one, which has 25 or 26


def is_tensor(tensor: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "nn") and type(tensor) in (torch.Tensor, torch.nn.Parameter)


class Functions:
    """The functions of torch's library, and where the C++ object lies."""

    def __init__(self, library: ctypes.CDLL, offset: int, keys_offset: int):
        torch = sys.modules["torch"]
        self._offset = offset
        self._keys_offset, self._negative = keys_offset, _keys_of_negative(torch)
        self._functions = {name: getattr(library, function) for name, function in _FUNCTIONS.items()}
        pointers = {name: ctypes.cast(f, ctypes.c_void_p).value for name, f in self._functions.items()}
        classes = {"tensor": id(torch.Tensor), "parameter": id(torch.nn.Parameter)}
        keys = {"tensor_keys": keys_offset, "tensor_negative": self._negative}
        self.addresses: dict[str, int] = {**classes, "tensor_offset": offset, **keys, **pointers}

    def ask(self, name: str, tensor: Any) -> int | None:
        """What one of the functions says; None where it fails."""
        found = ctypes.c_int32(0) if name in _NARROW else ctypes.c_int64(0)
        status = self._functions[name](ctypes.c_void_p(id(tensor) + self._offset), ctypes.byref(found))
        return None if status else found.value

    def is_negative(self, tensor: Any) -> bool:
        """Whether its elements are in memory with the other sign."""
        inner = ctypes.c_uint64.from_address(id(tensor) + self._offset).value
        return bool(ctypes.c_uint64.from_address(inner + self._keys_offset).value & self._negative)

    def extents(self, tensor: Any) -> list[tuple[int, ...]]:
        """Sizes and strides."""
        count = self.ask("tensor_dim", tensor)
        where = [self.ask(name, tensor) for name in ("tensor_sizes", "tensor_strides")]
        return [tuple((ctypes.c_int64 * count).from_address(address)) for address in where]

    def place(self, tensor: Any) -> tuple[int, int] | None:
        """The device, 0 for the CPU, 1 and up for GPUs, and the number of the dtype."""
        kind, device, dtype = (
            self.ask(name, tensor) for name in ("tensor_device_type", "tensor_device", "tensor_dtype")
        )
        if (
            kind not in (0, 1)
            or self.ask("tensor_layout", tensor) != 0
            or dtype is None
            or not 0 <= dtype < TORCH_DTYPES
        ):
            return None
        number = 0 if kind == 0 else device + 1
        return (number, dtype) if 0 <= number < TORCH_DEVICES else None


@cache
def functions() -> Functions | None:
    """None where this torch lacks one of the functions, or its tensors are not what they are expected to be."""
    torch = sys.modules["torch"]
    try:
        with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
            found = Functions(_library(torch), _offset(torch), _keys_offset(torch))
            return found if all(map(_agrees(found), _probes(torch))) else None
    except Exception:  # another torch: then Python asks its tensors, and the launch is right all the same
        return None


def _library(torch: Any) -> ctypes.CDLL:
    folder = Path(torch.__file__).parent / "lib"
    return ctypes.CDLL(str(next(folder / name for name in _LIBRARIES if (folder / name).exists())))


def _probes(torch: Any) -> list[Any]:
    """Tensors on the CPU. They are views of bytes: the operators that make tensors may be kernels that we launch (as
    FlagGems registers them), or mean another device (`torch.set_default_device`)."""
    whole = torch.frombuffer(bytearray(60), dtype=torch.float32).view(3, 5)
    two = torch.frombuffer(bytearray(4), dtype=torch.bfloat16)
    return [whole, whole[1:, 2:], two[2:], torch.nn.Parameter(whole), two, torch._neg_view(whole)]


def _offset(torch: Any) -> int:
    """Where a Python tensor holds the address of the C++ one; raises ValueError where that is not one place."""
    places = [_places(torch, tensor) for tensor in _probes(torch)]
    (offset,) = set.intersection(*places)
    return offset


def _keys_offset(torch: Any) -> int:
    """Where a C++ tensor has its dispatch keys; raises ValueError where that is not one place."""
    places = [_places_of_keys(torch, tensor) for tensor in _probes(torch)]
    (offset,) = set.intersection(*places)
    return offset


def _places_of_keys(torch: Any, tensor: Any) -> set[int]:
    words = (ctypes.c_uint64 * _MOST_OF_CXX).from_address(_inner(torch, tensor))
    keys = torch._C._dispatch_keys(tensor).raw_repr()
    return {8 * index for index, word in enumerate(words) if word == keys}


def _keys_of_negative(torch: Any) -> int:
    """The bit of a tensor whose elements are in memory with the other sign."""
    whole, *_, negative = _probes(torch)
    before, after = (torch._C._dispatch_keys(tensor).raw_repr() for tensor in (whole, negative))
    return after & ~before


def _inner(torch: Any, tensor: Any) -> int:
    """The address of the C++ tensor, as torch tells it."""
    handle = torch._C._aoti.unsafe_alloc_void_ptr_from_tensor(tensor)
    inner = ctypes.c_uint64.from_address(_get_pointer(handle, None)).value
    torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(handle)
    return inner


def _places(torch: Any, tensor: Any) -> set[int]:
    inner = _inner(torch, tensor)
    size = min(tensor.__class__.__basicsize__ // 8, _MOST_WORDS)
    words = (ctypes.c_uint64 * size).from_address(id(tensor))
    return {8 * index for index, word in enumerate(words) if word == inner}


def _agrees(found: Functions):
    """Whether torch says the same of a tensor in Python and in C."""

    def agrees(tensor: Any) -> bool:
        extents = [tuple(tensor.shape), tensor.stride()]
        is_there = found.ask("tensor_data", tensor) == tensor.data_ptr() and found.extents(tensor) == extents
        return is_there and found.place(tensor) is not None and found.is_negative(tensor) == tensor.is_neg()

    return agrees

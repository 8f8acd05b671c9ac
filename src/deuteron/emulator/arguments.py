"""Arguments of a launch as the bytes that the kernel's `ld.param` reads.

    pack_arguments("add", layout, memory, (x, np.int32(5), 2.5))

An array becomes its address, a tensor map 128 bytes that name it, a number what the type of the parameter asks for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from deuteron.backend.spans import span_of
from deuteron.emulator.asynchronous.tensor_map import TensorMap
from deuteron.emulator.machine.global_memory import GlobalMemory
from deuteron.emulator.types import TYPES
from deuteron.emulator.variables import Layout
from deuteron.errors import LaunchError, counted
from deuteron.ptx.syntax import Variable


def pack_arguments(kernel: str, layout: Layout, memory: GlobalMemory, args: Sequence[object]) -> dict[str, int]:
    """Make the parameter buffer and the memory that its pointers point to; gives the address of each parameter."""
    params = layout.param_variables
    if len(args) != len(params):
        raise LaunchError(f"kernel '{kernel}' takes {counted(len(params), 'argument')}, got {len(args)}")
    address, data = memory.add_bytes(max(layout.param_bytes, 1), 128, "the kernel's parameters", False)
    for index, (param, value) in enumerate(zip(params, args, strict=True)):
        offset = layout.params[param.name]
        packed = _pack(memory, param, value, f"argument {index}")
        data[offset : offset + len(packed)] = np.frombuffer(packed, np.uint8)
    return {param.name: address + layout.params[param.name] for param in params}


def _pack(memory: GlobalMemory, param: Variable, value: object, name: str) -> bytes:
    if isinstance(value, TensorMap):
        value.add_to(memory, name)
        return value.to_bytes()
    if isinstance(value, bytes):
        return _checked(value, param, name)
    if isinstance(value, np.ndarray):
        return _pack_array(memory, value, name)
    if hasattr(value, "data_ptr"):
        return _pack_tensor(memory, value, name)
    dtype = np.dtype(TYPES[param.type])
    if isinstance(value, np.generic) and value.dtype.itemsize == dtype.itemsize:
        return value.tobytes()
    if isinstance(value, float) and param.type in ("f32", "b32", "u32"):
        return np.float32(value).tobytes()
    if isinstance(value, float) and param.type in ("f64", "b64", "u64"):
        return np.float64(value).tobytes()
    if dtype.kind == "f":
        return dtype.type(value).tobytes()
    return (int(value) & (1 << 8 * dtype.itemsize) - 1).to_bytes(dtype.itemsize, "little")


def _pack_array(memory: GlobalMemory, array: np.ndarray, name: str) -> bytes:
    address = memory.add_array(array, f"{name} ({array.dtype}{list(array.shape)})") if array.size else 0
    return address.to_bytes(8, "little")


def _pack_tensor(memory: GlobalMemory, tensor: Any, name: str) -> bytes:
    """A torch tensor in CPU memory, of any element type, with the storage that it is in."""
    storage = storage_bytes(tensor)
    if storage is not None:
        memory.add_array(storage, f"{name} ({tensor.dtype}{list(tensor.shape)})", owner=tensor)
    return tensor.data_ptr().to_bytes(8, "little")


def storage_bytes(tensor: Any) -> np.ndarray | None:
    """The memory that a kernel may access through a tensor, in bytes, as NumPy has neither bf16 nor fp8; None: none."""
    span = span_of(tensor)
    if span is None or not tensor.numel():
        return None
    return np.frombuffer((ctypes.c_char * span.num_bytes).from_address(span.address), np.uint8)


def _checked(value: bytes, param: Variable, name: str) -> bytes:
    if len(value) != param.size:
        raise LaunchError(f"{name} must have {param.size} bytes, got {len(value)}")
    return value

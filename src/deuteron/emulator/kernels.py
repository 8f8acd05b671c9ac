"""Launches a compiled kernel on the emulator: what `DEUTERON_EMULATE=1` does.

    run_kernel(kernel.asm["ptx"], kernel.metadata, grid=(8,), args=(x, y, out, 1000))
    print(profile_kernel(kernel.asm["ptx"], kernel.metadata, (8,), (x, y, out, 1000)).table())

Block size, shared memory and cluster come from the metadata. The grid counts programs; `args` are the runtime
parameters in order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from deuteron.backend import tensor_map
from deuteron.backend.metadata import KernelMetadata
from deuteron.dtypes import FLOATS
from deuteron.emulator.arguments import storage_bytes
from deuteron.emulator.asynchronous.tensor_map import TensorMap
from deuteron.emulator.launch import Dim, as_dim, launch
from deuteron.emulator.machine.global_memory import byte_bounds
from deuteron.emulator.options import EmulatorOptions
from deuteron.emulator.profile import Profile, profile
from deuteron.errors import LaunchError

# For each element type of a signature PTX's, and what NumPy holds it as.
_ELEMENTS = {
    **{f"i{bits}": (f"s{bits}", np.dtype(f"i{bits // 8}")) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (f"u{bits}", np.dtype(f"u{bits // 8}")) for bits in (8, 16, 32, 64)},
    **{type.signature: ("u8", np.dtype("u1")) for type in FLOATS if type.bits == 8},
    "fp16": ("f16", np.dtype("u2")),
    "bf16": ("bf16", np.dtype("u2")),
    "fp32": ("f32", np.dtype("f4")),
    "fp64": ("f64", np.dtype("f8")),
}


def run_kernel(
    ptx: str, metadata: KernelMetadata, grid: Dim, args: Sequence[object], options: EmulatorOptions | None = None
) -> None:
    """Run a kernel on NumPy arrays or torch CPU tensors, in place; raises EmulatorError where it is at fault."""
    launch(ptx, *_launch_of(metadata, grid, args), options)


def profile_kernel(
    ptx: str, metadata: KernelMetadata, grid: Dim, args: Sequence[object], options: EmulatorOptions | None = None
) -> Profile:
    """Run a kernel as `run_kernel` does, and count what it costs by source line."""
    return profile(ptx, *_launch_of(metadata, grid, args), options)


def _launch_of(metadata: KernelMetadata, grid: Dim, args: Sequence[object]) -> tuple:
    """What `launch` wants to know: the kernel's name, blocks, threads, shared memory, arguments and cluster."""
    x, y, z = as_dim(grid)
    blocks, cluster = (x * metadata.num_ctas, y, z), metadata.num_ctas if metadata.num_ctas > 1 else None
    given = with_tensor_maps(metadata, args)
    return metadata.symbol, blocks, metadata.num_threads, metadata.shared, given, cluster


def with_tensor_maps(metadata: KernelMetadata, args: Sequence[object]) -> list[object]:
    """The arguments, followed by the tensor maps that the kernel takes."""
    if not metadata.tensor_maps:
        return list(args)
    values, arrays = [_number(arg) for arg in args], list(_arrays(args))
    return [*args, *(_encoded(described, values, arrays) for described in metadata.tensor_maps)]


def _encoded(
    described: tensor_map.TensorMap, values: Sequence[object], arrays: Sequence[np.ndarray]
) -> TensorMap | bytes:
    try:
        return _tensor_map(described, described.of_arguments(values), arrays)
    except LaunchError:
        if described.is_conditional:
            return tensor_map.UNUSABLE
        raise


def _arrays(args: Sequence[object]) -> Iterator[np.ndarray]:
    """The memory of the arrays among the arguments: a map may begin anywhere in it."""
    for arg in args:
        array = storage_bytes(arg) if hasattr(arg, "data_ptr") else arg
        if isinstance(array, np.ndarray):
            yield array


def _number(arg: object) -> object:
    """What an expression of the arguments sees: an address of an array, a number."""
    if isinstance(arg, np.ndarray):
        return arg.ctypes.data
    return arg.data_ptr() if hasattr(arg, "data_ptr") else arg


def _tensor_map(
    described: tensor_map.TensorMap, values: tensor_map.MapValues, arrays: Sequence[np.ndarray]
) -> TensorMap:
    """The map over the memory that it describes, that of an argument, of several the one that ends last."""
    type, dtype = _ELEMENTS[described.element]
    bounds = [(*byte_bounds(array), array) for array in arrays]
    around = [(high, array) for low, high, array in bounds if low <= values.address < high]
    found = max(around, key=lambda bound: bound[0], default=None)
    if found is None:
        raise LaunchError(f"the tensor descriptor in {described.place} begins in no array that the kernel is given")
    end, owner = found
    strides = (*values.strides, dtype.itemsize)
    room = end - values.address
    rest = room - dtype.itemsize
    shape = [min(n, rest // (stride or 1) + 1) for n, stride in zip(values.sizes, strides, strict=True)]
    memory = np.frombuffer((ctypes.c_char * room).from_address(values.address), np.uint8)
    array = as_strided(memory[: dtype.itemsize].view(dtype), shape, strides, writeable=owner.flags.writeable)
    return TensorMap(array, described.box, described.swizzle, described.padding, type, values.sizes, end)

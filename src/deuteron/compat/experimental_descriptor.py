"""`triton.tools.experimental_descriptor`: descriptors that the host of Triton 3.0 to 3.3 made, of an address alone.

    desc = create_2d_tma_descriptor(x.data_ptr(), M, K, 64, 32, x.element_size())
    kernel[grid](desc, ...)     in the kernel: tl._experimental_descriptor_load(desc, [i, j], [64, 32], tl.float16)

The type of the elements is said in the kernel. Until then they are unsigned integers of as many bytes, which the old
functions of the language take for what they are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.compiler import resolve_target
from deuteron.errors import UsageError
from deuteron.settings import settings

_ELEMENT_SIZES = (1, 2, 4, 8)


class _HostMemory:
    """Elements at an address, as NumPy is told of them."""

    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = interface


class _DeviceMemory:
    """The same on a GPU; launches ask the class for its attribute."""

    def __init__(self, interface: dict[str, Any]):
        self._interface = interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface


class TmaDescKernelParam(TensorDescriptor):
    """The descriptor of rows of memory one after the other. The memory is not kept alive."""

    def __init__(self, ptr: int, dims: Sequence[int], block_dims: Sequence[int], element_size: int):
        if element_size not in _ELEMENT_SIZES or not isinstance(ptr, int):
            raise UsageError(
                f"a TMA descriptor takes an address, sizes, a block and the bytes of an element, 1, 2, 4 or 8: got "
                f"{ptr!r:.60}, {dims}, {block_dims} and {element_size!r}. Give x.data_ptr() and x.element_size()."
            )
        strides = list(accumulate(reversed(dims[1:]), mul, initial=1))[::-1]
        super().__init__(_memory(ptr, dims, element_size), dims, strides, block_dims)


def _memory(ptr: int, shape: Sequence[int], element_size: int) -> Any:
    """An array of where launches find their arrays; the emulator has the host's memory."""
    interface = {"data": (ptr, False), "shape": tuple(shape), "typestr": f"<u{element_size}", "version": 3}
    if resolve_target(None).backend == "cuda" and not settings.emulate:
        return _DeviceMemory(interface)
    import numpy  # deferred: start-up time

    return numpy.asarray(_HostMemory(interface))


def create_1d_tma_descriptor(ptr: int, dim: int, block_dim: int, element_size: int) -> TmaDescKernelParam:
    return TmaDescKernelParam(ptr, [dim], [block_dim], element_size)


def create_2d_tma_descriptor(
    ptr: int, dim1: int, dim0: int, block_dim1: int, block_dim0: int, element_size: int
) -> TmaDescKernelParam:
    return TmaDescKernelParam(ptr, [dim1, dim0], [block_dim1, block_dim0], element_size)


def enable_in_pytorch() -> bool:
    """Asked by torch, which passes its own descriptors as TensorDescriptor."""
    return False


EXPERIMENTAL_DESCRIPTOR_NAMES = {
    "TmaDescKernelParam": TmaDescKernelParam,
    "create_1d_tma_descriptor": create_1d_tma_descriptor,
    "create_2d_tma_descriptor": create_2d_tma_descriptor,
    "enable_in_pytorch": enable_in_pytorch,
}

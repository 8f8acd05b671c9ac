"""Arrays for measuring kernels: on the processor, or on the current GPU through its driver.

with arrays_for(target) as arrays:
    address = arrays.make("fp16", 4096)         aligned; floats are random, numbers are 0, as they may be indices
    arrays.restore()                            all of them are as they were made
    arrays.zero(address)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from deuteron.backend.cuda.launch.libcuda import cuda_driver
from deuteron.backend.cuda.launch.streams import current_device
from deuteron.backend.spans import BoundedAddress, Span
from deuteron.dtypes import FLOATS, INTEGERS
from deuteron.options import Target

_ALIGNMENT = 64
_BITS = {type.signature: type.bits for type in (*INTEGERS, *FLOATS)}
_NUMPY = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
_ABOUT_ONE = 0x38  # in fp8e4nv 1, in the others not far from it


class DeviceArrays(Protocol):
    """Makes arrays, which are there until the end."""

    def make(self, type: str, count: int) -> int:
        """The address of an array of so many elements; on the processor one that knows how far it reaches."""

    def restore(self) -> None:
        """Give every array the content that it was made with."""

    def zero(self, address: int) -> None:
        """Set all of an array to zero."""


class _ProcessorArrays:
    def __init__(self) -> None:
        self._made: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def make(self, type: str, count: int) -> int:
        content = _content(type, count).view(np.uint8)
        space = np.zeros(content.nbytes + _ALIGNMENT, np.uint8)
        begin = -space.ctypes.data % _ALIGNMENT
        array = space[begin : begin + content.nbytes]
        array[:] = content
        address = BoundedAddress(space.ctypes.data + begin)
        address.span = Span(address, content.nbytes)
        self._made[int(address)] = array, content
        return address

    def restore(self) -> None:
        for array, content in self._made.values():
            array[:] = content

    def zero(self, address: int) -> None:
        array, _ = self._made[int(address)]
        array[:] = 0


class _GpuArrays:
    def __init__(self, driver: Any):
        self._driver, self._contents = driver, {}

    def make(self, type: str, count: int) -> int:
        content = _content(type, count)
        address = int(self._driver.call("cuMemAlloc", max(content.nbytes, 1)))
        self._contents[address] = content
        self._copy(address, content)
        return address

    def restore(self) -> None:
        for address, content in self._contents.items():
            self._copy(address, content)

    def zero(self, address: int) -> None:
        self._driver.call("cuMemsetD8", address, 0, max(self._contents[address].nbytes, 1))

    def free(self) -> None:
        for address in self._contents:
            self._driver.call("cuMemFree", address)

    def _copy(self, address: int, content: np.ndarray) -> None:
        self._driver.call("cuMemcpyHtoD", address, content.ctypes.data, content.nbytes)


@contextmanager
def arrays_for(target: Target) -> Iterator[DeviceArrays]:
    """Where kernels for this target find their arrays; on a GPU they are freed at the end."""
    if target.backend == "cpu":
        yield _ProcessorArrays()
        return
    driver = cuda_driver()
    with driver.context_of(current_device(driver)):
        arrays = _GpuArrays(driver)
        try:
            yield arrays
        finally:
            arrays.free()


def _content(type: str, count: int) -> np.ndarray:
    random = np.random.default_rng(0)
    if type in _NUMPY:
        return random.standard_normal(count, np.float32).astype(_NUMPY[type])
    if type == "bf16":
        return (random.standard_normal(count, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    size = max(_BITS[type] // 8, 1)
    return np.full(count * size, _ABOUT_ONE if type.startswith("fp8") else 0, np.uint8)

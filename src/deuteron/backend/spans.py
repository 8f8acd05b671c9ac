"""The memory that an array given to a kernel spans: what a checked kernel may access of it.

    span_of(numpy.zeros((4, 8), "f4")[::2, ::-1])       Span(140213..., 96): from its lowest to its highest byte
    bounded(140213..., array)                           the address, which knows the array's span

An object that only tells an address has no span that is known: nothing is checked of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from deuteron.backend.arrays import array_specialiser
from deuteron.backend.dlpack import dlpack_tensor


class Span(NamedTuple):
    """`num_bytes` bytes from `address` on."""

    address: int
    num_bytes: int


EVERYTHING = Span(0, (1 << 64) - 1)


class BoundedAddress(int):
    """The address of an array's first element, with the memory that the array spans."""

    span: Span


def bounded(address: int, array: Any) -> int:
    """The address with the span of the array that it is of; as it is where that is no array."""
    span = _contiguous_span(address, array) or span_of(array)
    if span is None:
        return address
    made = BoundedAddress(address)
    made.span = span
    return made


def _contiguous_span(address: int, array: Any) -> Span | None:
    """Of an array of NumPy without gaps: what most arguments are, in a tenth of the time."""
    flags = getattr(array, "flags", None)
    return Span(address, array.nbytes) if getattr(flags, "c_contiguous", False) else None


def span_of(array: Any) -> Span | None:
    """From the lowest to the highest byte of an array of any library; None for what is no array."""
    if array_specialiser(type(array)) is None:
        return None
    if hasattr(array, "__array_interface__"):
        return _span_of_interface(array.__array_interface__)
    if hasattr(array, "data_ptr"):
        return _span_of_tensor(array)
    if hasattr(array, "__dlpack__"):
        found = dlpack_tensor(array)
        steps = [stride * found.element_size for stride in found.strides]
        return _span(found.address, found.shape, steps, found.element_size)
    return EVERYTHING


def _span_of_interface(interface: dict[str, Any]) -> Span:
    address, shape, size = interface["data"][0], interface["shape"], int(interface["typestr"][2:])
    return _span(address, shape, interface.get("strides") or _row_major(shape, size), size)


def _span_of_tensor(tensor: Any) -> Span:
    if not all(hasattr(tensor, name) for name in ("shape", "stride", "element_size")):
        return EVERYTHING
    size = tensor.element_size()
    return _span(tensor.data_ptr(), tensor.shape, [stride * size for stride in tensor.stride()], size)


def _span(address: int, shape: Sequence[int], steps: Sequence[int], size: int) -> Span:
    """Of elements of `size` bytes; steps are in bytes."""
    if 0 in shape:
        return Span(address, 0)
    reaches = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
    below, above = sum(reach for reach in reaches if reach < 0), sum(reach for reach in reaches if reach > 0)
    return Span(address + below, above - below + size)


def _row_major(shape: Sequence[int], size: int) -> list[int]:
    steps: list[int] = []
    for extent in reversed(shape):
        steps.insert(0, size)
        size *= extent
    return steps
